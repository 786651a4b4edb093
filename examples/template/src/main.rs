//! Launches a kernel of this crate and one of the library, on a GPU or in the emulator.

use kernel_primitives::kernels::map_unary;
use kernel_primitives::{Device, Dims, Result};
use template::kernels::{Softsign, axpy};

fn main() -> Result<()> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;

    let x = stream.buffer_from(&[1.0f32, 2.0, 3.0, 4.0])?;
    let mut y = stream.buffer_from(&[10.0f32; 4])?;
    axpy::launch(&stream, Dims::for_items(x.len()), 3.0, &x, &mut y)?;
    println!("3 x + y:  {:?}", y.to_vec()?);

    let mut out = stream.buffer_zeroed::<f32>(x.len())?;
    let dims = Dims::for_items(x.len()).items_per_thread(4);
    map_unary::<f32, f32, Softsign, 4>::launch(&stream, dims, &x, &mut out, Softsign)?;
    println!("softsign: {:?}", out.to_vec()?);
    Ok(())
}
