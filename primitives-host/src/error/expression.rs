//! Mistakes in expressions, views and plans.

/// What is wrong with an expression, a view of a tensor or a plan of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Which kind of mistake it is.
    pub kind: ExpressionErrorKind,
    /// What is wrong, with the shapes, strides and types that matter.
    pub reason: String,
    /// The expression, with its tensors as `x0`, `x1` and so on; empty if it is about a view alone.
    pub expression: String,
    /// What these are: `x0: f32[3, 4]`.
    pub operands: Vec<String>,
    /// Source file of the call.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// The kinds of [`ExpressionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionErrorKind {
    /// Shapes that do not broadcast, extents that do not fit, too many axes.
    BadShape,
    /// Strides that leave the memory, or that repeat elements which are written.
    BadStrides,
    /// Element types that there is no rule for.
    BadDtype,
    /// An index, an axis or a range outside of what there is.
    OutOfRange,
    /// An output that overlaps an input, but not element by element.
    Overlap,
    /// Less workspace than a plan needs.
    InsufficientWorkspace,
    /// Another number of operands than the operator has.
    BadCount,
    /// A name that no operator has.
    UnknownName,
    /// A stencil of what it cannot read at a distance, or whose neighbours its boundary makes no sense of.
    BadStencil,
    /// Operands that are split over devices in different ways, or split ones beside those of one device.
    BadSplit,
    /// A number between the transforms of a chain, which has no value outside of the chain.
    BadTransform,
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.reason)?;
        if !self.expression.is_empty() {
            write!(f, "\n  in `{}`", self.expression)?;
        }
        if !self.operands.is_empty() {
            write!(f, "\n  where {}", self.operands.join(", "))?;
        }
        write!(f, "\n  at {}:{}:{}", self.file, self.line, self.column)
    }
}

impl std::error::Error for ExpressionError {}
