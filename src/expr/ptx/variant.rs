//! Layouts of a kernel's operands, and the form of the kernel that follows from them.

use super::THREADS;
use super::patch::Patch;
use super::row_tile::RowTile;
use crate::expr::layout::nest::{Apart, Nest, OperandLayout};
use crate::expr::layout::shape::MAX_RANK;
use crate::expr::program::Program;
use crate::expr::reduce::Spec;

/// The number of threads of a large block.
const MANY_THREADS: usize = 1024;

/// The layouts of a kernel's operands, as far as the kernel's code depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// The number of elements of a vector, which a thread takes at once.
    pub(crate) width: u8,
    /// The number of vectors of a thread.
    pub(crate) vectors: u8,
    /// Whether blocks are large.
    pub(crate) large: bool,
    /// The number of axes of the nest; 0 if every operand is linear or single.
    pub(crate) rank: u8,
    /// Whether places and strides need 64 bits.
    pub(crate) wide: bool,
    /// The layouts of the results, then of the inputs that are not gathered, then of the indices.
    pub(crate) operands: Vec<Way>,
    /// Set if tiles are transposed in shared memory, because some inputs are contiguous along another axis than the results.
    pub(crate) transpose: Option<Transpose>,
    /// The arrangement of threads, if there are neighbours along several axes.
    pub(crate) patch: Option<Patch>,
    /// Tiles of rows in shared memory, if there are many neighbours along the innermost axis.
    pub(crate) row: Option<RowTile>,
    /// Set for a reduction: its result is the first operand.
    pub(crate) fold: Option<Folding>,
    /// The axes along which neighbours are, counted from the innermost of the shape.
    pub(crate) apart: [Option<Apart>; MAX_RANK],
}

/// The number of results among a nest's operands, and the number of operands with memory: all except the indices.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    pub(crate) results: usize,
    pub(crate) memories: usize,
}

/// How a kernel reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Folding {
    pub(crate) spec: Spec,
    /// The numbers of the results' outer axes, of the reduced axes, and of the results' inner axes.
    pub(crate) ranks: [u8; 3],
    /// The number of lanes for each result, a warp or a part of a warp; 0 for a block. It is set only without inner axes.
    pub(crate) lanes: u8,
    /// Whether several blocks share a result. The last of them combines their accumulators.
    pub(crate) split: bool,
    /// Whether the elements after the last whole vector are read one by one. This needs a single axis.
    pub(crate) rest: bool,
}

impl Folding {
    /// Returns whether an axis is one of the results.
    pub(super) fn keeps(&self, axis: usize) -> bool {
        let [outer, reduced, _] = self.ranks.map(usize::from);
        axis < outer || axis >= outer + reduced
    }
}

/// How a kernel transposes tiles: each is square, along the innermost axis and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transpose {
    /// The axis along which the transposed inputs are contiguous.
    pub(crate) axis: u8,
    /// Elements along an edge.
    pub(crate) edge: u8,
    /// Whether a tile and its mirror image follow each other, because both read the same memory. The two axes have the same number of
    /// tiles.
    pub(crate) paired: bool,
}

/// The layout of an operand in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// All elements are contiguous.
    Linear,
    /// A single element.
    Single,
    /// The same memory as the linear operand with this number: the computation is in place.
    Same(u8),
    /// The elements are contiguous along the innermost axis.
    Row,
    /// The element is the same along the innermost axis.
    Repeated,
    /// The elements are contiguous along another axis, and tiles are transposed in shared memory.
    Transposed,
    /// The operand has any other layout.
    Strided,
}

