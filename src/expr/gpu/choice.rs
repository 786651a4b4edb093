//! Chooses the kernel for operands, and the blocks of reductions. The kernel has tiles or patches if they are faster, and if it can have
//! the parameters that they need.

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

/// Returns the number of parts of each result, `most` or fewer. `blocks` blocks compute one part of all results, and the device runs `at_once`
/// blocks at once. Blocks run in waves, and the last wave takes as long as a full one. So the result has the fewest waves in relation to its
/// parts, and is the smallest of those.
pub(super) fn even_parts(blocks: usize, most: usize, at_once: usize) -> usize {
    let waves = |parts: usize| (blocks * parts).div_ceil(at_once.max(1));
    let full = (1..waves(most)).rev().map(|waves| waves * at_once / blocks).filter(|&parts| parts > 0);
    full.fold(most, |best, parts| if waves(parts) * best <= waves(best) * parts { parts } else { best })
}

#[cfg(test)]
mod tests {
    use super::even_parts;

    #[test]
    fn parts_are_few_and_fill_the_waves() {
        // One result: one wave.
        assert_eq!(even_parts(1, 1056, 792), 792);
        assert_eq!(even_parts(1, 1056, 528), 528);
        assert_eq!(even_parts(1, 1056, 1056), 1056);
        assert_eq!(even_parts(1, 300, 528), 300);
        // Three parts in two waves are better than one part in one, which leaves a half of the device idle.
        assert_eq!(even_parts(300, 3, 528), 3);
        assert_eq!(even_parts(264, 4, 528), 2);
        assert_eq!(even_parts(400, 2, 528), 1);
        assert_eq!(even_parts(528, 2, 528), 1);
        // A device that is unlike all others.
        assert_eq!(even_parts(0, 7, 528), 7);
        assert_eq!(even_parts(5, 7, 0), 7);
        for (blocks, most, at_once) in (1..40).flat_map(|b| (1..40).flat_map(move |m| (1..40).map(move |a| (b, m, a))))
        {
            let parts = even_parts(blocks, most, at_once);
            let waves = |parts: usize| (blocks * parts).div_ceil(at_once);
            let least = (1..=most).all(|other| waves(parts) * other <= waves(other) * parts);
            assert!(least && (1..=most).contains(&parts), "{parts} parts of {blocks} blocks, {most} and {at_once}");
        }
    }
}
