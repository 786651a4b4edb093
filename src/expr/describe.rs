//! Texts of expressions, for errors and for the names of kernels.

use std::sync::Arc;

use primitives_host::ExpressionErrorKind;

use super::dtype::{ToWord, with_type};
use super::graph::{Distribution, Kind, Node, Op, View};
use super::split::SplitView;

/// The most nodes in the text of an expression.
const MOST: usize = 400;

/// Returns the text of expressions, and a description of each view. In the text, the views are `x0`, `x1` and so on, in their order.
pub(crate) fn describe(roots: &[&Arc<Node>]) -> (Vec<String>, Vec<String>) {
    let mut text = Text::new(true);
    let texts = roots.iter().map(|root| text.of_root(root)).collect();
    let shapes = text.leaves.iter().enumerate().map(|(i, leaf)| format!("x{i}: {}", leaf.describe())).collect();
    (texts, shapes)
}

/// Returns the name of the kernel that computes expressions into a target.
pub(crate) fn kernel_name(roots: &[&Arc<Node>], target: &View) -> String {
    if target.stream.device().is_gpu() { form(roots) } else { describe(roots).0.join("; ") }
}

/// Returns the text of expressions without their scalars: `x0 / s`. On a GPU, all expressions that differ only in these share a kernel, and
/// it has the name that the first of them has.
pub(crate) fn form(roots: &[&Arc<Node>]) -> String {
    let mut text = Text::new(false);
    roots.iter().map(|root| text.of_root(root)).collect::<Vec<_>>().join("; ")
}

/// A tensor in the text of an expression.
enum Leaf<'a> {
    View(&'a Arc<View>),
    Split(&'a Arc<SplitView>),
}

impl Leaf<'_> {
    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::View(a), Self::View(b)) => a.same_as(b),
            (Self::Split(a), Self::Split(b)) => a.same_as(b),
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::View(view) => format!("{}{}", view.dtype, view.layout.shape),
            Self::Split(view) => format!("{}{}, split as {}", view.dtype, view.shape, view.describe()),
        }
    }
}

/// The text of expressions, as far as it is written.
struct Text<'a> {
    leaves: Vec<Leaf<'a>>,
    /// The number of nodes that the text may still have. Long expressions are cut off.
    budget: usize,
    /// Whether scalars have their values in the text.
    values: bool,
}

impl<'a> Text<'a> {
    fn new(values: bool) -> Self {
        Self { leaves: Vec::new(), budget: 0, values }
    }

    fn of_root(&mut self, root: &'a Node) -> String {
        self.budget = MOST;
        self.of(root, 0)
    }

    /// Returns the name of a tensor.
    fn name(&mut self, leaf: Leaf<'a>) -> String {
        let at = self.leaves.iter().position(|known| known.same_as(&leaf)).unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        });
        format!("x{at}")
    }

    /// Returns the text of a node. Operators bind as in Rust; `binding` is the binding of the operator around the node.
    fn of(&mut self, node: &'a Node, binding: u8) -> String {
        if self.budget == 0 {
            return "…".into();
        }
        self.budget -= 1;
        let value = |word| with_type!(node.dtype, T => format!("{:?}", <T as ToWord>::from_word(word)));
        let arguments: Vec<&'a Arc<Node>> = node.arguments().collect();
        let (call, first): (String, Option<String>) = match &node.kind {
            Kind::View(view) => return self.name(Leaf::View(view)),
            Kind::Split(view) => return self.name(Leaf::Split(view)),
            Kind::Neighbour(view, shift) => {
                return format!("{}{:?}", self.name(Leaf::View(view)), shift.offsets(view.layout.shape.rank()));
            }
            Kind::Weighted(view, taps) => {
                let name = self.name(Leaf::View(view));
                return format!("convolve({name}, {} weights from {})", taps.weights.len(), taps.first);
            }
            Kind::SplitBeside(view, beside) => {
                let name = self.name(Leaf::Split(view));
                return beside.describe(&name, view.shape.rank());
            }
            Kind::Wrong(ExpressionErrorKind::BadTransform, _) => return "transformed".into(),
            Kind::Wrong(..) => ("stencil".into(), None),
            Kind::Steps(_) if !self.values => return format!("({}).steps(s)", self.of(arguments[0], 0)),
            Kind::Steps(count) => return format!("({}).steps({count})", self.of(arguments[0], 0)),
            Kind::Parameter(number) => return format!("x{number}"),
            Kind::Scalar(_) if !self.values => return "s".into(),
            Kind::Scalar(word) | Kind::Constant(word) => return value(*word),
            Kind::Index(None) => return "index".into(),
            Kind::Index(Some(axis)) => return format!("index({axis})"),
            Kind::Gather(view) => (self.name(Leaf::View(view)) + ".gather", None),
            Kind::SplitGather(view) => (self.name(Leaf::Split(view)) + ".gather", None),
            Kind::Random(Distribution::Uniform) => ("uniform".into(), None),
            Kind::Random(Distribution::Normal) => ("normal".into(), None),
            Kind::Call(function) => (function.0.code().name().rsplit("::").next().unwrap_or_default().into(), None),
            Kind::Op(op) => {
                let infix = match op {
                    Op::Add => Some(("+", 5)),
                    Op::Sub => Some(("-", 5)),
                    Op::Mul => Some(("*", 6)),
                    Op::Div => Some(("/", 6)),
                    Op::Rem => Some(("%", 6)),
                    Op::Shl => Some(("<<", 4)),
                    Op::Shr => Some((">>", 4)),
                    Op::And => Some(("&", 3)),
                    Op::Xor => Some(("^", 2)),
                    Op::Or => Some(("|", 1)),
                    Op::Eq => Some(("==", 0)),
                    Op::Ne => Some(("!=", 0)),
                    Op::Lt => Some(("<", 0)),
                    Op::Le => Some(("<=", 0)),
                    _ => None,
                };
                if let Some((symbol, level)) = infix {
                    let (a, b) = (self.of(arguments[0], level), self.of(arguments[1], level + 1));
                    return if level < binding { format!("({a} {symbol} {b})") } else { format!("{a} {symbol} {b}") };
                }
                match op {
                    Op::Neg => return format!("-{}", self.of(arguments[0], 7)),
                    Op::Not => return format!("!{}", self.of(arguments[0], 7)),
                    Op::Cast => (format!("cast::<{}>", node.dtype), None),
                    Op::Math(math) => (format!("{math:?}").to_lowercase(), None),
                    other => (format!("{other:?}").to_lowercase(), None),
                }
            }
        };
        let rest = arguments.iter().map(|argument| self.of(argument, 0));
        format!("{call}({})", first.into_iter().chain(rest).collect::<Vec<_>>().join(", "))
    }
}
