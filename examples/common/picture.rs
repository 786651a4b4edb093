//! Pictures that examples write, as PNG files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// Red, green and blue of each pixel, row by row from the top.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Pixels by their column and row.
    pub(crate) fn from_fn(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 3]) -> Self {
        let pixels = (0..width * height).map(|at| pixel(at % width, at / width)).collect();
        Self { width, pixels }
    }

    /// Writes the picture to the path that the user gave, or to a default path in `target/pictures`, and prints the path.
    pub(crate) fn write(&self, path: Option<OsString>, default: &str) -> io::Result<()> {
        let path = path.map_or_else(|| PathBuf::from("target/pictures").join(default), PathBuf::from);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let (width, height) = (self.width, self.pixels.len() / self.width);
        let mut encoder = png::Encoder::new(BufWriter::new(File::create(&path)?), width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        encoder.set_filter(png::Filter::Adaptive);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        println!("picture {}, {width} × {height}", path.display());
        Ok(())
    }
}

/// Converts a number from 0 to 1 to a colour from black through red to light yellow, as Matplotlib's `inferno` does.
#[allow(dead_code, reason = "not every example has numbers to show")]
pub(crate) fn heat_colour(value: f64) -> [u8; 3] {
    const COLOURS: [[f64; 3]; 8] = [
        [0.0, 0.0, 4.0],
        [40.0, 11.0, 84.0],
        [101.0, 21.0, 110.0],
        [159.0, 42.0, 99.0],
        [212.0, 72.0, 66.0],
        [245.0, 125.0, 21.0],
        [250.0, 193.0, 39.0],
        [252.0, 255.0, 164.0],
    ];
    let place = value.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let low = (place as usize).min(COLOURS.len() - 2);
    let share = place - low as f64;
    std::array::from_fn(|i| (COLOURS[low][i] * (1.0 - share) + COLOURS[low + 1][i] * share).round() as u8)
}
