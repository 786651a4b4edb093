//! Programs as PTX.
//!
//! A kernel computes tiles of its results, a tile a block: each thread takes a few vectors of the tile at a stride of the block,
//! so that all accesses of a warp lie in a row; it loads all that it needs, computes and stores.

pub(crate) mod emit;
mod fold;
mod memory;
mod neighbours;
mod patch;
mod random;
mod row_tile;
pub(crate) mod steps;
mod transpose;
mod weighted;

use std::collections::BTreeMap;
use std::fmt::Write;

use emit::{Class, Emitter, Reg, op};
pub(crate) use fold::{LANES, WARPS};
pub(crate) use neighbours::most as most_around;

use neighbours::{Around, Cell, Field};
use patch::Patch;
use row_tile::RowTile;

use super::dtype::DType;
use super::graph::Op;
use super::layout::nest::{Apart, Nest};
use super::layout::shape::MAX_RANK;
use super::program::{Program, What};
use super::reduce::Spec;

/// Threads of a block, unless it is a large one.
pub(crate) const THREADS: usize = 256;

/// Threads of a large block.
const MANY_THREADS: usize = 1024;

/// How many elements a thread computes at once at most. Divisions of integers take so many registers that 16 would spill some.
pub(crate) fn most_computed(program: &Program) -> usize {
    if program.divides_integers() { 8 } else { usize::MAX }
}

/// The entry's name.
pub(crate) const ENTRY: &str = "kernel_primitives_expression";

/// How the operands of a kernel lie, as far as its code depends on that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    /// Elements that a thread takes at once.
    pub(crate) width: u8,
    /// How often it does.
    pub(crate) vectors: u8,
    /// Whether blocks are large.
    pub(crate) large: bool,
    /// Axes of the nest; 0 if every operand is linear or single.
    pub(crate) rank: u8,
    /// Whether places and strides need 64 bits.
    pub(crate) wide: bool,
    /// Of the results, then of the inputs that are not gathered, then of the indices.
    pub(crate) operands: Vec<Way>,
    /// Tiles that are transposed in shared memory, if some inputs are contiguous along another axis than the results.
    pub(crate) transpose: Option<Transpose>,
    /// How threads lie, if there are neighbours along several axes.
    pub(crate) patch: Option<Patch>,
    /// Tiles of rows in shared memory, if there are many neighbours along the innermost axis.
    pub(crate) row: Option<RowTile>,
    /// Set for a reduction: its result is the first operand.
    pub(crate) fold: Option<Folding>,
    /// The axes along which neighbours are, counted from the innermost of the shape.
    pub(crate) apart: [Option<Apart>; MAX_RANK],
}

/// How many of a nest's operands are results, and how many have memory: all but the indices.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    pub(crate) results: usize,
    pub(crate) memories: usize,
}

/// How a kernel reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Folding {
    pub(crate) spec: Spec,
    /// How many axes there are of the results' outer ones, of those that are reduced, and of the results' inner ones.
    pub(crate) ranks: [u8; 3],
    /// So many lanes for each result, a warp or a part of one; 0 for a block. Only without inner axes.
    pub(crate) lanes: u8,
    /// Whether several blocks share a result: the last of them combines what all have.
    pub(crate) split: bool,
    /// Whether the elements that are no whole vector come one by one; only of a single axis.
    pub(crate) rest: bool,
}

impl Folding {
    /// Whether an axis is one of the results.
    fn keeps(&self, axis: usize) -> bool {
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
    /// Whether a tile comes soon after that which lies mirrored, since both read the same memory. As many tiles lie along one axis
    /// as along the other.
    pub(crate) paired: bool,
}

/// How an operand lies in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// All elements in a row.
    Linear,
    /// One element.
    Single,
    /// As the operand of that number, a linear one, at the same address: what is computed in place.
    Same(u8),
    /// In a row along the innermost axis.
    Row,
    /// The same along the innermost axis.
    Repeated,
    /// Contiguous along another axis, and transposed in shared memory.
    Transposed,
    /// Otherwise.
    Strided,
}

