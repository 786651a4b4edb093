//! Plans: operators with the descriptors of their operands, which are checked once.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

use primitives_host::storage::Storage;
use primitives_host::{Error, ExpressionError, ExpressionErrorKind, Result, Stream};

use super::memory::OperandStart;
use super::operator::Operator;
use super::value::{Mistake, Value};
use crate::expr::describe::describe;
use crate::expr::dtype::DType;
use crate::expr::evaluate::{launch, overlaps};
use crate::expr::graph::{Kind, Node, View, convert};
use crate::expr::layout::nest::Nest;
use crate::expr::layout::overlap::repeats;
use crate::expr::layout::shape::{IntoShape, Layout, MAX_RANK, Shape};
use crate::expr::program::{Lowered, Program, lower};

/// The element type, the shape and the strides of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    dtype: DType,
    /// The layout, from the first element on.
    layout: Layout,
}

impl TensorDesc {
    /// Makes a descriptor with strides in elements, one for each axis, outermost first. Strides may be zero or negative.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if the shape has more than [`MAX_RANK`] axes or more elements than can be counted, if there are not as
    /// many strides as axes, or if strides lead further than memory can reach.
    #[track_caller]
    pub fn new(dtype: DType, shape: impl IntoShape, strides: &[isize]) -> Result<Self> {
        let place = Location::caller();
        let fail = |kind, reason| Err(error(place, Mistake { kind, reason }, String::new(), Vec::new()));
        let extents = shape.extents();
        let Some(shape) = Shape::new(extents).filter(|shape| shape.elements().is_some()) else {
            let reason =
                format!("{extents:?} is no shape: of at most {MAX_RANK} axes, and elements that can be counted");
            return fail(ExpressionErrorKind::BadShape, reason);
        };
        let Some(layout) = Layout::strided(shape, strides, 0) else {
            let reason = format!("strides {strides:?} for a shape of {} axes, {shape}", shape.rank());
            return fail(ExpressionErrorKind::BadStrides, reason);
        };
        if layout.reach() > isize::MAX as u128 / dtype.size() as u128 {
            let reason = format!("{dtype}{shape} with strides {strides:?} is larger than a memory can be");
            return fail(ExpressionErrorKind::BadStrides, reason);
        }
        Ok(Self { dtype, layout })
    }

    /// Makes a descriptor of contiguous elements, outermost axis first.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new).
    #[track_caller]
    pub fn contiguous(dtype: DType, shape: impl IntoShape) -> Result<Self> {
        let strides = Shape::new(shape.extents()).map(|shape| shape.contiguous_strides()).unwrap_or_default();
        let rank = shape.extents().len().min(MAX_RANK);
        Self::new(dtype, shape, &strides[..rank])
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> Shape {
        self.layout.shape
    }

    /// The steps between elements along each axis, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides[..self.shape().rank()]
    }
}

/// `f32[3, 4] with strides [8, 1]`.
impl std::fmt::Display for TensorDesc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape())?;
        if self.layout.is_contiguous() { Ok(()) } else { write!(f, " with strides {:?}", self.strides()) }
    }
}

impl std::fmt::Debug for TensorDesc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// An operator with operands of known types, shapes and strides. It is checked and ready to run.
///
/// Threads and streams can share a plan, and any device can run it.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::DType;
/// use kernel_primitives::ops::{Memory, Operator, Plan, TensorDesc};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = TensorDesc::contiguous(DType::F32, [2, 2])?;
/// let weights = TensorDesc::contiguous(DType::I8, 2)?; // repeated over the rows
/// let swish = Operator::new("swish", 2, |x| &x[0] * (&x[0] * &x[1]).sigmoid());
/// let plan = Plan::new(&swish, &x, &[x, weights])?;
/// assert_eq!(plan.workspace_size(), 0);
///
/// let memory = Memory::from_slice(&stream, &[0.0f32, 1.0, 2.0, 3.0])?;
/// let weights = Memory::from_slice(&stream, &[0i8, 1])?;
/// plan.run(&stream, &memory, &[(&memory).into(), (&weights).into()])?; // in place
/// let result = memory.to_vec::<f32>()?;
/// assert!(result[0] == 0.0 && result[2] == 1.0 && (result[3] - 2.857722).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Plan {
    output: TensorDesc,
    inputs: Vec<TensorDesc>,
    program: Program,
    /// The inputs that the program loads, in its order.
    loaded: Vec<u32>,
    scalars: Vec<u64>,
    /// The nest of loops. Its only offsets are those of reversed axes.
    nest: Nest,
    /// The layouts of the inputs that are loaded, in the shape of the output.
    layouts: Vec<Layout>,
    text: String,
}

