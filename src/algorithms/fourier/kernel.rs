//! The kernel of Fourier transforms.

use kernel_primitives::element::FftFloat;
use kernel_primitives::input::{Source, Span};
use kernel_primitives::output::Sink;
use kernel_primitives::prelude::*;

use super::block::{BlockLines, LineMemory};
use super::lines::*;

/// The kernel of [`algorithms::fft`](kernel_primitives::algorithms::fft). Each block transforms [`FftPass::lines_of_block`] lines, and
/// applies `f` to each result.
///
/// `table` has all the numbers whose beginnings [`FftPass`] gives. The launch gives shared memory of [`FftPass::pitch`] complex numbers for
/// each line, and [`FFT_NUMBERS`] more for each line of a pass with twiddle factors. The block has the threads of its lines. With `POWERS`,
/// radices are powers of two, and each thread of a line has [`FFT_NUMBERS`] numbers.
#[kernel(launch(pub(crate)), max_threads(fft_threads(size_of::<Complex<T>>(), POWERS)), one_dimensional, min_blocks(1))]
pub fn fft_lines<T, S, F, O, const POWERS: bool>(
    cx: Block,
    x: Input<S>,
    out: Output<O>,
    f: F,
    pass: FftPass<T>,
    table: Input<Span<Complex<T>>>,
    shared: SharedSlice<Complex<T>>,
) where
    T: FftFloat,
    S: Source<Item: ConvertTo<Complex<T>>>,
    F: UnaryFn<Complex<T>> + KernelParam,
    O: Sink<Item = F::Output>,
{
    BlockLines::new(cx, pass, table, shared).transform::<POWERS>(&mut Apart { x, out, f });
}

/// Works as [`fft_lines`](struct@fft_lines), for lines that their transforms replace.
#[kernel(launch(pub(crate)), max_threads(fft_threads(size_of::<Complex<T>>(), POWERS)), one_dimensional, min_blocks(1))]
pub fn fft_lines_in_place<T, const POWERS: bool>(
    cx: Block,
    data: GlobalMut<Complex<T>>,
    pass: FftPass<T>,
    table: Input<Span<Complex<T>>>,
    shared: SharedSlice<Complex<T>>,
) where
    T: FftFloat,
{
    BlockLines::new(cx, pass, table, shared).transform::<POWERS>(&mut Replaced { data });
}

struct Apart<'k, S, F, O> {
    x: Input<'k, S>,
    out: Output<'k, O>,
    f: F,
}

impl<T, S, F, O> LineMemory<T> for Apart<'_, S, F, O>
where
    T: FftFloat,
    S: Source<Item: ConvertTo<Complex<T>>>,
    F: UnaryFn<Complex<T>>,
    O: Sink<Item = F::Output>,
{
    #[inline(always)]
    fn can_twiddle(&self) -> bool {
        const { size_of::<F::Output>() == size_of::<Complex<T>>() }
    }

    #[inline(always)]
    fn is_aligned(&self) -> bool {
        self.x.is_aligned::<1>(0)
    }

    #[inline(always)]
    unsafe fn load_aligned(&self, at: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let [x] = unsafe { self.x.vector_inside::<1>(at) };
        x.convert()
    }

    #[inline(always)]
    unsafe fn load(&self, at: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let [x] = unsafe { self.x.items_inside::<1>(at) };
        x.convert()
    }

    unsafe fn load_pair(&self, at: usize, apart: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let [first, second] = unsafe {
            if apart == 1 {
                self.x.items_inside::<2>(at)
            } else {
                let ([first], [second]) = (self.x.items_inside::<1>(at), self.x.items_inside::<1>(at + apart));
                [first, second]
            }
        };
        Complex { re: first.convert().re, im: second.convert().re }
    }

    #[inline(always)]
    unsafe fn store(&mut self, at: usize, value: Complex<T>) {
        // SAFETY: the caller's contract.
        unsafe { self.out.write_items_inside(at, &[self.f.apply(value)]) }
    }

    unsafe fn store_pair(&mut self, at: usize, apart: usize, values: [T; 2]) {
        let [first, second] = values.map(|re| self.f.apply(Complex { re, im: T::ZERO }));
        // SAFETY: the caller's contract.
        unsafe {
            if apart == 1 {
                self.out.write_items_inside(at, &[first, second]);
            } else {
                self.out.write_items_inside(at, &[first]);
                self.out.write_items_inside(at + apart, &[second]);
            }
        }
    }
}

struct Replaced<'k, T> {
    data: GlobalMut<'k, Complex<T>>,
}

// Only one block has a line. It writes the line after the barrier that follows its last read, or each thread writes after its own reads.
impl<T: FftFloat> LineMemory<T> for Replaced<'_, T> {
    // If a transform takes several passes, the pass with twiddle factors writes another array.
    #[inline(always)]
    fn can_twiddle(&self) -> bool {
        false
    }

    #[inline(always)]
    fn is_aligned(&self) -> bool {
        self.data.is_aligned::<1>(0)
    }

    #[inline(always)]
    unsafe fn load_aligned(&self, at: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let [x] = unsafe { self.data.read_vector_inside::<1>(at) };
        x
    }

    #[inline(always)]
    unsafe fn load(&self, at: usize) -> Complex<T> {
        // SAFETY: the caller's contract.
        let [x] = unsafe { self.data.read_items_inside::<1>(at) };
        x
    }

    #[inline(always)]
    unsafe fn store(&mut self, at: usize, value: Complex<T>) {
        // SAFETY: the caller's contract.
        unsafe { self.data.write_items_inside(at, &[value]) }
    }
}
