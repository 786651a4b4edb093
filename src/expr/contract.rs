//! Contraction: sums of products as multiply-adds.

use std::sync::Arc;

use super::dtype::Scalar;
use super::graph::{Arguments, Expr, Kind, Node, Op, arguments, rewritten, with_arguments};
use super::neighbours::weighted::Taps;
use super::split::Beside;

impl<T: Scalar> Expr<T> {
    /// The same with each sum or difference of a product, where both are of floats, as one
    /// [`mul_add`](super::mul_add), which rounds once instead of twice.
    ///
    /// That is what compilers for GPUs do with every `a * b + c` unless told not to. It takes up to half the arithmetic, and gives other
    /// bits than the operators as they are written, so it has to be asked for. A GPU and the CPU agree after it as before it. On a CPU
    /// for which no such instruction was compiled each multiply-add is a call, and slow.
    ///
    /// ```
    /// use kernel_primitives::Device;
    /// use kernel_primitives::expr::Tensor;
    ///
    /// # fn main() -> kernel_primitives::Result<()> {
    /// let stream = Device::auto()?.stream()?;
    /// let x = Tensor::from_slice(&stream, 1, &[1.0f32 + 1.0 / 4096.0])?;
    /// let y = Tensor::zeros(&stream, 1)?;
    /// y.assign(&x * &x - 1.0)?;
    /// assert_eq!(y.to_vec()?, [2.0 / 4096.0]);
    /// y.assign((&x * &x - 1.0).contract())?;
    /// assert_eq!(y.to_vec()?, [2.0 / 4096.0 + 1.0 / (4096.0 * 4096.0)]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn contract(self) -> Self {
        Self::of_node(rewritten(&self.node, rebuilt))
    }
}

/// A node with other arguments, contracted. Parts that stay as they are stay the same nodes.
fn rebuilt(node: &Arc<Node>, new: Arguments) -> Arc<Node> {
    let make = |op, arguments| Arc::new(Node { kind: Kind::Op(op), dtype: node.dtype, arguments });
    if let (Kind::Op(op @ (Op::Add | Op::Sub)), [Some(a), Some(b), ..]) = (&node.kind, &new)
        && node.dtype.is_float()
    {
        let negated = |x: &Arc<Node>| if *op == Op::Sub { make(Op::Neg, arguments([x.clone()])) } else { x.clone() };
        if let Some([x, y]) = factors(a) {
            return make(Op::MulAdd, arguments([x, y, negated(b)]));
        }
        if let Some([x, y]) = factors(b) {
            return make(Op::MulAdd, arguments([negated(&x), y, a.clone()]));
        }
    }
    let contracted = |taps: &Arc<Taps>| Arc::new(Taps { contracted: true, ..Taps::clone(taps) });
    let kind = match &node.kind {
        Kind::Weighted(view, taps) => Kind::Weighted(view.clone(), contracted(taps)),
        Kind::SplitBeside(view, beside) => match &**beside {
            Beside::Weighted(taps) => Kind::SplitBeside(view.clone(), Arc::new(Beside::Weighted(contracted(taps)))),
            _ => return with_arguments(node, new),
        },
        _ => return with_arguments(node, new),
    };
    if !node.dtype.is_float() {
        return with_arguments(node, new);
    }
    Arc::new(Node { kind, dtype: node.dtype, arguments: new })
}

/// Of a product.
fn factors(node: &Node) -> Option<[Arc<Node>; 2]> {
    match (&node.kind, &node.arguments) {
        (Kind::Op(Op::Mul), [Some(x), Some(y), ..]) => Some([x.clone(), y.clone()]),
        _ => None,
    }
}
