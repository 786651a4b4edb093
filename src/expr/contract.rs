//! Contraction: sums of products as multiply-adds.

use std::sync::Arc;

use super::dtype::Scalar;
use super::graph::{Arguments, Expr, Kind, Node, Op, arguments};
use super::program::FastMap;

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
        Self::of_node(contracted(&self.node))
    }
}

/// Parts that stay as they are stay the same nodes. Without recursion, as graphs may be deep.
fn contracted(root: &Arc<Node>) -> Arc<Node> {
    let mut done: FastMap<*const Node, Arc<Node>> = FastMap::default();
    let mut open = vec![root];
    while let Some(&node) = open.last() {
        let before = open.len();
        open.extend(node.arguments().filter(|argument| !done.contains_key(&Arc::as_ptr(argument))));
        if open.len() == before {
            open.pop();
            let of = |argument: &Arc<Node>| done[&Arc::as_ptr(argument)].clone();
            let new = rebuilt(node, node.arguments.each_ref().map(|argument| argument.as_ref().map(of)));
            done.insert(Arc::as_ptr(node), new);
        }
    }
    done[&Arc::as_ptr(root)].clone()
}

/// A node with other arguments, contracted.
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
    let same = node.arguments().zip(new.iter().flatten()).all(|(old, new)| Arc::ptr_eq(old, new));
    if same { node.clone() } else { Arc::new(Node { kind: node.kind.clone(), dtype: node.dtype, arguments: new }) }
}

/// Of a product.
fn factors(node: &Node) -> Option<[Arc<Node>; 2]> {
    match (&node.kind, &node.arguments) {
        (Kind::Op(Op::Mul), [Some(x), Some(y), ..]) => Some([x.clone(), y.clone()]),
        _ => None,
    }
}
