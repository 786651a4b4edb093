//! The numbers to work on: from a `.npy` file, or from the file that comes with the example.

use std::error::Error;
use std::fs;
use std::path::Path;

use kernel_primitives::interop::npy::{NpyArray, NpyHeader, NpyType};

/// See `DATA.md`. It is part of the program, so that the program runs anywhere.
const CO2: &[u8] = include_bytes!("co2.npy");

/// A series of finite values, with at least one value.
pub(crate) struct Series {
    /// The source of the series.
    pub(crate) name: String,
    pub(crate) values: Vec<f32>,
    /// The name of the values, in the plural.
    pub(crate) items: &'static str,
    /// The unit after a space, or an empty string.
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
        let read = || values(&fs::read(path)?);
        let values = read().map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name, values, items: "values", unit: "" })
    }
}

/// Reads the elements of a file of `float32` or `float64`, in C order, and rounds them to `float32`.
pub(crate) fn values(file: &[u8]) -> Result<Vec<f32>, Box<dyn Error>> {
    let values = match NpyHeader::read_from(file)?.element() {
        NpyType::F64 => NpyArray::<f64>::read_from(file)?.into_values().into_iter().map(|value| value as f32).collect(),
        _ => NpyArray::<f32>::read_from(file)?.into_values(),
    };
    if values.is_empty() {
        return Err("the array is empty, so it has no mean".into());
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(i) => Err(format!("element {i} is {} as float32: remove it, or it would be the mean", values[i]).into()),
        None => Ok(values),
    }
}
