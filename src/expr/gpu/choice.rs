//! Chooses the kernel for operands. The kernel has tiles or patches if they are faster, and if it can have the parameters that they need.

use super::Operands;
use crate::expr::ptx::{self, Variant};

impl Operands<'_> {
    /// Returns the kernel that is launched.
    pub(super) fn variant(&self) -> Variant {
        // In long programs, a thread takes one element: each launch fetches their code again, and more registers allow fewer threads.
        const INSTRUCTIONS: usize = 128;
        let program = &self.lowered.program;
        let most = (INSTRUCTIONS / program.code.len().max(1)).clamp(1, ptx::most_computed(program).min(16));
        let most = if program.shifts.is_empty() { 1 << most.ilog2() } else { ptx::most_around(program, self.nest) };
        let variant = Variant::of(self.nest, &self.sizes, &self.addresses, self.kinds(), most);
        if !program.shifts.is_empty() {
            let variant = variant.shifted(program, self.nest);
            let patched = || Some(variant.clone().patched(program, self.nest)).filter(|patched| self.fits(patched));
            return self.row_tiled(false).or_else(patched).unwrap_or(variant);
        }
        if variant.rank < 2 {
            return variant.sized(program, self.nest.elements);
        }
        let transposing = variant.clone().transposing(self.nest, &self.sizes, self.kinds(), &self.memories);
        if self.fits(&transposing) { transposing } else { variant }
    }

    /// Returns the variant with row tiles, if they are possible, and if they are faster or `always` is set.
    pub(super) fn row_tiled(&self, always: bool) -> Option<Variant> {
        let operands = (&self.sizes[..], &self.addresses[..], self.kinds());
        let tiled = Variant::row_tiled(&self.lowered.program, self.nest, operands, always);
        tiled.filter(|tiled| self.fits(tiled))
    }

    /// Returns whether the parameters fit. Kernels with tiles and patches also need the strides of contiguous operands.
    fn fits(&self, variant: &Variant) -> bool {
        /// This number of operands always fits.
        const FEW: usize = 32;
        let program = &self.lowered.program;
        variant.operands.len() + program.inputs.len() + program.scalars.len() <= FEW
            || variant.param_bytes(program) <= ptx::PARAM_BYTES
    }
}