/// What a kernel takes, in this order; a launch passes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// The address of an operand's first element, or the first value of an index.
    Operand(usize),
    /// Of an input that is gathered from: address, stride in bytes, extent.
    Gathered(usize),
    Scalar(usize),
    /// The number of vectors, or of elements if all operands are linear.
    Count,
    /// What divides by an axis's extent, of the innermost by the vectors in it, and of patches by the blocks along it: `FastDivMod<u32>` as three words, or 64 bits.
    Divisor(usize),
    /// Of tiles along the innermost axis (0), and along the axis of the transposed inputs (1): what divides by their number.
    Tiles(u8),
    /// The extent along the innermost axis (0), and along the axis of the transposed inputs (1).
    Edge(u8),
    /// The extent along an axis of the nest, where neighbours or patches need it: 32 or 64 bits.
    Extent(usize),
    /// An operand's stride along an axis, in bytes: 32 or 64 bits.
    Stride(usize, usize),
    /// Of a reduction: the outer results; the vectors, or elements, that are reduced for each; the elements that are; and their
    /// number in the type of the values.
    Rows,
    Depth,
    Elements,
    Size,
    /// Of a reduction with inner results: the vectors of these.
    Columns,
    /// Of a shared reduction: what blocks have so far, and how many are done, zero before and after.
    Partials,
    Counters,
    /// The stream's fault control.
    Control,
}