impl Variant {
    /// Returns the layouts of a nest's operands, with at most `most` elements for each thread. `sizes` are the bytes of the operands'
    /// elements, and `addresses` the addresses of their first elements.
    pub(crate) fn of(nest: &Nest, sizes: &[usize], addresses: &[u64], kinds: Kinds, most: usize) -> Self {
        let Kinds { results, memories } = kinds;
        let rank = nest.rank;
        let inner = rank.wrapping_sub(1);
        let flat =
            !nest.has_apart() && (0..sizes.len()).all(|operand| nest.is_linear(operand) || nest.is_single(operand));
        let mut operands: Vec<Way> = (0..sizes.len())
            .map(|operand| {
                let stride = if rank > 0 { nest.operands[operand].strides[inner] } else { 0 };
                match stride {
                    _ if nest.is_single(operand) && operand >= results => Way::Single,
                    _ if nest.is_linear(operand) => Way::Linear,
                    1 => Way::Row,
                    0 => Way::Repeated,
                    _ => Way::Strided,
                }
            })
            .collect();
        let moved = |operand: usize| matches!(operands[operand], Way::Linear | Way::Row);
        let several =
            || (0..memories).filter(|&operand| operands[operand] != Way::Single).map(|operand| sizes[operand]);
        let (low, high) = (several().min().unwrap_or(8), several().max().unwrap_or(8));
        let mut width = (16 / low).min(64 / high).min(most);
        let fits = |width: usize| {
            (0..memories).filter(|&operand| moved(operand)).all(|operand| {
                let bytes = (width * sizes[operand]).min(16);
                let outer = if flat || operands[operand] == Way::Linear { 0 } else { inner };
                addresses[operand].is_multiple_of(bytes as u64)
                    && nest.operands[operand].strides[..outer]
                        .iter()
                        .all(|stride| (stride * sizes[operand] as isize) % bytes as isize == 0)
            }) && (flat || nest.extents[inner].is_multiple_of(width))
        };
        // Vectors do not pay if results are not contiguous along the innermost axis. They are not possible if rows are not aligned whole
        // vectors.
        if !(0..results).all(moved) || !fits(width) {
            width = 1;
        }
        if !flat && width == 1 {
            for way in operands.iter_mut().filter(|way| matches!(way, Way::Row)) {
                *way = Way::Strided;
            }
        }
        let reads = (results..memories).filter(|&operand| operands[operand] != Way::Single);
        let bytes: usize = reads.map(|operand| sizes[operand] * width).sum();
        // One access of 16 bytes for each thread is best: on an H200, two accesses take 3.5 % longer for one input, and 0.7 % for two
        // inputs.
        let vectors = (16 / bytes.max(1)).min(most / width).clamp(1, 4);
        let wide = !flat && vast(nest, sizes, width);
        let rank = if flat { 0 } else { rank as u8 };
        for operand in if flat { results..memories } else { 0..0 } {
            let same = |&other: &usize| (addresses[other], sizes[other]) == (addresses[operand], sizes[operand]);
            if operands[operand] == Way::Linear
                && let Some(other) = (0..operand).find(|other| operands[*other] == Way::Linear && same(other))
            {
                operands[operand] = u8::try_from(other).map_or(Way::Linear, Way::Same);
            }
        }
        let (width, vectors) = (width as u8, vectors as u8);
        Self { width, vectors, rank, wide, operands, apart: nest.apart, ..Self::default() }
    }

    /// Makes blocks large if this is faster, by half a percent. This is for programs with few registers that read and write long rows.
    pub(crate) fn sized(mut self, program: &Program, elements: usize) -> Self {
        const MANY: usize = 1 << 24;
        const FEW: usize = 8;
        let narrow = program.code.iter().all(|one| one.dtype.size() * usize::from(self.width) <= 16);
        let light = narrow && program.is_light();
        self.large = self.rank == 0 && elements >= MANY && program.code.len() <= FEW && light;
        self
    }

