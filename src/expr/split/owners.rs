//! The owners of the items of indices. A gather over devices sorts its indices by owner.

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::Storage;
use primitives_host::{Buffer, BufferSlice, Result, Stream};

use crate::expr::dtype::{DType, Scalar};
use crate::expr::evaluate::{launch, prepare};
use crate::expr::graph::{Kind, Op, View, arguments, convert, function_of_two, node, zero};
use crate::expr::layout::shape::{Layout, MAX_RANK, Shape};
use crate::expr::program::lower;
use crate::expr::tensor::Tensor;

/// Makes a read-only vector of the first `len` elements of a buffer.
pub(crate) fn vector_of<T: Scalar>(stream: &Stream, buffer: &Buffer<T>, len: usize) -> Arc<View> {
    let layout = Layout::contiguous(vector(len));
    Tensor::<T>::at(Arc::new(Storage::shared(buffer)), stream.clone(), layout).view
}

fn vector(len: usize) -> Shape {
    Shape::new(&[len]).unwrap_or(Shape::SCALAR)
}

/// The items that some indices of a vector name. The vector is divided into parts.
pub(crate) struct Wanted {
    /// The number of the part that has the item.
    part: Tensor<u16>,
    /// The number of each index.
    number: Tensor<u32>,
    /// The number of the item in its part.
    item: Tensor<u32>,
}

impl Wanted {
    /// Computes the items of a range of indices. The parts end at `ends`; no part is empty or has 2^32 items. An index out of bounds is a
    /// fault.
    pub(crate) fn of(
        (place, call): (&'static Location<'static>, &'static str),
        index: &Arc<View>,
        range: Range<usize>,
        ends: &[usize],
    ) -> Result<Self> {
        let (stream, len) = (&index.stream, range.len());
        let index =
            index.with_layout(Layout { offset: index.layout.offset + range.start, ..Layout::contiguous(vector(len)) });
        let all = ends.last().copied().unwrap_or(0);
        // The computation takes the narrower of two types, if this type can hold all ends.
        let is_narrow = index.dtype.size() <= 4 && !index.dtype.is_signed() && u32::try_from(all).is_ok();
        let dtype = if is_narrow { DType::U32 } else { DType::U64 };
        let given = node(Kind::View(index.clone()), index.dtype, arguments([]));
        // This is a vector with the length of `x`, whose elements are all the same element. A gather from it finds indices out of bounds,
        // as on one device.
        let zeros = Tensor::<u16>::zeros(stream, 1)?.view;
        let zeros = zeros.with_layout(Layout { shape: vector(all), strides: [0; MAX_RANK], offset: 0 });
        let mut part = node(Kind::Gather(zeros), DType::U16, arguments([given.clone()]));
        let (given, mut first) = (convert(given, dtype), zero(dtype));
        for &end in &ends[..ends.len().saturating_sub(1)] {
            let end = node(Kind::Scalar(end as u64), dtype, arguments([]));
            let is_later = node(Kind::Op(Op::Le), DType::Bool, arguments([end.clone(), given.clone()]));
            part = function_of_two(Op::Add, part, convert(is_later.clone(), DType::U16));
            first = node(Kind::Op(Op::Select), dtype, arguments([is_later, end, first]));
        }
        let item = convert(function_of_two(Op::Sub, given, first), DType::U32);
        let number = convert(node(Kind::Index(None), DType::U64, arguments([])), DType::U32);
        let made = Self {
            part: Tensor::uninit(stream, len)?,
            number: Tensor::uninit(stream, len)?,
            item: Tensor::uninit(stream, len)?,
        };
        let targets = [&made.part.view, &made.number.view, &made.item.view];
        let roots = [&part, &number, &item];
        let lowered = lower(roots);
        let nest = prepare(place, &targets, &lowered, &|| roots.to_vec())?;
        launch(place, &targets, &lowered, &nest, &|| call.trim_matches('`').into())?;
        Ok(made)
    }

    /// Returns the parts, the numbers of the indices, and the numbers of the items.
    pub(crate) fn slices(&self) -> (BufferSlice<'_, u16>, BufferSlice<'_, u32>, BufferSlice<'_, u32>) {
        let in_a_row = "what was just made lies in a row";
        let [number, item] = [&self.number, &self.item].map(|made| made.as_slice().expect(in_a_row));
        (self.part.as_slice().expect(in_a_row), number, item)
    }
}
