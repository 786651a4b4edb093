//! Elements and reductions that are difficult on purpose, for the kernels of all test binaries.

use kernel_primitives::prelude::*;

/// Has twelve bytes, which is not a power of two. It needs three words to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
pub struct Twelve {
    pub a: f32,
    pub b: u32,
    pub c: i32,
}

/// Has sixteen bytes. It is the largest element that a warp exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
pub struct Sixteen {
    pub a: u64,
    pub b: f64,
}

/// An element with a `bool`, so that not all its bytes are values.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
pub struct Flagged {
    pub flags: [bool; 2],
    pub value: u16,
}

/// The map from `x` to `a * x + b`, wrapping. Composition is associative and not commutative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Element)]
#[repr(C)]
pub struct Map<T> {
    pub a: T,
    pub b: T,
}

/// Composes maps: the first map is applied first, then the second.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Compose;

impl<T: Number> BinaryFn<Map<T>> for Compose {
    type Output = Map<T>;
    #[inline(always)]
    fn apply(&self, f: Map<T>, g: Map<T>) -> Map<T> {
        Map { a: f.a.mul(g.a), b: f.b.mul(g.a).add(g.b) }
    }
}

impl<T: Number> Reducer<Map<T>> for Compose {
    #[inline(always)]
    fn identity(&self) -> Map<T> {
        Map { a: T::ONE, b: T::ZERO }
    }
}

/// An upper triangular matrix with ones on its diagonal. It has twelve bytes, and its product is not commutative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Element)]
#[repr(C)]
pub struct Triangular {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl BinaryFn<Triangular> for Compose {
    type Output = Triangular;
    #[inline(always)]
    fn apply(&self, f: Triangular, g: Triangular) -> Triangular {
        Triangular {
            x: f.x.wrapping_add(g.x),
            y: f.y.wrapping_add(g.y),
            z: f.z.wrapping_add(g.z).wrapping_add(f.x.wrapping_mul(g.y)),
        }
    }
}

impl Reducer<Triangular> for Compose {
    #[inline(always)]
    fn identity(&self) -> Triangular {
        Triangular { x: 0, y: 0, z: 0 }
    }
}

/// The last of two values. It is associative, and wrong at once if the order is not kept. Its identity is 0, which no
/// input is.
#[derive(Clone, Copy, Debug, KernelParam)]
pub struct Last;

impl BinaryFn<u8> for Last {
    type Output = u8;
    #[inline(always)]
    fn apply(&self, a: u8, b: u8) -> u8 {
        if b == 0 { a } else { b }
    }
}

impl Reducer<u8> for Last {
    #[inline(always)]
    fn identity(&self) -> u8 {
        0
    }
}
