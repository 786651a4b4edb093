//! The numbers to work on, from a `.npy` file or from the one that comes with the example.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use npyz::NpyFile;

/// See `DATA.md`. Part of the program, so that it runs anywhere.
const CO2: &[u8] = include_bytes!("co2.npy");

/// A series of finite values, at least one.
pub(crate) struct Series {
    /// Where it is from.
    pub(crate) name: String,
    pub(crate) values: Vec<f32>,
    /// What one of the values is called, in the plural.
    pub(crate) items: &'static str,
    /// The unit with a space before it, or nothing.
    pub(crate) unit: &'static str,
}

impl Series {
    /// The weekly CO2 record of Mauna Loa.
    pub(crate) fn co2() -> Result<Self, Box<dyn Error>> {
        let name = "CO2 at Mauna Loa, weekly, March 1958 to December 2001".to_owned();
        Ok(Self { name, values: values(CO2)?, items: "weeks", unit: " ppm" })
    }

    /// The array in a `.npy` file, of any shape.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Box<dyn Error>> {
        let name = path.display().to_string();
        let values = File::open(path).map_err(Into::into).and_then(|file| values(BufReader::new(file)));
        let values = values.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name, values, items: "values", unit: "" })
    }
}

/// The elements in the order of the file; `float64` is rounded to `float32`.
fn values(npy: impl Read) -> Result<Vec<f32>, Box<dyn Error>> {
    let npy = NpyFile::new(npy).map_err(|error| format!("no .npy file: {error}"))?;
    let values: io::Result<Vec<f32>> = match npy.try_data::<f32>() {
        Ok(data) => data.collect(),
        Err(npy) => match npy.try_data::<f64>() {
            Ok(data) => data.map(|value| value.map(|value| value as f32)).collect(),
            Err(npy) => {
                let dtype = npy.dtype().descr();
                return Err(format!("its elements are {dtype}, not float32 ('<f4') or float64 ('<f8')").into());
            }
        },
    };
    let values = values.map_err(|error| format!("the array is incomplete: {error}"))?;
    if values.is_empty() {
        return Err("the array is empty, and nothing has no mean".into());
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(i) => Err(format!("element {i} is {} as float32: remove it, or it would be the mean", values[i]).into()),
        None => Ok(values),
    }
}