impl Plan {
    /// Checks the operands of an operator, and plans its kernel.
    ///
    /// Inputs must have the shape of the output or broadcast to it, as in NumPy. They may have different types: the operator works in their
    /// [common type](DType#promotion). The result is converted to the type of the output if that is of the same kind or a higher one. The
    /// kinds are, in ascending order, `bool`, unsigned integers, signed integers and floats. Otherwise the operator must
    /// [`cast`](Value::cast).
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] with the kind `BadCount` if the operator has another number of inputs, `BadDtype` if it does not take
    /// the types, `BadShape` if shapes do not broadcast to that of the output, and `BadStrides` if the output repeats elements.
    #[track_caller]
    pub fn new(operator: &Operator, output: &TensorDesc, inputs: &[TensorDesc]) -> Result<Self> {
        let place = Location::caller();
        let name = || {
            let inputs: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
            format!("{}({})", operator.name(), inputs.join(", "))
        };
        let fail = |mistake| error(place, mistake, name(), operands(output, inputs));
        let refuse = |kind, reason| Err(fail(Mistake { kind, reason }));
        if inputs.len() != operator.arity() {
            let reason = format!("{} inputs, where `{}` takes {}", inputs.len(), operator.name(), operator.arity());
            return refuse(ExpressionErrorKind::BadCount, reason);
        }
        let shape = output.shape();
        if repeats(&output.layout) {
            let reason = format!("the output, {output}, repeats elements");
            return refuse(ExpressionErrorKind::BadStrides, reason);
        }
        let values: Vec<Value> =
            inputs.iter().enumerate().map(|(number, input)| Value::parameter(number, input.dtype)).collect();
        let root = operator.apply(&values, output.dtype).and_then(|value| value.0).map_err(fail)?;
        if kind(root.dtype) > kind(output.dtype) {
            let reason = format!("a result of {} is not converted to {} without a `cast`", root.dtype, output.dtype);
            return refuse(ExpressionErrorKind::BadDtype, reason);
        }
        // A closure may have kept values of another plan.
        if has_foreign(&root, &values) {
            let reason = format!("`{}` uses a value of another plan's inputs", operator.name());
            return refuse(ExpressionErrorKind::BadDtype, reason);
        }
        let root = convert(root, output.dtype);
        let Lowered { program, parameters, scalars, .. } = lower([&root]);
        let mut all = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            let Some(layout) = input.layout.broadcast_to(&shape) else {
                let reason = format!("x{i}, of shape {}, does not broadcast to the output's, {shape}", input.shape());
                return refuse(ExpressionErrorKind::BadShape, reason);
            };
            all.push(layout);
        }
        let layouts: Vec<Layout> = parameters.iter().map(|&number| all[number as usize]).collect();
        let indices: Vec<Layout> = program.index_layouts(&shape).collect();
        let operands = std::iter::once(&output.layout).chain(&layouts).chain(&indices);
        let Some(nest) = Nest::new(&shape, operands) else {
            return refuse(ExpressionErrorKind::BadShape, format!("{shape} has more elements than can be counted"));
        };
        let text = describe(&[&root]).0.join("; ");
        let (output, inputs) = (*output, inputs.to_vec());
        Ok(Self { output, inputs, program, loaded: parameters, scalars, nest, layouts, text })
    }

    /// The descriptor of the output.
    pub fn output(&self) -> &TensorDesc {
        &self.output
    }

    /// The descriptors of the inputs.
    pub fn inputs(&self) -> &[TensorDesc] {
        &self.inputs
    }

    /// The bytes of the workspace that a run needs, which is always 0. This is for code that asks.
    pub fn workspace_size(&self) -> usize {
        0
    }

    /// Checks that a workspace of `bytes` bytes suffices.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] with the kind `InsufficientWorkspace` if it does not suffice.
    #[track_caller]
    pub fn check_workspace(&self, bytes: usize) -> Result<()> {
        if bytes >= self.workspace_size() {
            return Ok(());
        }
        let reason = format!("a workspace of {bytes} bytes, where {} are needed", self.workspace_size());
        Err(self.fail(Location::caller(), ExpressionErrorKind::InsufficientWorkspace, reason))
    }

    /// Enqueues the operator, which is one launch.
    ///
    /// An input may be the output or use the same memory if each of its elements is read where the output's element is written. Otherwise
    /// it must be apart from the output.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] with the kind `BadCount` if the plan has another number of inputs, `BadDtype` if memory has another
    /// type than its operand, `OutOfRange` if an operand leaves its memory or begins between two elements, and `Overlap` if the output
    /// overlaps an input. Returns [`Error::WrongDevice`] if memory is on another device, [`Error::Load`] if the driver refuses the kernel,
    /// and [`Error::Fault`] if integers are divided by zero. In the emulator this call returns a fault, and on a GPU a later call does.
    #[track_caller]
    pub fn run<'a>(
        &self,
        stream: &Stream,
        output: impl Into<OperandStart<'a>>,
        inputs: &[OperandStart<'a>],
    ) -> Result<()> {
        let place = Location::caller();
        if inputs.len() != self.inputs.len() {
            let reason = format!("{} inputs, where the plan has {}", inputs.len(), self.inputs.len());
            return Err(self.fail(place, ExpressionErrorKind::BadCount, reason));
        }
        let output = output.into();
        let start = self.start(place, "the output", &self.output, output)?;
        let mut starts = Vec::with_capacity(inputs.len());
        for (i, (desc, &input)) in self.inputs.iter().zip(inputs).enumerate() {
            starts.push(self.start(place, &format!("x{i}"), desc, input)?);
        }
        let mut nest = self.nest.clone();
        let view = |layout: &Layout, start: usize, storage: &Arc<Storage>, dtype| {
            let layout = Layout { offset: start, ..*layout };
            Arc::new(View {
                storage: storage.clone(),
                stream: stream.clone(),
                layout,
                dtype,
                spare: None,
                origin: None,
            })
        };
        let target = view(&self.output.layout, start, output.storage, self.output.dtype);
        nest.operands[0].offset = nest.operands[0].offset.wrapping_add(start);
        let mut views = Vec::with_capacity(self.loaded.len());
        for ((&number, layout), operand) in self.loaded.iter().zip(&self.layouts).zip(&mut nest.operands[1..]) {
            let number = number as usize;
            let input = view(layout, starts[number], inputs[number].storage, self.inputs[number].dtype);
            operand.offset = operand.offset.wrapping_add(starts[number]);
            if !in_place(&target, &input) && overlaps(&target, &input) {
                let reason = format!("the output overlaps x{number}, and not element by element");
                return Err(self.fail(place, ExpressionErrorKind::Overlap, reason));
            }
            views.push(input);
        }
        let lowered = Lowered {
            program: self.program.clone(),
            inputs: views,
            parameters: Vec::new(),
            scalars: self.scalars.clone(),
            wrong: None,
        };
        launch(place, &[&target], &lowered, &nest, &|| self.text.clone())
    }

    /// The number of the first element of an operand in its memory.
    fn start(
        &self,
        at: &'static Location<'static>,
        name: &str,
        desc: &TensorDesc,
        place: OperandStart<'_>,
    ) -> Result<usize> {
        let (dtype, size) = (desc.dtype, desc.dtype.size());
        let holds = place.dtype == dtype || (place.dtype == DType::U8 && dtype != DType::Bool);
        if !holds {
            let reason = format!("{name} is of {dtype}, and its memory of {}", place.dtype);
            return Err(self.fail(at, ExpressionErrorKind::BadDtype, reason));
        }
        let start = place.byte / size;
        let elements = place.storage.len() / size;
        let inside = || Layout { offset: start, ..desc.layout }.span().is_some_and(|span| span.end <= elements);
        if !place.byte.is_multiple_of(size) || !inside() {
            let reason = format!(
                "{name}, {desc}, does not lie in its memory of {} bytes from byte {} on",
                place.storage.len(),
                place.byte
            );
            return Err(self.fail(at, ExpressionErrorKind::OutOfRange, reason));
        }
        let address = place.storage.address() + place.byte as u64;
        if !address.is_multiple_of(size as u64) {
            // Adopted bytes may begin at any address.
            let reason =
                format!("{name}, of {dtype}, does not begin on a boundary of {size} bytes, but at {address:#x}");
            return Err(self.fail(at, ExpressionErrorKind::OutOfRange, reason));
        }
        Ok(start)
    }

    fn fail(&self, place: &Location<'_>, kind: ExpressionErrorKind, reason: String) -> Error {
        error(place, Mistake { kind, reason }, self.text.clone(), operands(&self.output, &self.inputs))
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plan({}, where {})", self.text, operands(&self.output, &self.inputs).join(", "))
    }
}

