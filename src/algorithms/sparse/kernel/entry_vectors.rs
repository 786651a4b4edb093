//! Entries of a matrix that are read in vectors, whatever rows they are of.

use kernel_primitives::functor::Reduction;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use super::csr::{Csr, Entries, column_of};

/// Entries that a thread has under way where they are read one by one.
const AHEAD: usize = 2;

/// The most entries of a vector.
pub(super) const WIDEST: usize = 4;

/// Entries of a vector: as many as 16 bytes hold values, and columns, and no more than `most`, which is a power of two.
pub(super) const fn width<V, I>(most: usize) -> usize {
    let bytes = if size_of::<V>() > size_of::<I>() { size_of::<V>() } else { size_of::<I>() };
    let width = match bytes {
        0..=4 => WIDEST,
        5..=8 => 2,
        _ => 1,
    };
    if width < most { width } else { most }
}

/// Neighbouring entries of a matrix in vectors of `N`, each of which can be read at once: all lie inside, and are aligned. There is one at
/// least. The last vector may have entries after these.
pub(super) struct Vectors<'k, V, I, const N: usize> {
    /// The columns up to the end of the last vector.
    columns: Global<'k, I>,
    values: Global<'k, V>,
    /// How many entries there are.
    len: u32,
}

/// Columns and values of `M` vectors of `N` entries.
pub(super) struct Loaded<V, I, const N: usize, const M: usize> {
    columns: [[I; N]; M],
    values: [[V; N]; M],
}

impl<V: Element, I: Integer, const N: usize, const M: usize> Loaded<V, I, N, M> {
    /// Zeros.
    pub(super) const NONE: Self = Self { columns: [[I::ZERO; N]; M], values: [[V::ZERO; N]; M] };
}

impl<'k, V: Element, I: Integer + ConvertTo<u64>, const N: usize> Vectors<'k, V, I, N> {
    /// The `len` entries from `first`, which is a multiple of `N`. If one of their vectors cannot be read at once, or there is none, they are
    /// read [one by one](one_by_one): in a loop of its own. Of two branches with the same loads, the compiler makes loads of chosen addresses,
    /// which are no vectors.
    ///
    /// Vectors begin at multiples of `N` in the matrix, wherever it lies in memory, so that the order of combination depends on the matrix
    /// alone.
    #[inline(always)]
    #[track_caller]
    pub(super) fn of(a: &Csr<'k, V, I>, first: usize, len: u32) -> Option<Self> {
        let ahead = a.columns.len().min(a.values.len()).saturating_sub(first);
        let padded = len.next_multiple_of(N as u32) as usize;
        if len == 0 || padded > ahead || !a.columns.is_aligned::<N>(first) || !a.values.is_aligned::<N>(first) {
            return None;
        }
        let range = first..first + padded;
        Some(Self { columns: a.columns.slice(range.clone()), values: a.values.slice(range), len })
    }

    /// How many vectors there are.
    #[inline(always)]
    pub(super) fn vectors(&self) -> u32 {
        self.len.div_ceil(N as u32)
    }

    /// Columns and values of the vectors `place(0)`, `place(1)` and so on: `most` of them, a constant up to `M`. Instead of a vector after the
    /// end, the last one is read again: no branch lies between the loads.
    #[inline(always)]
    #[track_caller]
    pub(super) fn load<const M: usize>(&self, most: usize, place: impl Fn(usize) -> u32) -> Loaded<V, I, N, M> {
        let mut loaded = Loaded::NONE;
        let last = self.vectors() - 1;
        let first = |m: usize| (place(m).min(last) * N as u32) as usize;
        for (m, columns) in loaded.columns.iter_mut().enumerate() {
            if m < most {
                // SAFETY: one of the vectors.
                *columns = unsafe { self.columns.read_vector_inside::<N>(first(m)) };
            }
        }
        for (m, values) in loaded.values.iter_mut().enumerate() {
            if m < most {
                // SAFETY: as above.
                *values = unsafe { self.values.read_vector_inside::<N>(first(m)) };
            }
        }
        loaded
    }

    /// What `most` vectors that were [loaded](Self::load) contribute to their rows: the products of entries and items of `x`. All items are on
    /// their way before one of the products is used.
    ///
    /// A column outside, which another launch has written since the matrix was checked, counts as the last one.
    #[inline(always)]
    #[track_caller]
    pub(super) fn products<S, R, const M: usize>(
        &self,
        loaded: &Loaded<V, I, N, M>,
        most: usize,
        x: Input<S>,
        op: &R,
    ) -> [[R::Accum; N]; M]
    where
        S: Source,
        R: Reduction<(V, S::Item)>,
    {
        let mut products = [[op.identity(); N]; M];
        let Some(last_column) = x.len().checked_sub(1) else {
            return products;
        };
        for (m, products) in products.iter_mut().enumerate() {
            for (k, product) in products.iter_mut().enumerate() {
                if m < most {
                    let column = column_of(loaded.columns[m][k], last_column);
                    // SAFETY: the last column at most.
                    let [item] = unsafe { x.items_inside::<1>(column) };
                    *product = op.pre((loaded.values[m][k], item), column as u64);
                }
            }
        }
        products
    }
}

/// Gives `put` the products of entries, with their places among these: of `thread` and of each so many `threads` further.
#[inline(always)]
#[track_caller]
pub(super) fn one_by_one<V, S, I, R>(
    entries: &Entries<'_, V, I>,
    thread: usize,
    threads: usize,
    x: Input<S>,
    op: &R,
    mut put: impl FnMut(usize, R::Accum),
) where
    V: Element,
    S: Source,
    I: Integer + ConvertTo<u64>,
    R: Reduction<(V, S::Item)>,
{
    let mut at = thread;
    while at < entries.len() {
        let products: [_; AHEAD] = entries.products(at, threads, AHEAD, x, op);
        for (k, &product) in products.iter().enumerate() {
            let entry = at + k * threads;
            if entry < entries.len() {
                put(entry, product);
            }
        }
        at += AHEAD * threads;
    }
}
