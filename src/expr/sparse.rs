//! Products of sparse matrices and vectors in expressions.

use std::ops::{Add, Mul, Neg, Sub};
use std::panic::Location;
use std::sync::Arc;

use primitives_gpu::element::{Accumulate, Arithmetic};
use primitives_gpu::functor::{Axpby, PlusTimes};
use primitives_host::storage::{is_unchecked, temporary};
use primitives_host::{BufferSliceMut, ExpressionErrorKind, Result, Stream};

use super::cpu::sparse_product;
use super::dtype::{Numeric, Scalar};
use super::evaluate::{evaluate, mistake, overlaps};
use super::graph::{Expr, Kind, Node, Op, Operand, View};
use super::tensor::Tensor;
use crate::algorithms::{Csr, CsrIndex, Planned, Run, Sell, SparseMatrix, Spmv, spmv_by, spmv_with};

/// The product of a sparse matrix and a vector, times a factor: `&a * &x`, `2.0 * (&a * &x)`. The operators compute nothing.
///
/// Its sum with an expression, or their difference, is a [`SparseSum`]. To compute a product or a sum into a tensor takes the launches of
/// [`spmv`](fn@crate::algorithms::spmv): one or two, by the matrix and its method. They scale and add each row's result as they write it:
///
/// ```
/// use kernel_primitives::algorithms::Csr;
/// use kernel_primitives::expr::Tensor;
/// use kernel_primitives::Device;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// // 1 0 2
/// // 0 3 0
/// let a = Csr::new(&stream, (2, 3), &[0u32, 2, 3], &[0, 2, 1], &[1.0f32, 2.0, 3.0])?;
/// let x = Tensor::from_slice(&stream, 3, &[10.0f32, 20.0, 30.0])?;
/// let f = Tensor::from_slice(&stream, 2, &[71.0f32, 62.0])?;
///
/// assert_eq!((&a * &x).tensor()?.to_vec()?, [70.0, 60.0]);
/// let r = (&f - &a * &x).tensor()?; // one kernel
/// assert_eq!(r.to_vec()?, [1.0, 2.0]);
/// (0.5 * (&a * &x) + 10.0 * &r).assign_to(&r)?; // in place
/// assert_eq!(r.to_vec()?, [45.0, 50.0]);
/// # Ok(())
/// # }
/// ```
///
/// The results have the accumulation type, which is `f32` for halves. Factors multiply: `2.0 * (3.0 * (&a * &x))` is `6.0 * (&a * &x)`. As
/// in BLAS, a term with the factor 0 is not read, so a NaN in it does not reach the result. This holds for the product and for a vector
/// that is added; any other expression is computed as written.
///
/// Sums of floats have the same bits as those of [`spmv`](fn@crate::algorithms::spmv), except on an unchecked emulator. There, all cores of
/// the CPU compute them without emulating kernels, and add up each row from the left.
///
/// [`Tensor::assign`] does not take products, and functions do not take them either: assign a product to a tensor, and go on with the
/// tensor. The vector must be a tensor: [`spmv`](fn@crate::algorithms::spmv) also takes computed vectors, and
/// [`spmm`](fn@crate::algorithms::spmm) takes several vectors.
#[must_use = "nothing is computed before `tensor` or `assign_to`"]
pub struct SparseProduct<'a, M, X, T> {
    matrix: &'a M,
    x: Tensor<X>,
    factor: T,
}

/// The sum of a [`SparseProduct`] and an expression. The operators compute nothing.
///
/// The product's kernels can add a contiguous vector, or a number times such a vector, if the vector is the target itself or in other
/// memory. A separate kernel computes any other expression first, into temporary memory. The expression broadcasts as in
/// [`Tensor::assign`].
#[must_use = "nothing is computed before `tensor` or `assign_to`"]
pub struct SparseSum<'a, M, X, T> {
    product: SparseProduct<'a, M, X, T>,
    addend: Option<Expr<T>>,
}

impl<M, X, T: Copy> Clone for SparseProduct<'_, M, X, T> {
    fn clone(&self) -> Self {
        Self { matrix: self.matrix, x: self.x.clone(), factor: self.factor }
    }
}

