//! What the lanes of a mask compute together.

use std::cell::Cell;

use primitives_gpu::simt::emulated::WarpOp;
use primitives_gpu::simt::{ShuffleMode, WARP};

/// What a lane brings to a warp operation and takes from it.
pub(super) struct Exchange {
    /// The operation; operand and width of a shuffle are the lane's own.
    pub(super) op: Cell<WarpOp>,
    /// What the lane contributes.
    pub(super) value: Cell<u128>,
    /// What the lane gets. Apart from `value`, since a lane that goes on overwrites its value while others have yet to
    /// take their results.
    pub(super) result: Cell<u128>,
}

/// Whether lanes that call `a` and `b` perform one operation.
#[inline]
pub(super) fn same_operation(a: WarpOp, b: WarpOp) -> bool {
    match (a, b) {
        (WarpOp::Shuffle { mode: a, .. }, WarpOp::Shuffle { mode: b, .. }) => a == b,
        _ => a == b,
    }
}

/// The lane that `lane` reads, itself if the source lies outside its segment. As PTX defines `shfl.sync`: only the low five
/// bits of the operand count, and an exclusive or may reach into a lower segment.
#[inline]
pub(super) fn shuffle_source(mode: ShuffleMode, lane: u32, operand: u32, width: u32) -> u32 {
    let operand = operand % WARP;
    let first = lane & !(width - 1);
    let last = first + width - 1;
    let source = match mode {
        ShuffleMode::Index => first | operand & (width - 1),
        ShuffleMode::Up => match lane.checked_sub(operand) {
            Some(source) if source >= first => source,
            _ => lane,
        },
        ShuffleMode::Down => lane + operand,
        ShuffleMode::Xor => lane ^ operand,
    };
    if source <= last { source } else { lane }
}

/// The positions of the bits set in a mask, lowest first.
#[inline]
pub(super) fn bits(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let bit = (rest != 0).then(|| rest.trailing_zeros())?;
        rest &= rest - 1;
        Some(bit)
    })
}

/// A shuffle that reads a lane which takes no part in it.
pub(super) struct OutsideMask {
    pub(super) reader: u32,
    pub(super) source: u32,
}

/// Performs the operation that all lanes of `mask` have brought; `exchange` finds a lane's by its number in the warp.
pub(super) fn perform<'a>(mask: u32, exchange: impl Fn(u32) -> &'a Exchange) -> Result<(), OutsideMask> {
    let all = |result: u128| bits(mask).for_each(|lane| exchange(lane).result.set(result));
    let first = exchange(mask.trailing_zeros());
    match first.op.get() {
        WarpOp::Sync => {}
        WarpOp::Shuffle { .. } => {
            for lane in bits(mask) {
                let own = exchange(lane);
                let WarpOp::Shuffle { mode, operand, width } = own.op.get() else {
                    unreachable!("the lanes of a mask perform one operation");
                };
                let source = shuffle_source(mode, lane, operand, width);
                if mask >> source & 1 == 0 {
                    return Err(OutsideMask { reader: lane, source });
                }
                own.result.set(exchange(source).value.get());
            }
        }
        WarpOp::Ballot => {
            let votes = bits(mask).fold(0, |votes, lane| votes | ((exchange(lane).value.get() != 0) as u32) << lane);
            all(votes as u128);
        }
        WarpOp::MatchAny => {
            let mut rest = mask;
            while rest != 0 {
                let value = exchange(rest.trailing_zeros()).value.get();
                let equal = bits(rest).filter(|&lane| exchange(lane).value.get() == value);
                let equal = equal.fold(0, |set, lane| set | 1 << lane);
                bits(equal).for_each(|lane| exchange(lane).result.set(equal as u128));
                rest &= !equal;
            }
        }
        WarpOp::MatchAll => {
            let equal = bits(mask).all(|lane| exchange(lane).value.get() == first.value.get());
            all(if equal { mask as u128 } else { 0 });
        }
        WarpOp::Redux(op) => {
            let values = bits(mask).map(|lane| exchange(lane).value.get() as u32);
            let total = values.reduce(|a, b| op.combine(a, b)).unwrap_or_default();
            all(total as u128);
        }
    }
    Ok(())
}
