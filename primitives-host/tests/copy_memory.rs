//! The host memory that a copy takes on the emulator, in addition to the two buffers.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use primitives_host::{Device, Result};

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

/// The emulator notes which bytes are written, in one bit for each. There is only one test, because all tests would count together.
#[test]
fn a_copy_from_a_partly_written_buffer_takes_a_bit_for_each_byte() -> Result<()> {
    const BYTES_OF_BUFFER: usize = 8 << 20;
    let stream = Device::emulator().stream()?;
    let mut source = stream.buffer_uninit::<u8>(BYTES_OF_BUFFER)?;
    source.slice_mut(..BYTES_OF_BUFFER / 2)?.copy_from(&vec![7; BYTES_OF_BUFFER / 2])?;
    let mut target = stream.buffer_uninit::<u8>(BYTES_OF_BUFFER)?;
    let before = BYTES.load(SeqCst);
    MOST.store(before, SeqCst);
    target.as_mut_slice().copy_from_device(&stream, source.as_slice())?;
    let most = MOST.load(SeqCst) - before;
    assert!(most < BYTES_OF_BUFFER / 8 + (64 << 10), "{most} bytes");
    Ok(())
}