/// Returns whether a value is computed from a parameter that is not one of these.
fn has_foreign(root: &Arc<Node>, parameters: &[Value]) -> bool {
    let own: HashSet<*const Node> = parameters.iter().flat_map(|value| &value.0).map(Arc::as_ptr).collect();
    let (mut seen, mut left) = (HashSet::new(), vec![root]);
    while let Some(node) = left.pop() {
        if matches!(node.kind, Kind::Parameter(_)) && !own.contains(&Arc::as_ptr(node)) {
            return true;
        }
        left.extend(node.arguments().filter(|node| seen.insert(Arc::as_ptr(node))));
    }
    false
}

/// Returns whether each element of an input has the same bytes as the target's element in the same place.
fn in_place(target: &View, input: &View) -> bool {
    input.dtype.size() == target.dtype.size() && input.layout.same_places(&target.layout)
}

/// The order of conversions that need no cast.
fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_float() => 3,
        dtype => 1 + u8::from(dtype.is_signed()),
    }
}

fn operands(output: &TensorDesc, inputs: &[TensorDesc]) -> Vec<String> {
    let inputs = inputs.iter().enumerate().map(|(i, input)| format!("x{i}: {input}"));
    inputs.chain([format!("output: {output}")]).collect()
}

fn error(place: &Location<'_>, mistake: Mistake, expression: String, operands: Vec<String>) -> Error {
    Error::from(Box::new(ExpressionError {
        kind: mistake.kind,
        reason: mistake.reason,
        expression,
        operands,
        file: place.file().into(),
        line: place.line(),
        column: place.column(),
    }))
}
