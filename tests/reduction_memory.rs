//! Tests the memory that reductions take in addition to their inputs and results.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use kernel_primitives::expr::*;
use kernel_primitives::{Device, Result, Stream};

/// The system's allocator, which counts.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// The bytes that are allocated now, and the most that were allocated.
static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all of the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = BYTES.fetch_add(layout.size(), SeqCst) + layout.size();
        MOST.fetch_max(bytes, SeqCst);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Returns the most bytes that `run` has allocated at a time.
fn peak(run: impl FnOnce() -> Result<()>) -> Result<usize> {
    let before = BYTES.load(SeqCst);
    MOST.store(before, SeqCst);
    run()?;
    Ok(MOST.load(SeqCst) - before)
}

/// Returns the bytes that reductions of an array of this shape to its columns take at a time, in addition to the results.
fn of_columns<T: Summed>(stream: &Stream, shape: [usize; 3]) -> Result<usize> {
    let x = Tensor::<T>::zeros(stream, shape)?;
    let (sums, places) = (x.sum().axes(&[1]).tensor()?, x.arg_max().axes(&[1]).tensor()?);
    let sum = peak(|| x.sum().axes(&[1]).assign_to(&sums))?;
    let arg_max = peak(|| x.arg_max().axes(&[1]).assign_to(&places))?;
    Ok(sum.max(arg_max))
}

/// There is only one test, because all tests would count together.
#[test]
fn reductions_take_little_memory() -> Result<()> {
    of_host()?;
    of_device()
}

/// On a GPU, blocks share the result in memory of the stream. It is there after the first reduction.
fn of_device() -> Result<()> {
    let stream = Device::auto()?.stream()?;
    let x = Tensor::<f32>::zeros(&stream, [1000, 2000])?;
    let results = (x.sum().tensor()?, x.sum().axes(&[0]).tensor()?, x.sum().axes(&[1]).tensor()?);
    let before = stream.device().counters();
    x.sum().assign_to(&results.0)?;
    x.sum().axes(&[0]).assign_to(&results.1)?;
    x.sum().axes(&[1]).assign_to(&results.2)?;
    let cost = stream.device().counters().since(before);
    assert_eq!((cost.launches, cost.allocations), (3, 0));
    Ok(())
}

/// On the CPU, the memory is that of the results of a few pieces, for any number of columns of any length.
fn of_host() -> Result<()> {
    let stream = Device::emulator().stream()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // This is the memory that pieces of a result have in common, and a piece in each thread.
    let limit = (4 << 20) + (threads << 20) + (1 << 20);
    let mut most = Vec::new();
    for shape in
        [[1, 4, 1 << 20], [1, 64, 1 << 18], [1, 256, 1 << 14], [1, 1000, 5000], [1, 1 << 14, 1024], [40, 20, 5000]]
    {
        most.push((shape, of_columns::<u8>(&stream, shape)?));
    }
    for shape in [[1, 4, 1 << 20], [1, 100, 10_000], [3, 1000, 1025]] {
        most.push((shape, of_columns::<f64>(&stream, shape)?));
    }
    assert!(most.iter().all(|most| most.1 < limit), "{limit} bytes are the limit: {most:?}");
    Ok(())
}
