//! Texts of kernels and their launch arguments, for tests.

use primitives_host::Result;

use super::{KernelForm, Operands};

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
