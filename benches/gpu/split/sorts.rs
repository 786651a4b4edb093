//! Sorts over several GPUs, and what finds the first few or reduces runs.

use kernel_primitives::expr::{Functions, PairFunctions, Scalar, element_index, scalar};
use kernel_primitives::functor::{Add, Less};
use kernel_primitives::{Buffer, Result, Split, SplitBuffer, split};

use super::{Job, LOOK, PERIOD, filled};

/// Numbers without order, each once: an odd factor of a power of two.
fn shuffled<T: Scalar>(over: &Split, n: usize) -> Result<SplitBuffer<T>> {
    filled(over, n, (element_index::<u64>() * FACTOR as u64).floor_rem(scalar(n as u64)).cast::<T>())
}
const FACTOR: usize = 2_654_435_761;

/// Whether the first elements of each GPU, and the last, are those of an index.
fn are_elements<T: Scalar>(x: &SplitBuffer<T>, of: impl Fn(usize) -> T) -> Result<bool> {
    for device in 0..x.split().streams().len() {
        let (range, part) = (x.range(device), x.part(device));
        let look = LOOK.min(range.len());
        let (head, tail) = (part.slice(..look)?.to_vec()?, part.slice(range.len() - look..)?.to_vec()?);
        let expected = |start: usize| (start..start + look).map(&of);
        if !expected(range.start).eq(head) || !expected(range.end - look).eq(tail) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) struct Sort {
    x: SplitBuffer<u32>,
    out: SplitBuffer<u32>,
}

impl Job for Sort {
    fn new(split: &Split, n: usize) -> Result<Self> {
        Ok(Self { x: shuffled(split, n)?, out: SplitBuffer::zeroed(split, n)? })
    }

    fn run(&mut self) -> Result<()> {
        split::sort_keys(&self.x, &mut self.out, Less)
    }

    fn is_right(&self) -> Result<bool> {
        are_elements(&self.out, |i| i as u32)
    }
}

/// Each value is what the key was made of.
pub(super) struct SortPairs {
    keys: SplitBuffer<u32>,
    values: SplitBuffer<u64>,
    out: SplitBuffer<u32>,
    moved: SplitBuffer<u64>,
}

impl Job for SortPairs {
    fn new(split: &Split, n: usize) -> Result<Self> {
        let (keys, values) = (shuffled(split, n)?, filled(split, n, element_index::<u64>())?);
        let (out, moved) = (SplitBuffer::zeroed(split, n)?, SplitBuffer::zeroed(split, n)?);
        Ok(Self { keys, values, out, moved })
    }

    fn run(&mut self) -> Result<()> {
        split::sort_pairs(&self.keys, &self.values, &mut self.out, &mut self.moved, Less)
    }

    fn is_right(&self) -> Result<bool> {
        // Of an odd number, the inverse among those of 64 bits: each step doubles its right bits.
        let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub((FACTOR as u64).wrapping_mul(x))));
        let mask = self.out.len() as u64 - 1;
        let value = |i: usize| inverse.wrapping_mul(i as u64) & mask;
        Ok(are_elements(&self.out, |i| i as u32)? && are_elements(&self.moved, value)?)
    }
}

/// Runs of as many ones.
pub(super) struct ReduceByKey {
    keys: SplitBuffer<u32>,
    ones: SplitBuffer<u32>,
    runs: Option<(SplitBuffer<u32>, SplitBuffer<u32>)>,
}

impl Job for ReduceByKey {
    fn new(split: &Split, n: usize) -> Result<Self> {
        let keys = filled(split, n, element_index::<u64>().floor_div(scalar(PERIOD as u64)).cast::<u32>())?;
        Ok(Self { keys, ones: filled(split, n, scalar(1u32))?, runs: None })
    }

    fn run(&mut self) -> Result<()> {
        self.runs = Some(split::reduce_by_key(&self.keys, &self.ones, Add)?);
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        let Some((runs, sums)) = &self.runs else { return Ok(false) };
        let n = self.keys.len();
        let of = |run: usize| PERIOD.min(n - run * PERIOD) as u32;
        Ok(runs.len() == n.div_ceil(PERIOD) && are_elements(runs, |i| i as u32)? && are_elements(sums, of)?)
    }
}

pub(super) struct TopK {
    x: SplitBuffer<u32>,
    first: Option<Buffer<u32>>,
}

impl Job for TopK {
    fn new(split: &Split, n: usize) -> Result<Self> {
        Ok(Self { x: shuffled(split, n)?, first: None })
    }

    fn run(&mut self) -> Result<()> {
        self.first = Some(split::top_k(&self.x, 100, Less)?);
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        let Some(first) = &self.first else { return Ok(false) };
        Ok(first.to_vec()?.into_iter().eq(0..100))
    }
}
