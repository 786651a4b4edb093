//! Copies of elements in memory, byte by byte or at strides.

/// # Safety
/// `size` bytes must be readable.
pub(super) unsafe fn read_word(from: *const u8, size: usize) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the caller's contract.
    unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
    u64::from_le_bytes(bytes)
}

/// Copies elements at strides.
///
/// # Safety
/// Both addresses must have `len` elements of that size at their strides, and its alignment. The elements of the two must be apart, or they
/// must be the same elements in the same places.
pub(in crate::expr) unsafe fn copy_run(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    len: usize,
    size: usize,
) {
    /// # Safety
    /// The conditions of `copy_run` hold.
    unsafe fn each<T: Copy>(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, len: usize) {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        debug_assert!(from.is_aligned() && to.is_aligned(), "elements are aligned");
        // SAFETY: the caller's contract.
        unsafe {
            match (from_stride, to_stride) {
                (1, 1) => from.copy_to(to, len),
                (0, 1) => std::slice::from_raw_parts_mut(to, len).fill(from.read()),
                _ => {
                    for i in 0..len as isize {
                        to.offset(i * to_stride).write(from.offset(i * from_stride).read());
                    }
                }
            }
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => each::<u8>(from, from_stride, to, to_stride, len),
            2 => each::<u16>(from, from_stride, to, to_stride, len),
            4 => each::<u32>(from, from_stride, to, to_stride, len),
            _ => each::<u64>(from, from_stride, to, to_stride, len),
        }
    }
}