impl<'a, M, X, T> SparseProduct<'a, M, X, T>
where
    M: SparseMatrix<Value: Accumulate<Accum = T>>,
    X: Scalar + Accumulate<Accum = T>,
    T: Numeric + Arithmetic,
{
    fn of(matrix: &'a M, x: &Tensor<X>) -> Self {
        Self { matrix, x: x.clone(), factor: T::ONE }
    }

    fn times(self, factor: T) -> Self {
        Self { factor: self.factor.mul(factor), ..self }
    }

    fn plus(self, addend: Expr<T>) -> SparseSum<'a, M, X, T> {
        SparseSum { product: self, addend: Some(addend) }
    }

    /// Computes the product into `target`: see [`SparseSum::assign_to`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SparseSum::assign_to`].
    #[track_caller]
    pub fn assign_to<Tag>(&self, target: &Tensor<T>) -> Result<()>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        self.assign_on(target.stream(), target)
    }

    /// Computes the product into `target`, on any stream: see [`SparseSum::assign_on`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SparseSum::assign_on`].
    #[track_caller]
    pub fn assign_on<'r, Tag>(&self, run: impl Into<Run<'r>>, target: &Tensor<T>) -> Result<()>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        SparseSum { product: self.clone(), addend: None }.assign_on(run, target)
    }

    /// Computes the product into a new vector: see [`SparseSum::tensor`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SparseSum::tensor`].
    #[track_caller]
    pub fn tensor<Tag>(&self) -> Result<Tensor<T>>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        SparseSum { product: self.clone(), addend: None }.tensor()
    }
}

