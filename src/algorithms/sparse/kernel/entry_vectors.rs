//! Entries of a matrix that are read in vectors, whatever rows they are of.

use kernel_primitives::functor::Reduction;
use kernel_primitives::input::Source;
use kernel_primitives::prelude::*;

use super::csr::{Csr, column_of};

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

/// Blocks of 256 threads of a multiprocessor at once, for results that accumulate in `A`: the registers of more do not hold a thread's
/// vectors and their items.
pub(super) const fn vector_blocks<A>() -> usize {
    match size_of::<A>() {
        0..=4 => 5,
        5..=8 => 4,
        _ => 2,
    }
}

/// Neighbouring entries of a matrix in vectors of `N`, all of which lie inside. The last vector may have fewer.
pub(super) struct Vectors<'k, V, I, const N: usize> {
    /// The columns, as many as there are entries, or up to the end of the last vector if that can be read.
    columns: Global<'k, I>,
    values: Global<'k, V>,
    /// How many entries there are.
    len: u32,
    /// Whether each vector can be read at once: the last one lies inside the matrix, and all are aligned.
    whole: bool,
}

/// Columns and values of `M` vectors of `N` entries.
pub(super) struct Loaded<V, I, const N: usize, const M: usize> {
    columns: [[I; N]; M],
    values: [[V; N]; M],
}

impl<'k, V: Element, I: Integer + ConvertTo<u64>, const N: usize> Vectors<'k, V, I, N> {
    /// The `len` entries from `first`, which is a multiple of `N`; a fault unless they lie inside.
    ///
    /// Vectors begin at multiples of `N` in the matrix, wherever it lies in memory, so that the order of combination depends on the matrix
    /// alone.
    #[inline(always)]
    #[track_caller]
    pub(super) fn of(a: &Csr<'k, V, I>, first: usize, len: u32) -> Self {
        let ahead = a.columns.len().min(a.values.len()).saturating_sub(first);
        let padded = len.next_multiple_of(N as u32);
        let whole = padded as usize <= ahead && a.columns.is_aligned::<N>(first) && a.values.is_aligned::<N>(first);
        let count = if whole { padded } else { len } as usize;
        let end = first.saturating_add(count);
        Self { columns: a.columns.slice(first..end), values: a.values.slice(first..end), len, whole }
    }

    /// How many vectors there are.
    #[inline(always)]
    pub(super) fn vectors(&self) -> u32 {
        self.len.div_ceil(N as u32)
    }

    /// Columns and values of the vectors `place(0)`, `place(1)` and so on: `most` of them, a constant up to `M`. Instead of a vector or an
    /// entry after the end, the last one is read again: no branch lies between the loads. Without entries it is zeros.
    #[inline(always)]
    #[track_caller]
    pub(super) fn load<const M: usize>(&self, most: usize, place: impl Fn(usize) -> u32) -> Loaded<V, I, N, M> {
        let mut loaded = Loaded { columns: [[I::ZERO; N]; M], values: [[V::ZERO; N]; M] };
        let Some(last) = self.len.checked_sub(1) else {
            return loaded;
        };
        let first = |m: usize| place(m).min(last / N as u32) * N as u32;
        if self.whole {
            for (m, columns) in loaded.columns.iter_mut().enumerate() {
                if m < most {
                    // SAFETY: a vector that begins at an entry, all of which lie inside and are aligned.
                    *columns = unsafe { self.columns.read_vector_inside::<N>(first(m) as usize) };
                }
            }
            for (m, values) in loaded.values.iter_mut().enumerate() {
                if m < most {
                    // SAFETY: as above.
                    *values = unsafe { self.values.read_vector_inside::<N>(first(m) as usize) };
                }
            }
        } else {
            let entry = |m: usize, k: usize| (first(m) + k as u32).min(last) as usize;
            for (m, columns) in loaded.columns.iter_mut().enumerate() {
                for (k, column) in columns.iter_mut().enumerate() {
                    if m < most {
                        // SAFETY: the last entry at most.
                        [*column] = unsafe { self.columns.read_items_inside::<1>(entry(m, k)) };
                    }
                }
            }
            for (m, values) in loaded.values.iter_mut().enumerate() {
                for (k, value) in values.iter_mut().enumerate() {
                    if m < most {
                        // SAFETY: as above.
                        [*value] = unsafe { self.values.read_items_inside::<1>(entry(m, k)) };
                    }
                }
            }
        }
        loaded
    }

    /// What `most` vectors that were [loaded](Self::load) contribute to their rows: the products of entries and items of `x`. All items are on
    /// their way before one of the products is used. Without entries it is the identity.
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
        // No product is made of a zero that is no entry: an operator need not take it.
        let Some(last_column) = x.len().checked_sub(1).filter(|_| self.len > 0) else {
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
