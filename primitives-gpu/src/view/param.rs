//! How a kernel's parameters are laid out; used by the expansion of `#[kernel]`.

use super::SharedStorage;
use crate::element::{Element, KernelParam};
use crate::simt::{Block, Dim3, FaultKind, LaunchShape};

/// The `N`th parameter of a kernel's PTX entry, where a view is an address and a length.
#[doc(hidden)]
pub trait FlatParam<const N: usize> {
    /// Its type.
    type Type;
}

/// Places a storage after `end`: its offset and the new end.
#[doc(hidden)]
pub const fn arena_layout<S: SharedStorage>(end: usize) -> (usize, usize) {
    let offset = end.next_multiple_of(S::ALIGN);
    (offset, offset + S::BYTES)
}

/// A kernel's parameter in shared memory, for the emulator's reports.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedParam {
    /// Its name.
    pub name: &'static str,
    /// Where it starts, in bytes from the start of the block's shared memory.
    pub offset: usize,
    /// Its bytes; `None` for the rest.
    pub bytes: Option<usize>,
    /// Bytes of an element; 0 if kernels do not index it.
    pub element_bytes: usize,
}

impl SharedParam {
    /// A parameter `Shared<S>`.
    pub const fn storage<S: SharedStorage>(name: &'static str, offset: usize) -> Self {
        Self { name, offset, bytes: Some(S::BYTES), element_bytes: S::ELEMENT_BYTES }
    }

    /// A parameter `SharedSlice<T>`.
    pub const fn rest<T>(name: &'static str, offset: usize) -> Self {
        Self { name, offset, bytes: None, element_bytes: size_of::<T>() }
    }
}

/// How a type, or a kernel's parameters, lie in memory, as a hash.
///
/// Host and device compute it each for itself. When the host loads a kernel it compares the two: a file that was compiled
/// differently for either would otherwise pass arguments to the wrong places.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout(u64);

impl Layout {
    /// The layout of a `T` of that kind, without what it consists of.
    pub const fn of<T>(kind: &str) -> Self {
        Self(0).text(kind).number(size_of::<T>() as u64).number(align_of::<T>() as u64)
    }

    /// With a part: a field at its offset, or a parameter at its position.
    pub const fn with(self, name: &str, place: usize, part: Self) -> Self {
        self.text(name).number(place as u64).number(part.0)
    }

    /// The hash.
    pub const fn hash(self) -> u64 {
        self.0
    }

    /// The hash in hexadecimal, as it stands in a kernel's module.
    pub const fn digits(self) -> [u8; 16] {
        hexadecimal(self.0)
    }

    /// Mixes in eight bytes at once, because the compiler interprets this several times for each kernel of a program. From one hash, two
    /// numbers never lead to the same hash.
    const fn number(self, number: u64) -> Self {
        let both = self.0 ^ number;
        let mixed = (both ^ both >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ mixed >> 32)
    }

    /// With its length, so that two texts differ from another two that have the same characters in a row.
    const fn text(mut self, text: &str) -> Self {
        self = self.number(text.len() as u64);
        let (mut word, mut i) = (0, 0);
        while i < text.len() {
            word = word << 8 | text.as_bytes()[i] as u64;
            i += 1;
            if i % 8 == 0 {
                self = self.number(word);
            }
        }
        self.number(word)
    }
}

/// What `threads`, `max_threads`, `min_blocks` and `one_dimensional` of `#[kernel]` say; 0 and false where they are not given.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    pub(crate) shape: LaunchShape,
    max_threads: u32,
    min_blocks: u32,
}

impl LaunchBounds {
    /// No bounds.
    pub const NONE: Self = Self::new(None, None, None);

    /// The extents of every block, the most threads of one, and the fewest blocks that a multiprocessor should hold.
    pub const fn new(threads: Option<[u64; 3]>, max_threads: Option<u64>, min_blocks: Option<u64>) -> Self {
        let threads = match threads {
            None => [0; 3],
            Some([x, y, z]) => {
                assert!(x > 0 && y > 0 && z > 0, "`threads` has extents above 0");
                assert!(z <= 64, "the third extent of `threads` is at most 64");
                assert!(
                    x <= 1024 && y <= 1024 && x * y * z <= 1024,
                    "`threads` is at most 1024 in all, the threads of the largest block"
                );
                [x as u32, y as u32, z as u32]
            }
        };
        let max_threads = match max_threads {
            None => 0,
            Some(threads) => {
                assert!(threads > 0, "`max_threads` is above 0");
                assert!(threads <= 1024, "`max_threads` is at most 1024, the threads of the largest block");
                threads as u32
            }
        };
        let min_blocks = match min_blocks {
            None => 0,
            Some(blocks) => {
                assert!(blocks > 0, "`min_blocks` is above 0");
                assert!(blocks <= 32, "`min_blocks` is at most 32, the blocks of the largest multiprocessor");
                blocks as u32
            }
        };
        Self { shape: LaunchShape { threads, dimensions: 3 }, max_threads, min_blocks }
    }

    /// With blocks and a grid that have one dimension.
    pub const fn with_one_dimension(mut self) -> Self {
        self.shape.dimensions = 1;
        self
    }

    /// Whether blocks and grid have one dimension.
    pub const fn one_dimensional(self) -> bool {
        self.shape.one_dimensional()
    }