    /// Transposes tiles if this is faster. `begins` are the addresses of the operands' memories.
    pub(crate) fn transposing(mut self, nest: &Nest, sizes: &[usize], kinds: Kinds, begins: &[u64]) -> Self {
        const SHORTEST: usize = 16;
        let Kinds { results, memories } = kinds;
        let Some(inner) = usize::from(self.rank).checked_sub(1).filter(|_| !self.wide) else { return self };
        let transposed = |operand: usize, axis: usize| {
            let strides = &nest.operands[operand].strides;
            (results..memories).contains(&operand) && strides[axis] == 1 && !matches!(strides[inner], 0 | 1)
        };
        let of_axis = |axis: usize| (0..sizes.len()).filter(move |&operand| transposed(operand, axis));
        let Some(axis) = (0..inner).max_by_key(|&axis| of_axis(axis).count()) else { return self };
        let bytes: usize = of_axis(axis).map(|operand| sizes[operand]).sum();
        let in_rows = (0..results).all(|operand| nest.operands[operand].strides[inner] == 1);
        let (width, height) = (nest.extents[inner], nest.extents[axis]);
        if bytes == 0 || bytes > 40 || !in_rows || width < SHORTEST || height < SHORTEST {
            return self;
        }
        let edge = if bytes <= 8 && width > 32 && height > 32 { 64 } else { 32 };
        let paired = width.div_ceil(edge) == height.div_ceil(edge)
            && of_axis(axis).any(|operand| {
                let same = |other: usize| other != operand && begins[other] == begins[operand];
                (results..memories).any(|other| same(other) && !transposed(other, axis))
            });
        for (operand, way) in self.operands.iter_mut().enumerate() {
            let stride = nest.operands[operand].strides[inner];
            *way = match way {
                Way::Single => Way::Single,
                _ if transposed(operand, axis) => Way::Transposed,
                _ if stride == 1 => Way::Row,
                _ if stride == 0 => Way::Repeated,
                _ => Way::Strided,
            };
        }
        (self.width, self.vectors) = (1, 1);
        self.transpose = Some(Transpose { axis: axis as u8, edge: edge as u8, paired });
        self
    }

    /// Returns the layouts of a reduction's operands: the result, then the inputs. Also returns whether the elements after the last whole
    /// vector are read one by one.
    pub(crate) fn folding(
        nest: &Nest,
        sizes: &[usize],
        addresses: &[u64],
        kinds: Kinds,
        ranks: [usize; 3],
        most: usize,
    ) -> (Self, bool) {
        let rank = nest.rank;
        let inner = rank.wrapping_sub(1);
        let mut operands = vec![Way::Strided];
        for operand in 1..sizes.len() {
            operands.push(match nest.operands[operand].strides.get(inner) {
                _ if nest.is_single(operand) => Way::Single,
                Some(1) => Way::Row,
                Some(0) => Way::Repeated,
                _ => Way::Strided,
            });
        }
        let rows: Vec<usize> = (1..kinds.memories).filter(|&operand| operands[operand] == Way::Row).collect();
        let low = rows.iter().map(|&operand| sizes[operand]).min().unwrap_or(8);
        let high = rows.iter().map(|&operand| sizes[operand]).max().unwrap_or(8);
        // Accumulators of columns are in shared memory.
        let most = most.min(if ranks[2] > 0 { 8 } else { 16 });
        let mut width = if rows.is_empty() { 1 } else { (16 / low).min(64 / high).min(most) };
        let fits = rows.iter().all(|&operand| {
            let bytes = (width * sizes[operand]).min(16);
            let outer = &nest.operands[operand].strides[..inner];
            addresses[operand].is_multiple_of(bytes as u64)
                && outer.iter().all(|stride| (stride * sizes[operand] as isize) % bytes as isize == 0)
        });
        let whole = rank > 0 && nest.extents[inner].is_multiple_of(width);
        // Vectors of neighbours begin and end in a row.
        let rest = rank == 1 && ranks[1] == 1 && !whole && fits && !nest.has_apart();
        if !fits || !(whole || rest) {
            width = 1;
        }
        let bytes: usize = (1..kinds.memories)
            .filter(|&operand| operands[operand] != Way::Single)
            .map(|operand| sizes[operand] * width)
            .sum();
        let vectors = (128 / bytes.max(16)).clamp(1, 8);
        let wide = vast(nest, sizes, width);
        let (width, vectors, rank) = (width as u8, vectors as u8, rank as u8);
        let variant = Self { width, vectors, rank, wide, operands, apart: nest.apart, ..Self::default() };
        (variant, rest && width > 1)
    }

