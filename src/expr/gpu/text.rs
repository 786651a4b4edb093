//! Texts of kernels and their launch arguments, for tests.

use std::panic::Location;

use primitives_host::{Device, Error, Result};

use super::{KernelForm, Operands};
use crate::expr::describe::form;
use crate::expr::evaluate::prepare;
use crate::expr::program::lower;
use crate::expr::{Operand, Tensor};

/// The text of a kernel, and its launch arguments.
pub(crate) struct KernelText {
    pub(crate) text: String,
    /// The parameters without the control.
    pub(crate) words: Vec<u64>,
    pub(crate) blocks: usize,
    pub(crate) threads: usize,
    /// Whether the kernel has row tiles.
    pub(crate) tiled: bool,
}

impl Operands<'_> {
    /// Returns the kernel that is launched. If `always_tiles` is set, it has row tiles whenever these are possible.
    pub(crate) fn written(&self, always_tiles: bool, arch: u32) -> Result<KernelText> {
        let tiled = if always_tiles { self.row_tiled(true) } else { None };
        let variant = tiled.unwrap_or_else(|| self.variant());
        let count = self.count(&variant);
        Ok(KernelText {
            text: KernelForm::Once(variant.clone()).text(&self.lowered.program, arch)?,
            words: self.words(&variant, count),
            blocks: self.blocks(&variant, count),
            threads: variant.threads(),
            tiled: variant.row.is_some(),
        })
    }
}

/// The scalars of a launch are no part of the kernel, and the first launch names it.
#[test]
fn a_kernel_has_no_scalars_in_its_name() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let (x, y) = (Tensor::from_slice(&stream, 3, &[1i32, 2, 3])?, Tensor::<i32>::zeros(&stream, 3)?);
    let named = |by: i32| -> Result<&'static str> {
        let root = (&x * by).node;
        let (lowered, targets) = (lower([&root]), [&y.view]);
        let nest = prepare(Location::caller(), &targets, &lowered, &|| vec![&root])?;
        Ok(Operands::new(&targets, &lowered, &nest).ready(&|| form(&[&root]))?.info.name())
    };
    assert_eq!([named(1234)?, named(5678)?], ["x0 * s"; 2]);
    Ok(())
}

/// All expressions have one entry, so the error has the name of the expression.
#[test]
fn parameters_that_do_not_fit_are_those_of_an_expression() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let x = Tensor::<f64>::zeros(&stream, 3)?;
    let root = (0..600).fold(x.clone().expr(), |sum, i| sum + f64::from(i)).node;
    let (lowered, targets) = (lower([&root]), [&x.view]);
    let nest = prepare(Location::caller(), &targets, &lowered, &|| vec![&root])?;
    let made = Operands::new(&targets, &lowered, &nest).ready(&|| form(&[&root])).map(drop);
    let Err(Error::LaunchLimit { kernel, device, asked: 4824, .. }) = made else { panic!("{made:?}") };
    assert_eq!((kernel, device), (form(&[&root]), stream.device().to_string()));
    Ok(())
}
