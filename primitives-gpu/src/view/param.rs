//! How a kernel's parameters are laid out; used by the expansion of `#[kernel]`.

/// The `N`th parameter of a kernel's PTX entry, where a view is an address and a length.
#[doc(hidden)]
pub trait FlatParam<const N: usize> {
    /// Its type.
    type Type;
}

/// Places `size` bytes aligned to `align` after `end`: the offset and the new end.
#[doc(hidden)]
pub const fn arena_layout(end: usize, size: usize, align: usize) -> (usize, usize) {
    let offset = end.next_multiple_of(align);
    (offset, offset + size)
}