impl Variant {
    /// Whether an operand has a stride parameter for an axis.
    fn has_stride(&self, operand: usize, axis: usize) -> bool {
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

    /// The parameters of a kernel.
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

    /// The registers that a parameter is.
    fn classes(&self, program: &Program, param: Param) -> Vec<Class> {
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

    /// Bytes of the parameters.
    pub(crate) fn param_bytes(&self, program: &Program) -> usize {
        let params = self.params(program).into_iter();
        let sizes = params.flat_map(|param| self.classes(program, param)).map(Class::param_bytes);
        sizes.fold(0, |bytes: usize, size| bytes.next_multiple_of(size) + size)
    }

    /// How a nest's operands lie, with at most so many elements a thread. `sizes` are their elements' bytes, `addresses` those of
    /// their first elements.
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
        // Results that do not lie in a row are not worth a vector, nor is a nest of short rows.
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
        // One access of 16 bytes a thread does best: on an H200 one input takes 3.5 % longer by two, two inputs 0.7 %.
        let vectors = (16 / bytes.max(1)).min(most / width).clamp(1, 4);
        let far = |operand: &super::layout::nest::OperandLayout, size: usize| {
            operand.strides[..rank].iter().any(|stride| i32::try_from(stride * size as isize).is_err())
        };
        let wide =
            !flat && (vast(nest, width) || nest.operands.iter().zip(sizes).any(|(operand, &size)| far(operand, size)));
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
        Self {
            width,
            vectors,
            large: false,
            rank,
            wide,
            operands,
            transpose: None,
            patch: None,
            row: None,
            fold: None,
            apart: nest.apart,
        }
    }

    /// The same with large blocks where these pay, by half a percent: for programs of few registers that read and write long rows.
    pub(crate) fn sized(mut self, program: &Program, elements: usize) -> Self {
        const MANY: usize = 1 << 24;
        const FEW: usize = 8;
        let light = |what| match what {
            What::Load(_) | What::Scalar(_) | What::Constant(_) => true,
            What::Op(op) => !matches!(op, Op::Math(_) | Op::Pow | Op::Atan2 | Op::Hypot) && !op.divides(),
            _ => false,
        };
        let narrow = program.code.iter().all(|one| one.dtype.size() * usize::from(self.width) <= 16 && light(one.what));
        self.large = self.rank == 0 && elements >= MANY && program.code.len() <= FEW && narrow;
        self
    }

    /// The same with transposed tiles, where that pays: `begins` is where the operands' memories begin.
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

    /// How the operands of a reduction lie: the result, then the inputs. With it goes whether elements that are no whole vector come
    /// apart.
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
        // Vectors of neighbours begin in a row, and end there.
        let rest = rank == 1 && ranks[1] == 1 && !whole && fits && !nest.has_apart();
        if !fits || !(whole || rest) {
            width = 1;
        }
        let bytes: usize = (1..kinds.memories)
            .filter(|&operand| operands[operand] != Way::Single)
            .map(|operand| sizes[operand] * width)
            .sum();
        let vectors = (128 / bytes.max(16)).clamp(1, 8);
        let far = |operand: usize| {
            nest.operands[operand].strides[..rank]
                .iter()
                .any(|stride| i32::try_from(stride * sizes[operand] as isize).is_err())
        };
        let wide = vast(nest, width) || (0..sizes.len()).any(far);
        let (width, vectors, rank) = (width as u8, vectors as u8, rank as u8);
        let apart = nest.apart;
        let rest = rest && width > 1;
        (
            Self {
                width,
                vectors,
                large: false,
                rank,
                wide,
                operands,
                transpose: None,
                patch: None,
                row: None,
                fold: None,
                apart,
            },
            rest,
        )
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> usize {
        if self.large { MANY_THREADS } else { THREADS }
    }

    /// Elements that a block computes, in vectors if not all operands are linear.
    pub(crate) fn tile(&self) -> usize {
        let vectors = self.threads() * usize::from(self.vectors);
        if self.rank == 0 { vectors * usize::from(self.width) } else { vectors }
    }
}

/// Whether the number of a vector, or an index along an axis, needs more than 31 bits; or twice an index where there are neighbours.
fn vast(nest: &Nest, width: usize) -> bool {
    let most = if nest.has_apart() { 1 << 30 } else { 1 << 31 };
    nest.elements / width >= 1 << 31 || nest.extents[..nest.rank].iter().any(|&extent| extent >= most)
}

/// Why there is no kernel for a program.
pub(crate) enum NoKernel {
    /// The function has no code for the architecture.
    NoCode(&'static str),
    /// The parameters take so many bytes, more than [`PARAM_BYTES`].
    Parameters(usize),
}

/// The most that a kernel's parameters may take.
pub(crate) const PARAM_BYTES: usize = 4096;

/// The architecture that a text for another names, and the version of PTX times ten.
pub(crate) fn target_of(arch: u32) -> (u32, u32) {
    let targets = [(120, 87), (100, 86), (90, 78), (89, 78), (86, 71), (80, 70), (75, 63)];
    targets.into_iter().find(|(target, _)| *target <= arch).unwrap_or((75, 63))
}

/// The text of a kernel.
pub(crate) fn kernel(program: &Program, variant: &Variant, arch: u32, layout: u64) -> Result<String, NoKernel> {
    let (target, version) = target_of(arch);
    let mut kernel = Kernel {
        e: Emitter::new(target, version),
        program,
        variant,
        arguments: Vec::new(),
        uniform: vec![None; program.code.len()],
        fold_slots: 0,
        field: Field::of_kernel(program, variant),
    };
    let bytes = variant.param_bytes(program);
    if bytes > PARAM_BYTES {
        return Err(NoKernel::Parameters(bytes));
    }
    let params = kernel.take_params();
    kernel.write();
    let Kernel { mut e, fold_slots, .. } = kernel;
    let mut shared = String::new();
    if fold_slots > 0 {
        let _ = writeln!(
            shared,
            "    .shared .align 16 .b8 accumulators[{}];\n    .shared .align 4 .b32 arrived;",
            16 * fold_slots
        );
    }
    if let Some(missing) = e.missing {
        return Err(NoKernel::NoCode(missing));
    }
    // The variable is among the items of functions that panic.
    let panics = e.items.iter().any(|item| item.starts_with(".shared") && item.contains(" kp_control;"));
    e.body = e.body.replace(SET_CONTROL, if panics { "st.shared.b64 [kp_control]," } else { "// no function panics:" });
    let mut text = format!(
        "// layout {layout:016x}\n.version {}.{}\n.target sm_{target}\n.address_size 64\n\n",
        e.version / 10,
        e.version % 10
    );
    for item in e.items.iter().copied().chain(e.tables.iter().map(String::as_str)) {
        text.push_str(item);
        text.push('\n');
    }
    // To save registers ptxas would spill some where there is a call, and compute again what long programs have. These have loads enough
    // under way with 80 registers. Row tiles take few as they are.
    let registers = if program.divides_integers() {
        ".minnctapersm 1\n"
    } else if program.code.len() > LONG && variant.row.is_none() {
        ".minnctapersm 3\n"
    } else {
        ""
    };
    let _ = write!(
        text,
        "\n.visible .entry {ENTRY}(\n{params})\n.maxntid {}, 1, 1\n{registers}{{\n{}{shared}\n{}}}\n",
        variant.threads(),
        e.registers(),
        e.body
    );
    Ok(text)
}

/// Instructions of a long program.
const LONG: usize = 32;

/// Stands for the instruction that passes the stream's control to functions.
const SET_CONTROL: &str = "$control";

struct Kernel<'a> {
    e: Emitter,
    program: &'a Program,
    variant: &'a Variant,
    /// The registers of parameters.
    arguments: Vec<(Param, Vec<Reg>)>,
    /// Values that are the same for all elements.
    uniform: Vec<Option<Reg>>,
    /// Accumulators in shared memory.
    fold_slots: usize,
    field: Field<'a>,
}

/// What a thread is to compute: addresses of operands, or values of indices.
#[derive(Clone)]
struct At {
    /// None for single operands.
    addresses: Vec<Option<Reg>>,
    offsets: Vec<usize>,
    /// Along the axes of the nest, where neighbours need them.
    index: Vec<Option<Reg>>,
}

impl Kernel<'_> {
    fn argument(&self, param: Param) -> &[Reg] {
        let found = self.arguments.iter().find(|(known, _)| *known == param);
        found.map_or(&[], |(_, registers)| registers)
    }