impl<M, X, T> SparseSum<'_, M, X, T>
where
    M: SparseMatrix<Value: Accumulate<Accum = T>>,
    X: Scalar + Accumulate<Accum = T>,
    T: Numeric + Arithmetic,
{
    /// Computes the sum into `target`, a vector with an element for each row of the matrix. The expression may read the target. The vector
    /// that the matrix multiplies must not have an element in common with the target.
    ///
    /// The call first copies this vector if it is not contiguous, or if it is in the target's memory. A separate kernel writes a target
    /// that is not contiguous. If the call fails before it launches the product, the target stays as it was.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`](primitives_host::Error::Expression) if a vector does not have the matrix's shape, or if the target
    /// overlaps the vector that the matrix multiplies. Also returns the errors of [`spmv`](fn@crate::algorithms::spmv) and
    /// [`Tensor::assign`].
    #[track_caller]
    pub fn assign_to<Tag>(&self, target: &Tensor<T>) -> Result<()>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        self.assign_on(target.stream(), target)
    }

    /// Works as [`assign_to`](Self::assign_to), on any stream. A [`Run`] with a [workspace](Run::with) keeps the temporary memory for the
    /// next call.
    ///
    /// In a [capture](Stream::capture), the graph keeps the memory that the call needs. If there is a workspace, it must already be large
    /// enough for the product.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign_to`](Self::assign_to).
    #[track_caller]
    pub fn assign_on<'r, Tag>(&self, run: impl Into<Run<'r>>, target: &Tensor<T>) -> Result<()>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        let (place, run) = (Location::caller(), Run::kept_by_graph(run.into()));
        let stream = run.stream().clone();
        self.check(place, target)?;
        if !target.is_contiguous() {
            let result = vector(&stream, target.len())?;
            self.store::<Tag>(place, run, &stream, &result)?;
            return target.on(&stream).assign(&result);
        }
        self.store::<Tag>(place, run, &stream, target)
    }

    /// Computes the sum into a new vector, on the stream of the vector that the matrix multiplies.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`assign_to`](Self::assign_to), and [`Error::Allocation`](primitives_host::Error::Allocation) if there is not
    /// enough memory.
    #[track_caller]
    pub fn tensor<Tag>(&self) -> Result<Tensor<T>>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        let target = Tensor::uninit(self.product.x.stream(), self.product.matrix.shape().0)?;
        self.assign_to(&target)?;
        Ok(target)
    }

    /// Returns an error if a vector does not fit the matrix's shape.
    fn check(&self, place: &Location<'_>, target: &Tensor<T>) -> Result<()> {
        let SparseProduct { matrix, x, .. } = &self.product;
        let (rows, columns) = matrix.shape();
        let roots: Vec<&Arc<Node>> = self.addend.iter().map(|addend| &addend.node).collect();
        for (what, shape, len) in [("the vector", x.shape(), columns), ("the target", target.shape(), rows)] {
            if shape[..] != [len] {
                let reason = format!("{what} of a matrix of {rows} × {columns} has the shape [{len}], not {shape}");
                return Err(mistake(place, ExpressionErrorKind::BadShape, reason, &roots));
            }
        }
        if overlaps(&target.view, &x.view) {
            let reason = "the target overlaps the vector that the matrix multiplies: assign to another tensor";
            return Err(mistake(place, ExpressionErrorKind::Overlap, reason.into(), &roots));
        }
        Ok(())
    }

    /// Computes the sum into a contiguous target, which was checked.
    fn store<Tag>(
        &self,
        place: &'static Location<'static>,
        run: Run<'_>,
        stream: &Stream,
        target: &Tensor<T>,
    ) -> Result<()>
    where
        M::Value: Spmv<X, M::Index, PlusTimes, Axpby<T>, Tag>,
    {
        let SparseProduct { matrix, x, factor: alpha } = &self.product;
        // A launch must not read another part of the memory that it writes.
        let apart = |view: &View| view.layout.is_contiguous() && !view.storage.same_as(&target.view.storage);
        let copy;
        let x = if apart(&x.view) {
            x
        } else {
            copy = vector::<X>(stream, x.len())?;
            evaluate(place, &[&copy.view], &[x.expr().node])?;
            &copy
        };
        // This has the factor of the added vector, and the vector, unless it is the target.
        let (beta, z) = match self.addend.as_ref().map(|addend| (&addend.node, scaled::<T>(&addend.node))) {
            None => (T::ZERO, None),
            // With the factor 0, the vector is not read. So its layout does not matter.
            Some((_, Some((beta, view)))) if beta == T::ZERO && view.layout.broadcast_to(&target.shape()).is_some() => {
                (T::ZERO, None)
            }
            Some((_, Some((beta, view)))) if view.same_as(&target.view) => (beta, None),
            Some((_, Some((beta, view)))) if view.layout.shape == target.shape() && apart(view) => {
                (beta, Some(Tensor::<T>::at(view.storage.clone(), stream.clone(), view.layout)))
            }
            // The sum must not be computed in the target, because the target keeps its elements until the product is launched.
            Some((node, _)) => {
                let sum = vector::<T>(stream, target.len())?;
                evaluate(place, &[&sum.view], std::slice::from_ref(node))?;
                (T::ONE, Some(sum))
            }
        };
        let axpby = Axpby { alpha: *alpha, beta };
        if is_unchecked(stream.device()) {
            let z = z.as_ref().map(|z| &*z.view);
            // SAFETY: the tensors have these types. `check` has compared their shapes with the matrix's shape, and `z` has the target's
            // shape. All vectors are contiguous. `x` and `z` are in other memory than the target.
            return unsafe { sparse_product::<M, X, T>(place, stream, matrix, &x.view, z, &target.view, axpby) };
        }
        let x = x.as_slice().expect("it lies in a row");
        let z = z.as_ref().map(|z| z.as_slice().expect("it lies in a row"));
        let (start, len) = (target.view.layout.offset, target.len());
        let launch = |all: BufferSliceMut<'_, T>| {
            let y = all.into_slice(start..start + len)?;
            match z {
                Some(z) => spmv_with(run, *matrix, x, PlusTimes, axpby, z, y),
                None => spmv_by(run, *matrix, x, PlusTimes, axpby, y),
            }
        };
        // SAFETY: a tensor of `T` has the memory of a buffer of `T`, or of complex numbers with such parts. The product's launches write
        // the slice; `x` and `z` are in other memory.
        unsafe { target.view.storage.written_by("a sparse product", launch) }
    }
}

/// Makes a temporary vector. If `stream` captures, the graph keeps it.
fn vector<T: Scalar>(stream: &Stream, len: usize) -> Result<Tensor<T>> {
    Tensor::from_buffer(stream, len, temporary(stream, len)?)
}

