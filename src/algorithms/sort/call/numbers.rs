//! Sorts by digits of numbers whose type is known only when the call is made.

use std::any::TypeId;

use super::{Order, SortKeys, SortPairs, keys_in_portions, pairs_in_portions};
use crate::algorithms::run::Run;
use crate::algorithms::transform::call::transform;
use crate::functor::{BinaryFn, Greater, Identity, Less};
use crate::input::{Counting, Source};
use crate::kernels::device::{SORT_PORTION, sort_tile_items};
use crate::{BufferSlice, BufferSliceMut, Element, Error, InputArg, Result, SortKey, bf16, f16};

type Bytes<'a> = BufferSlice<'a, u8>;
type BytesMut<'a> = BufferSliceMut<'a, u8>;

/// Evaluates to `Some` expression in which the first alias is the number type with this id, and the second one is the type whose kernels
/// sort it: an integer is sorted as one without a sign, because the launch turns the bits. Evaluates to `None` if that is no number.
macro_rules! by_number {
    ($id:expr, |$number:ident, $sorted:ident| $value:expr) => {
        by_number!(@ $id, |$number, $sorted| $value, i8: u8, i16: u16, i32: u32, i64: u64, u8: u8, u16: u16, u32: u32, u64: u64,
            f16: f16, bf16: bf16, f32: f32, f64: f64)
    };
    (@ $id:expr, |$number:ident, $sorted:ident| $value:expr, $($t:ident: $k:ident),*) => {{
        let id = $id;
        $(if id == TypeId::of::<$t>() {
            #[allow(dead_code)]
            type $number = $t;
            #[allow(dead_code)]
            type $sorted = $k;
            Some($value)
        } else)* {
            None
        }
    }};
}

/// Numbers, in ascending or descending order.
#[derive(Clone, Copy, Debug)]
pub(in crate::algorithms) struct Numbers {
    keys: TypeId,
    /// The bytes of a key. There is a pass for each.
    bytes: usize,
    descending: bool,
}

impl Numbers {
    /// Returns how to sort keys by digits, if they are numbers, and `C` is [`Less`] or [`Greater`].
    pub(in crate::algorithms) fn of<K: Element, C: BinaryFn<K> + 'static>() -> Option<Self> {
        // This is a constant. So programs with orders of their own do not have the kernels of this sort.
        if !C::IS_ORDER_OF_BITS {
            return None;
        }
        let [keys, order] = [TypeId::of::<K>(), TypeId::of::<C>()];
        let descending = order == TypeId::of::<Greater>();
        let found = is_number(keys) && (descending || order == TypeId::of::<Less>());
        found.then_some(Self { keys, bytes: size_of::<K>(), descending })
    }

    /// Sorts the keys, which have the type of [`of`](Self::of). So has the output, which has as many.
    pub(in crate::algorithms) fn sort(
        self,
        algorithm: &'static str,
        run: Run<'_>,
        keys: Bytes<'_>,
        out: BytesMut<'_>,
    ) -> Result<()> {
        let sorted = by_number!(self.keys, |T, K| {
            let (keys, out) = (keys.reinterpret::<K>()?, out.reinterpret::<K>()?);
            let order = self.order::<T>(algorithm)?;
            keys_in_portions(<K as SortKeys<()>>::kernels(), run, keys, out, order, SORT_PORTION)
        });
        sorted.expect("a number has been found")
    }

    /// Works as [`sort`](Self::sort), with a value for each key. The values have the type of [`Values::of`], and `values_out` has as many.
    pub(in crate::algorithms) fn sort_pairs(
        self,
        algorithm: &'static str,
        run: Run<'_>,
        (keys, values): (Bytes<'_>, Values<'_>),
        (keys_out, mut values_out): (BytesMut<'_>, BytesMut<'_>),
    ) -> Result<()> {
        let (values, bytes) = values.in_memory(algorithm, &run, &mut values_out)?;
        let sorted = by_number!(self.keys, |T, K| {
            let (keys, keys_out) = (keys.reinterpret()?, keys_out.reinterpret()?);
            let order = self.order::<T>(algorithm)?;
            match bytes {
                1 => pairs::<K, u8>(order, run, (keys, values), (keys_out, values_out)),
                2 => pairs::<K, u16>(order, run, (keys, values), (keys_out, values_out)),
                4 => pairs::<K, u32>(order, run, (keys, values), (keys_out, values_out)),
                _ => pairs::<K, u64>(order, run, (keys, values), (keys_out, values_out)),
            }
        });
        sorted.expect("a number has been found")
    }

    /// Returns whether `len` pairs can be sorted by digits. Consecutive values are written to the output before the sort, so the first of
    /// several passes must not write there.
    pub(in crate::algorithms) fn can_sort_pairs(self, len: usize, values: Values<'_>) -> bool {
        let has_several_passes = self.bytes > 1 && len > sort_tile_items(self.bytes, values.bytes());
        has_several_passes || matches!(values, Values::InMemory(..))
    }

    fn order<T: SortKey>(self, algorithm: &'static str) -> Result<Order> {
        let bits = 0..T::SORT_BITS;
        if self.descending { Order::of::<T, Greater>(algorithm, bits) } else { Order::of::<T, Less>(algorithm, bits) }
    }
}