    /// Loads the parameters; returns their declarations.
    fn take_params(&mut self) -> String {
        let (mut text, mut number) = (String::new(), 0);
        let params = self.variant.params(self.program);
        let last = params.len() - 1;
        for (i, param) in params.into_iter().enumerate() {
            let classes = self.variant.classes(self.program, param);
            let count = classes.len();
            let mut registers = Vec::new();
            for (k, class) in classes.into_iter().enumerate() {
                let comma = if i == last && k + 1 == count { "" } else { "," };
                let _ = writeln!(text, "    .param .{} a{number}{comma}", class.ptx());
                let register =
                    self.e.op_with(class, &format!("ld.param.{}", class.ptx()), &[], format_args!("[a{number}]"));
                // Addresses are global ones: said once, here.
                let global = k == 0
                    && match param {
                        Param::Operand(operand) => operand < self.memories(),
                        Param::Gathered(_) | Param::Partials | Param::Counters => true,
                        _ => false,
                    };
                registers.push(if global { self.e.op(class, "cvta.to.global.u64", &[register]) } else { register });
                number += 1;
            }
            if let Param::Scalar(scalar) = param {
                let dtype = self.program.scalars[scalar];
                registers[0] = match Class::of(dtype) {
                    Class::Pred => self.e.op_with(Class::Pred, "setp.ne.u32", &[registers[0]], 0),
                    Class::B16 => self.e.op(Class::B16, "cvt.u16.u32", &[registers[0]]),
                    _ => self.e.normalized(dtype, registers[0]),
                };
            }
            self.arguments.push((param, registers));
        }
        text
    }

    /// Writes the kernel's body.
    fn write(&mut self) {
        self.write_uniform();
        if let Some(fold) = self.variant.fold {
            return self.write_folding(fold);
        }
        if let Some(transpose) = self.variant.transpose {
            return self.write_transposing(transpose);
        }
        if let Some(patch) = self.variant.patch {
            return self.write_patches(patch);
        }
        if let Some(tile) = self.variant.row {
            return self.write_row_tiles(tile);
        }
        let (width, vectors) = (usize::from(self.variant.width), usize::from(self.variant.vectors));
        let linear = self.variant.rank == 0;
        let (tile, threads) = (self.variant.tile(), self.variant.threads());
        let count = self.argument(Param::Count)[0];
        let block = self.e.op_with(Class::B32, "mov.u32", &[], "%ctaid.x");
        let thread = self.e.op_with(Class::B32, "mov.u32", &[], "%tid.x");
        let start = self.e.op_with(Class::B64, "mul.wide.u32", &[block], tile);
        let thread = self.e.op(Class::B64, "cvt.u64.u32", &[thread]);
        if tile == threads {
            // No thread has more than one place.
            let place = self.e.op(Class::B64, "add.u64", &[start, thread]);
            let outside = self.e.op(Class::Pred, "setp.ge.u64", &[place, count]);
            let done = self.e.label();
            op!(self.e, "@{outside} bra {done};");
            let at = if linear { self.linear(place) } else { self.nested(place) };
            self.compute(&[at], width);
            self.e.place(&done);
            op!(self.e, "ret;");
            return;
        }
        let end = self.e.op_with(Class::B64, "add.u64", &[start], tile);
        let partial = self.e.op(Class::Pred, "setp.gt.u64", &[end, count]);
        let tail = self.e.label();
        op!(self.e, "@{partial} bra {tail};");
        // A whole tile: everything is loaded before anything is computed.
        let first = if linear {
            self.e.op_with(Class::B64, "mad.lo.u64", &[thread], format_args!("{width}, {start}"))
        } else {
            self.e.op(Class::B64, "add.u64", &[start, thread])
        };
        let places: Vec<At> = if linear {
            let base = self.linear(first);
            (0..vectors).map(|v| self.further(&base, v * threads * width)).collect()
        } else {
            (0..vectors)
                .map(|v| {
                    let place =
                        if v == 0 { first } else { self.e.op_with(Class::B64, "add.u64", &[first], v * threads) };
                    self.nested(place)
                })
                .collect()
        };
        self.compute(&places, width);
        op!(self.e, "ret;");
        // The last tile, which is short: element by element if they lie in a row, else vector by vector.
        self.e.place(&tail);
        let (again, done) = (self.e.label(), self.e.label());
        let place = self.e.op(Class::B64, "add.u64", &[start, thread]);
        self.e.place(&again);
        let outside = self.e.op(Class::Pred, "setp.ge.u64", &[place, count]);
        op!(self.e, "@{outside} bra {done};");
        let at = if linear { self.linear(place) } else { self.nested(place) };
        self.compute(&[at], if linear { 1 } else { width });
        op!(self.e, "add.u64 {place}, {place}, {threads};");
        op!(self.e, "bra {again};");
        self.e.place(&done);
        op!(self.e, "ret;");
    }