/// Returns the factor and the vector, if an expression is a vector, or a number times a vector. Works without recursion, because graphs may
/// be deep.
fn scaled<T: Numeric + Arithmetic>(mut node: &Arc<Node>) -> Option<(T, &Arc<View>)> {
    if node.dtype != T::DTYPE {
        return None;
    }
    let mut is_negative = false;
    // A negation has the type of its argument.
    while let (Kind::Op(Op::Neg), Some(inner)) = (&node.kind, &node.arguments[0]) {
        (node, is_negative) = (inner, !is_negative);
    }
    let arguments: Vec<&Arc<Node>> = node.arguments().collect();
    let (factor, view) = match (&node.kind, &arguments[..]) {
        (Kind::View(view), []) => (T::ONE, view),
        (Kind::Op(Op::Mul), [a, b]) => match (&a.kind, &b.kind) {
            (_, Kind::View(view)) => (number(a)?, view),
            (Kind::View(view), _) => (number(b)?, view),
            _ => return None,
        },
        _ => return None,
    };
    Some((if is_negative { factor.neg() } else { factor }, view))
}

/// Returns the value of a number. A constant in place of a neighbour that is outside has its source as an argument, and so a shape: that is no
/// number.
fn number<T: Numeric>(node: &Arc<Node>) -> Option<T> {
    match node.kind {
        Kind::Scalar(word) | Kind::Constant(word) if node.arguments().next().is_none() => Some(T::from_word(word)),
        _ => None,
    }
}

macro_rules! matrices {
    ($($matrix:ident),*) => {$(
        impl<'a, V, I, X, T> Mul<&Tensor<X>> for &'a $matrix<V, I>
        where
            V: Accumulate<Accum = T>,
            I: CsrIndex,
            X: Scalar + Accumulate<Accum = T>,
            T: Numeric + Arithmetic,
        {
            type Output = SparseProduct<'a, $matrix<V, I>, X, T>;
            fn mul(self, x: &Tensor<X>) -> Self::Output {
                SparseProduct::of(self, x)
            }
        }
    )*};
}
matrices!(Csr, Planned, Sell);

/// An operator of a product. The bounds are the same for all operators.
macro_rules! product {
    ($trait:ident[$other:ty] for $this:ty, $output:ident, [$($param:tt)*], |$a:ident, $b:ident| $made:expr, $method:ident) => {
        impl<'a, M, X, T, $($param)*> $trait<$other> for $this
        where
            M: SparseMatrix<Value: Accumulate<Accum = T>>,
            X: Scalar + Accumulate<Accum = T>,
            T: Numeric + Arithmetic,
        {
            type Output = $output<'a, M, X, T>;
            fn $method(self, other: $other) -> Self::Output {
                let ($a, $b) = (self, other);
                $made
            }
        }
    };
}
type Product<'a, M, X, T> = SparseProduct<'a, M, X, T>;

product!(Mul[T] for Product<'a, M, X, T>, SparseProduct, [], |product, factor| product.times(factor), mul);
product!(Add[B] for Product<'a, M, X, T>, SparseSum, [B: Operand<Elem = T>], |product, b| product.plus(b.expr()), add);
product!(
    Sub[B] for Product<'a, M, X, T>, SparseSum, [B: Operand<Elem = T>],
    |product, b| product.plus(Expr::unary(Op::Neg, b.expr())), sub
);

impl<M, X, T> Neg for SparseProduct<'_, M, X, T>
where
    M: SparseMatrix<Value: Accumulate<Accum = T>>,
    X: Scalar + Accumulate<Accum = T>,
    T: Numeric + Arithmetic,
{
    type Output = Self;
    fn neg(self) -> Self {
        Self { factor: Arithmetic::neg(self.factor), ..self }
    }
}

/// An operator with a product on the right of a vector or an expression.
macro_rules! right {
    ($($b:ty),*) => {$(
        product!(Add[Product<'a, M, X, T>] for $b, SparseSum, [], |b, product| product.plus(b.expr()), add);
        product!(Sub[Product<'a, M, X, T>] for $b, SparseSum, [], |b, product| (-product).plus(b.expr()), sub);
    )*};
}
right!(Tensor<T>, &Tensor<T>, Expr<T>, &Expr<T>);

/// An operator with a product on the right of a number.
macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl<'a, M, X> Mul<SparseProduct<'a, M, X, $t>> for $t
        where
            M: SparseMatrix<Value: Accumulate<Accum = $t>>,
            X: Scalar + Accumulate<Accum = $t>,
        {
            type Output = SparseProduct<'a, M, X, $t>;
            fn mul(self, product: SparseProduct<'a, M, X, $t>) -> Self::Output {
                product.times(self)
            }
        }
    )*};
}
numbers!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
