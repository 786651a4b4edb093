//! Gathers, scatters, and items made from their indices.

use kernel_primitives::algorithms::{Run, gather, generate, scatter};
use kernel_primitives::functor::Identity;
use kernel_primitives::{Buffer, BufferSliceMut, Result};

use super::inputs::Steps;
use super::{Bench, Case, SOME, differs};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.moved("gather", Shuffled::place, |run, x, at, out| gather(run, x, at, out))?;
    bench.moved("scatter", Shuffled::undo, |run, x, at, out| scatter(run, x, at, out))?;
    for log2 in bench.sizes(SOME) {
        let case = Case { algorithm: "generate", types: "u64", input: "", log2 };
        if !bench.wants(case) {
            continue;
        }
        let (n, stream) = (case.len(), bench.stream);
        let mut out = stream.buffer_uninit::<u64>(n)?;
        bench.row(
            case,
            n * 8,
            &[out.address()],
            &mut out,
            |run, out| generate(run, Identity, out),
            |out, _| differs(out.as_slice(), |i| i as u64),
        )?;
    }
    Ok(())
}

/// A permutation of the numbers below a power of two that looks like chance, and the one that undoes it.
struct Shuffled(u32);

impl Shuffled {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn mask(&self) -> u64 {
        (1 << self.0) - 1
    }

    fn place(&self, i: usize) -> usize {
        let x = (i as u64).wrapping_mul(Self::FACTOR) & self.mask();
        // The upper half changes the lower.
        let x = x ^ x >> self.0.div_ceil(2);
        (x.wrapping_mul(Self::FACTOR) & self.mask()) as usize
    }

    fn undo(&self, place: usize) -> usize {
        // Newton's iteration doubles the bits that are right, three to begin with.
        let inverse = (0..5).fold(Self::FACTOR, |y, _| y.wrapping_mul(2u64.wrapping_sub(Self::FACTOR.wrapping_mul(y))));
        let x = (place as u64).wrapping_mul(inverse) & self.mask();
        let x = x ^ x >> self.0.div_ceil(2);
        (x.wrapping_mul(inverse) & self.mask()) as usize
    }
}

impl Bench<'_> {
    /// All items to other places, by a table of them: `from` says where the result's come from.
    fn moved(
        &mut self,
        algorithm: &str,
        from: impl Fn(&Shuffled, usize) -> usize,
        ours: impl Fn(Run<'_>, &Buffer<f32>, &Buffer<u32>, BufferSliceMut<'_, f32>) -> Result<()>,
    ) -> Result<()> {
        for log2 in self.sizes(SOME) {
            let case = Case { algorithm, types: "f32", input: "", log2 };
            if !self.wants(case) {
                continue;
            }
            let (n, stream, order) = (case.len(), self.stream, Shuffled(log2));
            let steps = Steps::new(self.period(n)).repeated::<f32>();
            let x = steps.buffer(stream, n, 0)?;
            let at = stream.buffer_from(&(0..n).map(|i| order.place(i) as u32).collect::<Vec<_>>())?;
            let mut out = stream.buffer_uninit::<f32>(n)?;
            self.row(
                case,
                3 * n * 4,
                &[x.address(), at.address(), out.address()],
                &mut out,
                |run, out| ours(run, &x, &at, out.as_mut_slice()),
                |out, _| differs(out.as_slice(), |i| steps.at(from(&order, i))),
            )?;
        }
        Ok(())
    }
}
