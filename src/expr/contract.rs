//! Contraction: replaces sums of products by multiply-adds.

use std::sync::Arc;

use super::dtype::Scalar;
use super::graph::{Arguments, Expr, Kind, Node, Op, arguments, rewritten, with_arguments};
use super::neighbours::weighted::Taps;
use super::split::Beside;

impl<T: Scalar> Expr<T> {
    /// Replaces each sum or difference of a product of floats by one [`mul_add`](super::mul_add), which rounds once instead of twice.
    ///
    /// Compilers for GPUs do this to every `a * b + c` by default. It saves up to half of the arithmetic. Because it gives other bits than
    /// the operators as you write them, this library does it only if you call this function. A GPU and the CPU still give the same bits. If
    /// the program was compiled for CPUs without such an instruction, each multiply-add on the CPU is a slow function call.
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
        Self::of_node(rewritten(&self.node, &mut rebuilt))
    }
}

/// Returns the contracted node with new arguments. A node that does not change is used again.
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

/// Returns the two factors, if the node is a product.
fn factors(node: &Node) -> Option<[Arc<Node>; 2]> {
    match (&node.kind, &node.arguments) {
        (Kind::Op(Op::Mul), [Some(x), Some(y), ..]) => Some([x.clone(), y.clone()]),
        _ => None,
    }
}