    /// The extents of every block, if the kernel says.
    pub const fn threads(self) -> Option<Dim3> {
        self.shape.threads()
    }

    /// The most threads of a block, if the kernel says.
    pub const fn max_threads(self) -> Option<u32> {
        let [x, y, z] = self.shape.threads;
        match (x, self.max_threads) {
            (0, 0) => None,
            (0, threads) => Some(threads),
            _ => Some(x * y * z),
        }
    }

    /// Eight hexadecimal digits for each number and for the bytes of shared memory of a kernel's parameters, for the builder.
    pub const fn digits(self, shared: usize) -> [u8; 48] {
        let [x, y, z] = self.shape.threads;
        let numbers = [x, y, z, self.max_threads, self.min_blocks, shared as u32];
        let mut digits = [0; 48];
        let mut i = 0;
        while i < digits.len() {
            digits[i] = digit(numbers[i / 8] as u64, 7 - i % 8);
            i += 1;
        }
        digits
    }
}

/// A fault unless the launch has the threads and dimensions that the bounds of a kernel say.
#[doc(hidden)]
#[track_caller]
pub fn require_threads(cx: Block<'_>, bounds: LaunchBounds) {
    let (block, grid) = (cx.block_dim(), cx.grid_dim());
    let threads = bounds.threads().unwrap_or(if bounds.one_dimensional() { block.x.into() } else { block });
    let (rows, layers) = if bounds.one_dimensional() { (1, 1) } else { (grid.y, grid.z) };
    let extents = [(block.x, threads.x), (block.y, threads.y), (block.z, threads.z), (grid.y, rows), (grid.z, layers)];
    for &(extent, expected) in &extents {
        if extent != expected {
            cx.raise(FaultKind::OtherShape, [extent as u64, expected as u64], core::panic::Location::caller());
        }
    }
}

/// A digit of a hexadecimal number, from the least significant one.
const fn digit(number: u64, place: usize) -> u8 {
    b"0123456789abcdef"[(number >> (4 * place)) as usize & 15]
}

const fn hexadecimal(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    let mut i = 0;
    while i < digits.len() {
        digits[i] = digit(number, 15 - i);
        i += 1;
    }
    digits
}

/// The layout of a parameter by value.
#[doc(hidden)]
pub const fn value_layout<T: KernelParam>() -> Layout {
    T::LAYOUT
}

/// The layout of an element.
#[doc(hidden)]
pub const fn element_layout<T: Element>() -> Layout {
    T::LAYOUT
}

/// The layout of a parameter that is a view: an address, a length, and elements.
#[doc(hidden)]
pub const fn view_layout<T: Element>() -> Layout {
    Layout::of::<(*mut T, usize)>("view").with("", 0, T::LAYOUT)
}

/// The layout of a storage in shared memory.
#[doc(hidden)]
pub const fn storage_layout<S: SharedStorage>() -> Layout {
    Layout::of::<()>("shared").number(S::BYTES as u64).number(S::ALIGN as u64)
}

#[cfg(test)]
mod tests {
    // The derives implement the traits of the crate as others see it.
    use kernel_primitives::{Element, KernelParam};

    macro_rules! layout {
        ($($t:tt)*) => {{
            #[derive(Clone, Copy, KernelParam)]
            #[allow(dead_code)]
            $($t)*
            P::LAYOUT.hash()
        }};
    }

    /// Each differs from the others in one thing.
    #[test]
    fn layouts_differ_in_fields_order_types_and_alignment() {
        let layouts = [
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: u32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    b: u32,
                    a: u32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: i32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: f32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: u64,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: u32,
                    c: u32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: [u32; 1],
                }
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                    b: [u8; 4],
                }
            ),
            layout!(
                #[repr(C, align(8))]
                struct P {
                    a: u32,
                    b: u32,
                }
            ),
            layout!(
                #[repr(C)]
                struct P(u32, u32);
            ),
            layout!(
                #[repr(C)]
                struct P {
                    a: u32,
                }
            ),
            layout!(
                struct P;
            ),
            kernel_primitives::view::view_layout::<u32>().hash(),
            u32::LAYOUT.hash(),
            <()>::LAYOUT.hash(),
            <[u32; 2]>::LAYOUT.hash(),
            <[u32; 3]>::LAYOUT.hash(),
        ];
        for (i, one) in layouts.iter().enumerate() {
            for (j, other) in layouts.iter().enumerate().filter(|&(j, _)| i != j) {
                assert_ne!(one, other, "{i} and {j}");
            }
        }
    }

    #[test]
    fn a_change_deep_inside_changes_the_layout() {
        #[derive(Clone, Copy, Element)]
        #[repr(C)]
        struct Inner<T>(T);
        #[derive(Clone, Copy, KernelParam)]
        #[repr(C)]
        struct Outer<T>(T, [Inner<T>; 2]);
        assert_ne!(Outer::<u32>::LAYOUT, Outer::<f32>::LAYOUT);
        assert_eq!(Outer::<u32>::LAYOUT, Outer::<u32>::LAYOUT);
    }

    #[test]
    fn the_hash_is_written_in_hexadecimal() {
        let layout = u32::LAYOUT;
        assert_eq!(str::from_utf8(&layout.digits()), Ok(&*format!("{:016x}", layout.hash())));
    }
}
