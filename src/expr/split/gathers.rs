//! Gathers from split tensors. The items are copied to the devices that compute with them.
//!
//! A device that has the whole vector reads it. If an exchange would move more bytes than the vector has, the device receives a copy of the
//! vector, and the expression's kernel gathers from the copy. Otherwise a separate kernel computes the device's indices, and an exchange
//! fills a tensor with the item of each index. The expression reads this tensor like any other.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::{Error, ExpressionErrorKind, Result, Stream};

use super::assign::{Brought, on_device};
use super::copy::copy;
use super::halo::Halos;
use super::view::{Rows, SplitView, row_elements, with_rows};
use crate::algorithms::{Gather, Scatter};
use crate::expr::describe::kernel_name;
use crate::expr::dtype::{DType, Scalar, with_type};
use crate::expr::evaluate::{launch, mistake, prepare};
use crate::expr::graph::{Arguments, Kind, Node, View, arguments, convert, node, rewritten};
use crate::expr::layout::shape::Shape;
use crate::expr::program::lower;
use crate::expr::tensor::Tensor;
use crate::split::gather::exchange::{ADVICE, Asking, LIMITS, exchange, takes_all};

const CALL: &str = "`expr::gather`";

/// The gathers from split tensors in an expression.
pub(super) struct Gathers {
    /// A gather comes after the gathers in its index.
    all: Vec<Gathered>,
}

struct Gathered {
    /// The gather in the expression.
    node: Arc<Node>,
    view: Arc<SplitView>,
    /// The source on each device, by the device's number. It is empty until the items are copied.
    brought: BTreeMap<usize, Source>,
}

/// The data that a device reads in place of a gather.
enum Source {
    /// The whole vector. The kernel gathers from it.
    Whole(Arc<View>),
    /// The item for each element.
    Items(Arc<View>),
}

impl Gathers {
    /// Finds and checks the gathers of an expression that is computed for `rows`. It copies nothing.
    pub(super) fn new(place: &'static Location<'static>, root: &Arc<Node>, rows: Rows<'_>) -> Result<Self> {
        let mut all: Vec<Gathered> = Vec::new();
        rewritten(root, &mut |node, _| {
            if let Kind::SplitGather(view) = &node.kind {
                all.push(Gathered { node: node.clone(), view: view.clone(), brought: BTreeMap::new() });
            }
            node.clone()
        });
        for Gathered { view, .. } in &all {
            let fail = |kind, reason| -> Result<Self, Error> { Err(mistake(place, kind, reason, &[root])) };
            if view.shape.rank() != 1 {
                let reason = format!("a gather takes a vector, not a tensor of shape {}", view.shape);
                return fail(ExpressionErrorKind::BadShape, reason);
            }
            if !rows.split.has_devices_of(&view.split) {
                let reason = format!(
                    "a gather reads a tensor on other devices, {}, for rows that are split as {}: copy it by `resplit`",
                    view.describe(),
                    rows.describe()
                );
                return fail(ExpressionErrorKind::BadSplit, reason);
            }
            let goes_between = rows.shards().any(|(device, ..)| !has_all(view, device));
            if goes_between && rows.split.streams().iter().any(Stream::is_capturing) {
                return Err(Error::Capture { call: CALL, advice: ADVICE });
            }
        }
        Ok(Self { all })
    }

    /// Returns whether there are no gathers.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the node that replaces a gather on a device. `new` are its new arguments.
    pub(super) fn on(&self, gather: &Arc<Node>, device: usize, new: Arguments) -> Arc<Node> {
        let known = self.all.iter().find(|known| Arc::ptr_eq(&known.node, gather));
        let Gathered { view, brought, .. } = known.expect("all gathers are found");
        match brought.get(&device) {
            Some(Source::Items(items)) => {
                convert(node(Kind::View(items.clone()), items.dtype, arguments([])), gather.dtype)
            }
            Some(Source::Whole(whole)) => node(Kind::Gather(whole.clone()), gather.dtype, new),
            // This is a gather of the same form, for the checks.
            None => node(Kind::Gather(view.shards[device].clone()), gather.dtype, new),
        }
    }

    /// Returns the copy of a vector that a device has for another gather.
    fn whole(&self, view: &SplitView, device: usize) -> Option<Arc<View>> {
        let same = self.all.iter().filter(|known| known.view.same_as(view));
        same.filter_map(|known| known.brought.get(&device)).find_map(|source| match source {
            Source::Whole(whole) => Some(whole.clone()),
            Source::Items(_) => None,
        })
    }

