//! The addresses of the elements that a thread computes, from their numbers.

use super::emit::{Class, Reg};
use super::{At, Kernel, Param, Way};
use crate::expr::layout::shape::MAX_RANK;

impl Kernel<'_> {
    /// Returns the addresses of element number `place`, if the operands are contiguous.
    pub(super) fn linear(&mut self, place: Reg) -> At {
        let mut addresses: Vec<Option<Reg>> = Vec::new();
        for (operand, way) in self.variant.operands.iter().enumerate() {
            addresses.push(match way {
                Way::Linear => {
                    let base = self.argument(Param::Operand(operand))[0];
                    let size = self.size(operand);
                    Some(self.e.op_with(Class::B64, "mad.lo.u64", &[place], format_args!("{size}, {base}")))
                }
                Way::Same(other) => addresses[usize::from(*other)],
                _ => None,
            });
        }
        At { offsets: vec![0; addresses.len()], addresses, index: Vec::new() }
    }

    /// Returns the addresses that are `elements` elements further, if the operands are contiguous.
    pub(super) fn further(&self, base: &At, elements: usize) -> At {
        let offsets = (0..base.addresses.len()).map(|operand| elements * self.size(operand)).collect();
        At { addresses: base.addresses.clone(), offsets, index: Vec::new() }
    }

    /// Returns the addresses of vector number `place` of a nest.
    pub(super) fn nested(&mut self, place: Reg) -> At {
        let (rank, width) = (usize::from(self.variant.rank), usize::from(self.variant.width));
        let wide = self.variant.wide;
        let class = if wide { Class::B64 } else { Class::B32 };
        // Indices along the axes.
        let mut index: Vec<Option<Reg>> = vec![None; MAX_RANK];
        let mut rest = if wide { place } else { self.e.op(Class::B32, "cvt.u32.u64", &[place]) };
        for axis in (1..rank).rev() {
            let (quotient, remainder) = self.divide(rest, Param::Divisor(axis));
            index[axis] = Some(remainder);
            rest = quotient;
        }
        index[0] = Some(rest);
        if width > 1
            && let Some(inner) = index[rank - 1]
        {
            let name = if wide { "mul.lo.u64" } else { "mul.lo.u32" };
            index[rank - 1] = Some(self.e.op_with(class, name, &[inner], width));
        }
        self.placed(index, Some(place))
    }

    /// Returns the addresses at indices of a nest, which are those of the vectors' first elements. `place` is the number of the vector, for
    /// contiguous operands.
    pub(super) fn placed(&mut self, index: Vec<Option<Reg>>, place: Option<Reg>) -> At {
        let (rank, width) = (usize::from(self.variant.rank), usize::from(self.variant.width));
        let wide = self.variant.wide;
        let mut addresses = Vec::new();
        for (operand, way) in self.variant.operands.iter().enumerate() {
            if *way == Way::Single {
                addresses.push(None);
                continue;
            }
            let mut address = self.argument(Param::Operand(operand))[0];
            let size = self.size(operand);
            if let (Way::Linear, Some(place)) = (*way, place) {
                address =
                    self.e.op_with(Class::B64, "mad.lo.u64", &[place], format_args!("{}, {address}", size * width));
                addresses.push(Some(address));
                continue;
            }
            for (axis, index) in index.iter().enumerate().take(rank) {
                let Some(index) = *index else { continue };
                let name = if wide { "mad.lo.s64" } else { "mad.wide.s32" };
                if self.variant.has_stride(operand, axis) {
                    let stride = self.argument(Param::Stride(operand, axis))[0];
                    address = self.e.op(Class::B64, name, &[index, stride, address]);
                } else if *way == Way::Row {
                    address = self.e.op_with(Class::B64, name, &[index], format_args!("{size}, {address}"));
                }
            }
            addresses.push(Some(address));
        }
        At { offsets: vec![0; addresses.len()], addresses, index }
    }

    /// Returns the quotient and the remainder of a division by a parameter.
    pub(super) fn divide(&mut self, dividend: Reg, by: Param) -> (Reg, Reg) {
        let divisor = self.argument(by).to_vec();
        let class = dividend.class;
        if class == Class::B64 {
            let quotient = self.e.op(class, "div.u64", &[dividend, divisor[0]]);
            let product = self.e.op(class, "mul.lo.u64", &[quotient, divisor[0]]);
            return (quotient, self.e.op(class, "sub.u64", &[dividend, product]));
        }
        // The sum does not overflow: dividends are below 2^31.
        let high = self.e.op(class, "mul.hi.u32", &[dividend, divisor[1]]);
        let sum = self.e.op(class, "add.u32", &[high, dividend]);
        let quotient = self.e.op(class, "shr.u32", &[sum, divisor[2]]);
        let product = self.e.op(class, "mul.lo.u32", &[quotient, divisor[0]]);
        (quotient, self.e.op(class, "sub.u32", &[dividend, product]))
    }
}
