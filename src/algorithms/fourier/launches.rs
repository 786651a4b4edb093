//! The launches of a transform by compiled kernels.

use super::passes::Pass;
use super::plan::FftPlan;
use super::transform::FftKind;
use crate::__private::Entry;
use crate::algorithms::run::{Memory, bytes_of};
use crate::element::FftFloat;
use crate::functor::{Identity, UnaryFn};
use crate::input::{Source, Span};
use crate::kernels::device::{self, FftPass, fft_lines};
use crate::output::{Sink, SpanMut};
use crate::{BufferSliceMut, Complex, ConvertTo, Dims, InputArg, KernelParam, OutputArg, Result, Stream};

/// The lengths of the two temporary arrays. The passes before the last one write them in turn.
fn area_lens(before: &[Pass]) -> [usize; 2] {
    [0, 1].map(|first| before.iter().skip(first).step_by(2).map(|pass| pass.output_len).max().unwrap_or(0))
}

pub(super) fn area_bytes<T: FftFloat>(before: &[Pass]) -> [usize; 2] {
    area_lens(before).map(bytes_of::<Complex<T>>)
}

/// The kernels for lines of any length, and those for powers of two.
pub(super) type Kernels<T, S, F, O> = (Entry<fft_lines<T, S, F, O, false>>, Entry<fft_lines<T, S, F, O, true>>);

/// The kernels of passes from one temporary array to the other.
pub(super) type Between<T> = Kernels<T, Span<Complex<T>>, Identity, SpanMut<Complex<T>>>;

/// A transform under way.
pub(super) struct Work<'a, T> {
    pub(super) stream: &'a Stream,
    pub(super) plan: &'a FftPlan<T>,
    pub(super) kind: FftKind,
}

impl<T: FftFloat> Work<'_, T> {
    pub(super) fn dims(&self, pass: &Pass) -> Dims {
        let blocks = pass.lines.div_ceil(pass.lines_of_block);
        Dims::for_blocks(blocks).block(pass.threads() as u32).shared_bytes(pass.shared_bytes(self.plan.limits()))
    }

    pub(super) fn parameters(&self, pass: &Pass, is_last: bool) -> FftPass<T> {
        let scale = if is_last { self.plan.scale(self.kind) } else { T::ONE };
        pass.parameters(scale, |part| self.plan.place(part))
    }

    /// The last pass, and those before it.
    pub(super) fn passes(&self) -> (&Pass, &[Pass]) {
        self.plan.passes(self.kind).split_last().expect("an axis has a pass")
    }

    /// Launches the passes before the last one, of which there is at least one, and returns the temporary array that the last one reads.
    pub(super) fn launch_before<'m, S>(
        &self,
        memory: &'m mut Memory<'_>,
        first: Kernels<T, S, Identity, SpanMut<Complex<T>>>,
        between: Between<T>,
        x: impl InputArg<S>,
    ) -> Result<BufferSliceMut<'m, Complex<T>>>
    where
        S: Source<Item: ConvertTo<Complex<T>>>,
    {
        let (_, before) = self.passes();
        let (mut parts, [even, odd]) = (memory.parts(), area_lens(before));
        let (mut to, mut from) = (parts.take::<Complex<T>>(even)?, parts.take::<Complex<T>>(odd)?);
        self.launch(first, &before[0], false, x, Identity, &mut to)?;
        for pass in &before[1..] {
            std::mem::swap(&mut from, &mut to);
            self.launch(between, pass, false, &from, Identity, &mut to)?;
        }
        Ok(to)
    }

    pub(super) fn launch<S, F, O>(
        &self,
        (kernel, powers): Kernels<T, S, F, O>,
        pass: &Pass,
        is_last: bool,
        x: impl InputArg<S>,
        f: F,
        out: impl OutputArg<O>,
    ) -> Result<()>
    where
        S: Source<Item: ConvertTo<Complex<T>>>,
        F: UnaryFn<Complex<T>> + KernelParam,
        O: Sink<Item = F::Output>,
    {
        let (dims, parameters, table) = (self.dims(pass), self.parameters(pass, is_last), &self.plan.table);
        if pass.line.is_power() {
            return device::fft_lines::launch_entry(powers, self.stream, dims, x, out, f, parameters, table);
        }
        device::fft_lines::launch_entry(kernel, self.stream, dims, x, out, f, parameters, table)
    }
}