    /// Copies all items to the devices of `rows`, for results of a shape. The halos must be there.
    pub(super) fn bring(
        &mut self,
        place: &'static Location<'static>,
        shape: &Shape,
        rows: Rows<'_>,
        halos: &Halos,
    ) -> Result<()> {
        let streams = rows.split.streams();
        for number in 0..self.all.len() {
            let (gather, view) = (self.all[number].node.clone(), self.all[number].view.clone());
            let (size, len, row) = (view.dtype.size(), view.shape[0], row_elements(shape));
            let index = gather.arguments().next().expect("a gather has an index");
            let (mut brought, mut asked) = (BTreeMap::new(), Vec::new());
            for (device, first, count) in rows.shards() {
                let some = with_rows(*shape, count);
                if has_all(&view, device) {
                    brought.insert(device, Source::Whole(view.shards[device].clone()));
                } else if let Some(whole) = self.whole(&view, device) {
                    brought.insert(device, Source::Whole(whole));
                } else if takes_all(len, size, count.saturating_mul(row)) {
                    let whole = collected(&streams[device], device, &view)?;
                    brought.insert(device, Source::Whole(whole));
                } else {
                    let root = on_device(index, device, (first, count), row, Brought { halos, gathers: self });
                    asked.push((device, computed(place, &streams[device], some, root)?, some));
                }
            }
            macro_rules! by_type {
                ($($dtype:ident: $item:ty, $moved:ty;)*) => {
                    match view.dtype {
                        $(DType::$dtype => items::<$item, $moved, _, _>(place, streams, &view, asked)?,)*
                    }
                };
            }
            // Truth values are moved as bytes.
            let items = by_type! {
                Bool: bool, u8; I8: i8, i8; I16: i16, i16; I32: i32, i32; I64: i64, i64; U8: u8, u8; U16: u16, u16; U32: u32, u32;
                U64: u64, u64; F16: half::f16, half::f16; BF16: half::bf16, half::bf16; F32: f32, f32; F64: f64, f64;
            };
            brought.extend(items.into_iter().map(|(device, items)| (device, Source::Items(items))));
            self.all[number].brought = brought;
        }
        Ok(())
    }
}

/// Returns whether a device has all elements.
fn has_all(view: &SplitView, device: usize) -> bool {
    view.bounds[device + 1] - view.bounds[device] == view.shape[0]
}

/// Copies all elements to the device of a stream. Each device begins with another part, so that they do not all read from one device.
fn collected(stream: &Stream, device: usize, view: &SplitView) -> Result<Arc<View>> {
    let devices = view.shards.len();
    with_type!(view.dtype, T => {
        let all = Tensor::<T>::uninit(stream, view.shape[0])?.view;
        for owner in (0..devices).map(|i| (device + i) % devices) {
            let range = view.bounds[owner]..view.bounds[owner + 1];
            copy::<T>(CALL, (&all, range.start), (&view.shards[owner], 0), range.len())?;
        }
        Ok(all)
    })
}

/// Computes the values of an expression on a device, as a contiguous view. If the values are in memory, it returns that memory.
fn computed(place: &'static Location<'static>, stream: &Stream, shape: Shape, root: Arc<Node>) -> Result<Arc<View>> {
    if let Kind::View(view) = &root.kind
        && view.layout.shape == shape
        && view.layout.is_contiguous()
    {
        return Ok(view.clone());
    }
    let target = with_type!(root.dtype, T => Tensor::<T>::uninit(stream, shape)?.view);
    let lowered = lower([&root]);
    let nest = prepare(place, &[&target], &lowered, &|| vec![&root])?;
    launch(place, &[&target], &lowered, &nest, &|| kernel_name(&[&root], &target))?;
    Ok(target)
}

/// Gathers the items of indices on some devices, as tensors of `U` with the given shapes.
fn items<T, U, G, S>(
    place: &'static Location<'static>,
    streams: &[Stream],
    view: &SplitView,
    asked: Vec<(usize, Arc<View>, Shape)>,
) -> Result<Vec<(usize, Arc<View>)>>
where
    T: Scalar,
    U: Scalar + Gather<u32, U, G> + Scatter<u32, S>,
{
    let shards: Vec<Tensor<T>> = view.shards.iter().map(|shard| Tensor::of_view(shard.clone())).collect();
    let parts = shards.iter().map(|shard| shard.as_slice().expect("rows that lie in a row").reinterpret::<U>());
    let parts: Vec<_> = parts.collect::<Result<_>>()?;
    let mut made = Vec::new();
    for (device, _, shape) in &asked {
        made.push(streams[*device].buffer_uninit::<U>(shape.elements().unwrap_or(usize::MAX))?);
    }
    let asking = asked.iter().zip(&mut made).map(|((device, index, _), items)| {
        // This is on the stream that continues with it.
        let (storage, stream) = (index.storage.clone(), streams[*device].clone());
        let (layout, dtype) = (index.layout, index.dtype);
        let index = Arc::new(View { storage, stream, layout, dtype, spare: None, origin: None });
        Asking { device: *device, index, out: items.as_mut_slice() }
    });
    let asking = asking.collect();
    exchange((place, CALL), streams, &parts, asking, LIMITS)?;
    let items = asked
        .into_iter()
        .zip(made)
        .map(|((device, _, shape), items)| Ok((device, Tensor::from_buffer(&streams[device], shape, items)?.view)));
    items.collect()
}
