//! The parameters of a kernel.

use super::emit::Class;
use super::variant::{Variant, Way};
use crate::expr::program::Program;

/// A parameter of a kernel. Kernels take their parameters in this order, and launches pass them so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// The address of an operand's first element, or the first value of an index.
    Operand(usize),
    /// The address, the stride in bytes and the extent of an input that is gathered from.
    Gathered(usize),
    Scalar(usize),
    /// The number of vectors, or of elements if all operands are linear.
    Count,
    /// The divisor for an axis. It is the axis' extent, the number of vectors for the innermost axis, or the number of blocks along the
    /// axis for patches. It is a `FastDivMod<u32>` as three words, or 64 bits.
    Divisor(usize),
    /// The divisor for the number of tiles along the innermost axis (0), and along the axis of the transposed inputs (1).
    Tiles(u8),
    /// The extent along the innermost axis (0), and along the axis of the transposed inputs (1).
    Edge(u8),
    /// The extent along an axis of the nest, if neighbours or patches need it: 32 or 64 bits.
    Extent(usize),
    /// An operand's stride along an axis, in bytes: 32 or 64 bits.
    Stride(usize, usize),
    /// For a reduction: the number of outer results. The next parameters are the number of vectors (or elements) that are reduced for each
    /// result, the number of elements that are reduced, and this number in the type of the values.
    Rows,
    Depth,
    Elements,
    Size,
    /// The number of vectors of the inner results of a reduction.
    Columns,
    /// For a shared reduction: the accumulators of the blocks. The next parameter is the number of blocks that are done, which is zero
    /// before and after the kernel.
    Partials,
    Counters,
    /// The stream's fault control.
    Control,
}

impl Variant {
    /// Returns whether an operand has a stride parameter for an axis.
    pub(super) fn has_stride(&self, operand: usize, axis: usize) -> bool {
        if let Some(fold) = self.fold
            && operand == 0
        {
            return fold.keeps(axis);
        }
        match self.operands[operand] {
            Way::Linear | Way::Single | Way::Same(_) => false,
            Way::Strided => true,
            Way::Transposed => self.transpose.is_some_and(|transpose| axis != usize::from(transpose.axis)),
            Way::Row | Way::Repeated => axis + 1 < self.rank.into(),
        }
    }

    /// Returns the parameters of a kernel.
    pub(crate) fn params(&self, program: &Program) -> Vec<Param> {
        let rank = usize::from(self.rank);
        let gathered = program.inputs.iter().enumerate().filter(|(_, input)| input.gathered);
        let own = (0..self.operands.len()).filter(|&operand| !matches!(self.operands[operand], Way::Same(_)));
        let mut params: Vec<Param> = own.map(Param::Operand).collect();
        params.extend(gathered.map(|(input, _)| Param::Gathered(input)));
        params.extend((0..program.scalars.len()).map(Param::Scalar));
        match (self.transpose, self.fold) {
            (None, None) => {
                if self.patch.is_none() {
                    params.push(Param::Count);
                }
                params.extend((1..rank).map(Param::Divisor));
            }
            (_, Some(fold)) => {
                params.extend([Param::Rows, Param::Depth, Param::Elements, Param::Size]);
                if fold.ranks[2] > 0 {
                    params.extend([Param::Columns, Param::Tiles(0)]);
                }
                if fold.split {
                    params.extend([Param::Partials, Param::Counters]);
                }
                params.extend((0..rank).map(Param::Divisor));
            }
            (Some(transpose), None) => {
                params.push(Param::Count);
                params.extend([Param::Tiles(0), Param::Tiles(1), Param::Edge(0), Param::Edge(1)]);
                params.extend((0..rank - 1).filter(|&axis| axis != usize::from(transpose.axis)).map(Param::Divisor));
            }
        }
        params.extend(self.apart.iter().flatten().map(|apart| Param::Extent(apart.axis.into())));
        if self.patch.is_some() && !params.contains(&Param::Extent(rank - 1)) {
            params.push(Param::Extent(rank - 1));
        }
        for operand in 0..self.operands.len() {
            params.extend(
                (0..rank).filter(|&axis| self.has_stride(operand, axis)).map(|axis| Param::Stride(operand, axis)),
            );
        }
        params.push(Param::Control);
        params
    }

    /// Returns the classes of the registers of a parameter.
    pub(super) fn classes(&self, program: &Program, param: Param) -> Vec<Class> {
        let whole = |dtype| match Class::of(dtype) {
            Class::Pred | Class::B16 => Class::B32,
            class => class,
        };
        match param {
            Param::Operand(_)
            | Param::Count
            | Param::Rows
            | Param::Depth
            | Param::Elements
            | Param::Columns
            | Param::Partials
            | Param::Counters
            | Param::Control => vec![Class::B64],
            Param::Size => vec![whole(program.code[program.results[0] as usize].dtype)],
            Param::Gathered(_) => vec![Class::B64; 3],
            Param::Scalar(scalar) => vec![whole(program.scalars[scalar])],
            Param::Divisor(_) | Param::Stride(..) | Param::Extent(_) if self.wide => vec![Class::B64],
            Param::Divisor(_) | Param::Tiles(_) => vec![Class::B32; 3],
            Param::Edge(_) | Param::Stride(..) | Param::Extent(_) => vec![Class::B32],
        }
    }

    /// Returns the size of the parameters in bytes.
    pub(crate) fn param_bytes(&self, program: &Program) -> usize {
        let params = self.params(program).into_iter();
        let sizes = params.flat_map(|param| self.classes(program, param)).map(Class::param_bytes);
        sizes.fold(0, |bytes: usize, size| bytes.next_multiple_of(size) + size)
    }
}
