//! Mistakes in expressions, views and plans.

/// A mistake in an expression, a view of a tensor or a plan of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The kind of the mistake.
    pub kind: ExpressionErrorKind,
    /// The mistake, with the shapes, strides and types that matter.
    pub reason: String,
    /// The expression, with its tensors as `x0`, `x1` and so on. It is empty if the mistake is in a view.
    pub expression: String,
    /// The types and shapes of these tensors: `x0: f32[3, 4]`.
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
    /// Element types for which there is no rule.
    BadDtype,
    /// An index, an axis or a range out of bounds.
    OutOfRange,
    /// An output that overlaps an input, except element by element.
    Overlap,
    /// Less workspace than a plan needs.
    InsufficientWorkspace,
    /// A number of operands that the operator does not take.
    BadCount,
    /// A name that no operator has.
    UnknownName,
    /// A stencil whose source cannot be read at a distance, or whose boundary does not allow its neighbours.
    BadStencil,
    /// Operands that are split over devices in different ways, or split operands together with operands of one device.
    BadSplit,
    /// An intermediate result of a chain of transforms. It has no value outside the chain.
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
