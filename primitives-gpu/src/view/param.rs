//! How a kernel's parameters are laid out; used by the expansion of `#[kernel]`.

use super::SharedStorage;
use crate::element::{Element, KernelParam};

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

/// How a type, or a kernel's parameters, lie in memory, as a hash (FNV-1a).
///
/// Host and device compute it each for itself. When the host loads a kernel it compares the two: a file that was compiled
/// differently for either would otherwise pass arguments to the wrong places.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout(u64);

impl Layout {
    /// The layout of a `T` of that kind, without what it consists of.
    pub const fn of<T>(kind: &str) -> Self {
        Self(0xcbf2_9ce4_8422_2325).text(kind).number(size_of::<T>() as u64).number(align_of::<T>() as u64)
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

    const fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u64).wrapping_mul(0x0100_0000_01b3))
    }

    const fn number(mut self, number: u64) -> Self {
        let mut i = 0;
        while i < 64 {
            self = self.byte((number >> i) as u8);
            i += 8;
        }
        self
    }

    /// With its length, so that two texts differ from another two that have the same characters in a row.
    const fn text(mut self, text: &str) -> Self {
        self = self.number(text.len() as u64);
        let mut i = 0;
        while i < text.len() {
            self = self.byte(text.as_bytes()[i]);
            i += 1;
        }
        self
    }
}

/// What `max_threads` and `min_blocks` of `#[kernel]` say; 0 where they are not given.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    max_threads: u32,
    min_blocks: u32,
}

impl LaunchBounds {
    /// The most threads of a block, and the fewest blocks that a multiprocessor should hold.
    pub const fn new(max_threads: u32, min_blocks: u32) -> Self {
        assert!(max_threads <= 1024, "`max_threads` is at most 1024, the threads of the largest block");
        assert!(min_blocks <= 32, "`min_blocks` is at most 32, the blocks of the largest multiprocessor");
        Self { max_threads, min_blocks }
    }

    /// The most threads of a block, if the kernel says.
    pub const fn max_threads(self) -> Option<u32> {
        if self.max_threads == 0 { None } else { Some(self.max_threads) }
    }

    /// Eight hexadecimal digits for each number, for the builder.
    pub const fn digits(self) -> [u8; 16] {
        hexadecimal((self.max_threads as u64) << 32 | self.min_blocks as u64)
    }
}

const fn hexadecimal(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    let mut i = 0;
    while i < digits.len() {
        digits[i] = b"0123456789abcdef"[(number >> (60 - 4 * i)) as usize & 15];
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