    /// Returns the number of threads of a block.
    pub(crate) fn threads(&self) -> usize {
        if self.large { MANY_THREADS } else { THREADS }
    }

    /// Returns the number of elements that a block computes, or of vectors if not all operands are linear.
    pub(crate) fn tile(&self) -> usize {
        let vectors = self.threads() * usize::from(self.vectors);
        if self.rank == 0 { vectors * usize::from(self.width) } else { vectors }
    }
}

/// Returns whether places and strides need 64 bits. These are the number of a vector, an index along an axis, twice an index if there are
/// neighbours, and the bytes of a step along an axis. `sizes` are the bytes of the operands' elements. Here, neighbours are at most as far
/// away as an axis is long. [`shifted`](Variant::shifted) deals with farther neighbours.
fn vast(nest: &Nest, sizes: &[usize], width: usize) -> bool {
    let most = if nest.has_apart() { 1 << 30 } else { 1 << 31 };
    let is_far = |(operand, &size): (&OperandLayout, &usize)| {
        operand.strides[..nest.rank].iter().any(|stride| i32::try_from(stride * size as isize).is_err())
    };
    nest.elements / width >= 1 << 31
        || nest.extents[..nest.rank].iter().any(|&extent| extent >= most)
        || nest.operands.iter().zip(sizes).any(is_far)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::layout::nest::Axes;
    use crate::expr::layout::shape::{Layout, Shape};

    /// The number of vectors may fit in 32 bits if the number of elements does not.
    #[test]
    fn reductions_of_many_elements_have_wide_places() {
        let folding = |extent: usize| {
            let shape = Shape::new(&[extent]).unwrap();
            let (row, single) =
                (Layout::contiguous(shape), Layout { strides: [0; MAX_RANK], ..Layout::contiguous(shape) });
            let (nest, ranks) =
                Nest::grouped(&shape, [&single, &row].into_iter(), [&[], &[0], &[]], Axes::default()).unwrap();
            Variant::folding(&nest, &[8, 1], &[0, 0], Kinds { results: 1, memories: 2 }, ranks, 16).0
        };
        assert_eq!((folding(1 << 30).width, folding(1 << 30).wide), (16, false));
        assert_eq!((folding(1 << 31).width, folding(1 << 31).wide), (16, true));
    }

    #[test]
    fn assignments_of_many_elements_have_wide_places() {
        // The elements are bytes, read backwards along the outermost axis.
        let backwards = |extents: &[usize]| {
            let shape = Shape::new(extents).unwrap();
            let row = Layout::contiguous(shape);
            let mut back = row;
            back.offset = (extents[0] - 1) * row.strides[0] as usize;
            back.strides[0] = -row.strides[0];
            let nest = Nest::new(&shape, [&row, &back].into_iter()).unwrap();
            let variant = Variant::of(&nest, &[1, 1], &[0, 0], Kinds { results: 1, memories: 2 }, usize::MAX);
            assert_eq!(usize::from(variant.rank), extents.len());
            (variant.width, variant.wide)
        };
        // The number of vectors may fit in 32 bits if the number of elements does not.
        assert_eq!([backwards(&[1 << 30]), backwards(&[1 << 31])], [(16, false), (16, true)]);
        // Elements that are not whole vectors are read one by one.
        assert_eq!([backwards(&[(1 << 31) - 1]), backwards(&[(1 << 31) + 4])], [(1, false), (1, true)]);
        // There are many vectors along short axes.
        assert_eq!([backwards(&[1 << 15, 1 << 19]), backwards(&[1 << 16, 1 << 19])], [(16, false), (16, true)]);
    }
}