    /// How many operands have memory; those after them are indices.
    fn memories(&self) -> usize {
        self.variant.operands.len() - self.program.indices().count()
    }

    /// Bytes of an element.
    fn size(&self, operand: usize) -> usize {
        if operand < self.memories() { self.dtype(operand).size() } else { 1 }
    }

    fn dtype(&self, operand: usize) -> DType {
        let results = self.program.results.len();
        if operand < results {
            return self.program.code[self.program.results[operand] as usize].dtype;
        }
        let mut loads = self.program.inputs.iter().filter(|input| !input.gathered);
        loads.nth(operand - results).expect("an operand").dtype
    }

    /// The operand of an input that is not gathered.
    fn operand_of(&self, input: u32) -> usize {
        let before = self.program.inputs[..input as usize].iter().filter(|input| !input.gathered).count();
        self.program.results.len() + before
    }

    /// Computes what is the same for all elements.
    fn write_uniform(&mut self) {
        // Where functions that panic find the stream's control, if there are any.
        let control = self.argument(Param::Control)[0];
        op!(self.e, "{SET_CONTROL} {control};");
        for (at, instruction) in self.program.code.iter().enumerate() {
            let value = match instruction.what {
                What::Scalar(scalar) => Some(self.argument(Param::Scalar(scalar as usize))[0]),
                What::Constant(word) => Some(self.e.constant(instruction.dtype, word)),
                What::Load(input) => {
                    let operand = self.operand_of(input);
                    (self.variant.operands[operand] == Way::Single).then(|| {
                        let address = self.argument(Param::Operand(operand))[0];
                        self.e.load("global", instruction.dtype, address, 0, 1)[0]
                    })
                }
                What::Op(op) => {
                    let arguments: Option<Vec<Reg>> =
                        instruction.takes().iter().map(|&value| self.uniform[value as usize]).collect();
                    let from = instruction.takes().first().map(|&value| self.program.code[value as usize].dtype);
                    // What faults is computed by those who need it.
                    match (arguments, from) {
                        (Some(arguments), Some(from)) if !op.divides_integers(instruction.dtype) => {
                            let from = if op == Op::Select { instruction.dtype } else { from };
                            Some(self.e.compute(op, from, instruction.dtype, &arguments))
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            self.uniform[at] = value;
        }
    }

    /// The place of the element `place`, of operands in a row.
    fn linear(&mut self, place: Reg) -> At {
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

    /// A place so many elements further on, of operands in a row.
    fn further(&self, base: &At, elements: usize) -> At {
        let offsets = (0..base.addresses.len()).map(|operand| elements * self.size(operand)).collect();
        At { addresses: base.addresses.clone(), offsets, index: Vec::new() }
    }

    /// The place of the vector `place` of a nest.
    fn nested(&mut self, place: Reg) -> At {
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

    /// What a thread is to compute at indices of a nest, those of vectors' first elements; `place` counts the vector, for operands in a row.
    fn placed(&mut self, index: Vec<Option<Reg>>, place: Option<Reg>) -> At {
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

    /// Quotient and remainder by what a parameter says.
    fn divide(&mut self, dividend: Reg, by: Param) -> (Reg, Reg) {
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

    /// What is loaded at a place: for each instruction its values, as far as they are known.
    fn loaded(&mut self, place: &At, width: usize) -> Vec<Vec<Reg>> {
        let cells = self.read_around(place, width);
        self.loaded_of(&cells, 0, place, width)
    }

    /// As [`loaded`](Self::loaded) at a row's place, of what was read around a thread's rows.
    fn loaded_of(&mut self, cells: &BTreeMap<Cell, Reg>, row: usize, place: &At, width: usize) -> Vec<Vec<Reg>> {
        let mut values = Vec::with_capacity(self.program.code.len());
        for (at, instruction) in self.program.code.iter().enumerate() {
            values.push(match (self.uniform[at], instruction.what) {
                (Some(value), _) => vec![value],
                (None, what @ What::Load(input)) => match self.of_cells(what, cells, row, width) {
                    Some(values) => values,
                    None => self.load(input, instruction.dtype, place, width),
                },
                (None, what @ What::Neighbour(..)) => self.of_cells(what, cells, row, width).unwrap_or_default(),
                _ => Vec::new(),
            });
        }
        values
    }

    /// Computes what is not loaded.
    fn fill(&mut self, values: &mut [Vec<Reg>], place: &At, width: usize) {
        let mut around = Around::default();
        for at in 0..self.program.code.len() {
            if values[at].is_empty() {
                values[at] = match self.program.code[at].what {
                    what @ What::Neighbour(..) => self.neighbours(what, place, width, &mut around),
                    What::Weighted(input, number) => {
                        self.weighted(input, number, self.program.code[at].dtype, place, width)
                    }
                    _ => self.value(at, values, place, width),
                };
            }
        }
    }

    /// Loads, computes and stores the elements at some places, so many at each.
    fn compute(&mut self, places: &[At], width: usize) {
        let mut values: Vec<Vec<Vec<Reg>>> = places.iter().map(|place| self.loaded(place, width)).collect();
        for (place, values) in places.iter().zip(&mut values) {
            self.store(values, place, width);
        }
    }

    /// Computes what is not loaded, and stores the results.
    fn store(&mut self, values: &mut [Vec<Reg>], place: &At, width: usize) {
        self.fill(values, place, width);
        self.store_results(values, place, width);
    }

    /// Stores the results.
    fn store_results(&mut self, values: &[Vec<Reg>], place: &At, width: usize) {
        for (operand, &result) in self.program.results.iter().enumerate() {
            let address = place.addresses[operand].expect("a result lies somewhere");
            let mut elements = values[result as usize].clone();
            let dtype = self.program.code[result as usize].dtype;
            if elements.len() == 1 {
                elements = vec![elements[0]; width];
            }
            if self.variant.operands[operand] == Way::Strided && width > 1 {
                unreachable!("vectors are for results in a row");
            }
            self.e.store("global", dtype, address, place.offsets[operand], &elements);
        }
    }

    fn load(&mut self, input: u32, dtype: DType, place: &At, width: usize) -> Vec<Reg> {
        let operand = self.operand_of(input);
        let (address, offset) = (place.addresses[operand].expect("no single operand"), place.offsets[operand]);
        match self.variant.operands[operand] {
            Way::Linear | Way::Row | Way::Same(_) => self.e.load("global", dtype, address, offset, width),
            Way::Transposed => self.e.load("shared", dtype, address, offset, 1),
            Way::Strided if width > 1 => {
                let mut address = address;
                (0..width)
                    .map(|i| {
                        if i > 0 {
                            address = self.strided(operand, address);
                        }
                        self.e.load("global", dtype, address, 0, 1)[0]
                    })
                    .collect()
            }
            _ => self.e.load("global", dtype, address, offset, 1),
        }
    }

    /// The values of an instruction: one for all, or one for each of `width` elements.
    fn value(&mut self, at: usize, values: &[Vec<Reg>], place: &At, width: usize) -> Vec<Reg> {
        let instruction = &self.program.code[at];
        match instruction.what {
            What::Random(distribution) => return self.random(distribution, instruction, values, width),
            What::Index(_) => return self.index(at, place, width),
            _ => {}
        }
        let takes = instruction.takes();
        let varies = takes.iter().any(|&value| values[value as usize].len() > 1);
        if let What::Op(op) = instruction.what
            && op.divides_integers(instruction.dtype)
        {
            self.e.check_divisors(&values[takes[1] as usize]);
        }
        (0..if varies { width } else { 1 })
            .map(|i| {
                let arguments: Vec<Reg> = takes
                    .iter()
                    .map(|&value| {
                        let all = &values[value as usize];
                        if all.len() == 1 { all[0] } else { all[i] }
                    })
                    .collect();
                let from = takes.first().map_or(instruction.dtype, |&value| self.program.code[value as usize].dtype);
                match instruction.what {
                    What::Op(op) => self.e.compute(op, from, instruction.dtype, &arguments),
                    What::Gather(input) => self.gather(input, instruction.dtype, from, arguments[0]),
                    What::Call(function) => self.e.function(function.0.code(), &arguments),
                    _ => unreachable!("loaded before"),
                }
            })
            .collect()
    }

    /// The operand that the index is, which is the instruction at `at`.
    fn operand_of_index(&self, at: usize) -> usize {
        let before = self.program.code[..at].iter().filter(|one| matches!(one.what, What::Index(_))).count();
        self.memories() + before
    }

    /// The values of the index that is the instruction at `at`: one, if they are the same.
    fn index(&mut self, at: usize, place: &At, width: usize) -> Vec<Reg> {
        let operand = self.operand_of_index(at);
        let Some(mut first) = place.addresses[operand] else { return vec![self.argument(Param::Operand(operand))[0]] };
        if place.offsets[operand] > 0 {
            first = self.e.op_with(Class::B64, "add.u64", &[first], place.offsets[operand]);
        }
        let mut values = vec![first];
        match self.variant.operands[operand] {
            Way::Linear | Way::Row => {
                values.extend((1..width).map(|i| self.e.op_with(Class::B64, "add.u64", &[first], i)));
            }
            Way::Strided => {
                for i in 1..width {
                    let next = self.strided(operand, values[i - 1]);
                    values.push(next);
                }
            }
            Way::Single | Way::Same(_) | Way::Repeated | Way::Transposed => {}
        }
        values
    }

    /// The address of the next element along the innermost axis.
    fn strided(&mut self, operand: usize, address: Reg) -> Reg {
        let inner = usize::from(self.variant.rank) - 1;
        let stride = self.argument(Param::Stride(operand, inner))[0];
        let stride = if self.variant.wide { stride } else { self.e.op(Class::B64, "cvt.s64.s32", &[stride]) };
        self.e.op(Class::B64, "add.s64", &[address, stride])
    }

    fn gather(&mut self, input: u32, dtype: DType, index_type: DType, index: Reg) -> Reg {
        let (address, stride, extent) = match *self.argument(Param::Gathered(input as usize)) {
            [address, stride, extent] => (address, stride, extent),
            _ => unreachable!("three parameters"),
        };
        let index = self.e.cast(index_type, if index_type.is_signed() { DType::I64 } else { DType::U64 }, index);
        self.e.check_index(index, extent);
        let address = self.e.op(Class::B64, "mad.lo.s64", &[index, stride, address]);
        self.e.load("global", dtype, address, 0, 1)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::layout::nest::Axes;
    use crate::expr::layout::shape::{Layout, Shape};

    /// Vectors may be few enough for 32 bits where elements are not.
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
        // Bytes, read backwards along the outermost axis.
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
        // Vectors may be few enough for 32 bits where elements are not.
        assert_eq!([backwards(&[1 << 30]), backwards(&[1 << 31])], [(16, false), (16, true)]);
        // Elements that are no whole vectors come one by one.
        assert_eq!([backwards(&[(1 << 31) - 1]), backwards(&[(1 << 31) + 4])], [(1, false), (1, true)]);
        // Many vectors along axes that are short.
        assert_eq!([backwards(&[1 << 15, 1 << 19]), backwards(&[1 << 16, 1 << 19])], [(16, false), (16, true)]);
    }
}