/// Sorts pairs whose values have the size of `V`.
fn pairs<K, V>(
    order: Order,
    run: Run<'_>,
    (keys, values): (BufferSlice<'_, K>, Option<Bytes<'_>>),
    (keys_out, values_out): (BufferSliceMut<'_, K>, BytesMut<'_>),
) -> Result<()>
where
    K: SortKey + SortPairs<V, ()>,
    V: Element,
{
    let values = values.map(|values| values.reinterpret()).transpose()?;
    let out = (keys_out, values_out.reinterpret()?);
    pairs_in_portions(<K as SortPairs<V, ()>>::kernels(), run, (keys, values), out, order, SORT_PORTION)
}

/// Values of a sort by digits, which depends only on their size.
#[derive(Clone, Copy)]
pub(in crate::algorithms) enum Values<'a> {
    /// Numbers of so many bytes.
    InMemory(Bytes<'a>, usize),
    U32(Counting<u32>),
    U64(Counting<u64>),
}

impl<'a> Values<'a> {
    /// Returns the values of an input if they are numbers in memory, or consecutive numbers.
    pub(in crate::algorithms) fn of<S: Source>(values: &'a impl InputArg<S>) -> Option<Self> {
        if let Some(bytes) = values.buffer_bytes() {
            return is_number(TypeId::of::<S::Item>()).then_some(Self::InMemory(bytes, size_of::<S::Item>()));
        }
        let numbers = values.consecutive()?;
        let of_u64 = || numbers.downcast_ref().copied().map(Self::U64);
        numbers.downcast_ref().copied().map(Self::U32).or_else(of_u64)
    }

    /// Returns the values, or `None` if they are in the output now, and the bytes of a value.
    fn in_memory(
        self,
        algorithm: &'static str,
        run: &Run<'_>,
        out: &mut BytesMut<'_>,
    ) -> Result<(Option<Bytes<'a>>, usize)> {
        let out = BufferSliceMut::from(out);
        let written = match self {
            Self::InMemory(values, bytes) => return Ok((Some(values), bytes)),
            Self::U32(numbers) => transform(run.part(), numbers, Identity, out.reinterpret::<u32>()?),
            Self::U64(numbers) => transform(run.part(), numbers, Identity, out.reinterpret::<u64>()?),
        };
        match written {
            Err(Error::WrongDevice { stream, buffer, .. }) => {
                let (kernel, argument) = (algorithm.into(), "`values_out`".into());
                Err(Error::WrongDevice { kernel, argument, stream, buffer })
            }
            written => written.map(|()| (None, self.bytes())),
        }
    }

    /// The bytes of a value.
    fn bytes(self) -> usize {
        match self {
            Self::InMemory(_, bytes) => bytes,
            Self::U32(_) => size_of::<u32>(),
            Self::U64(_) => size_of::<u64>(),
        }
    }
}

/// Whether a type is one of the numbers that the library has kernels for.
fn is_number(id: TypeId) -> bool {
    by_number!(id, |T, K| ()).is_some()
}
