//! Complex values: pairs of expressions, and tensors of complex numbers.

use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

use primitives_gpu::Complex;
use primitives_host::storage::Storage;
use primitives_host::{Buffer, Error, Result, Stream};

use super::dtype::Floating;
use super::graph::{Expr, Op, Operand, zero};
use super::layout::shape::{IntoShape, Layout, Shape};
use super::tensor::{Tensor, checked_shape};

/// An expression whose elements are complex numbers: a pair of expressions for the real and the imaginary part.
///
/// Operators take expressions and [tensors](ComplexTensor) of complex numbers. Each product and each sum of parts is rounded.
pub struct ComplexExpr<T> {
    /// The real part.
    pub re: Expr<T>,
    /// The imaginary part.
    pub im: Expr<T>,
}

impl<T> Clone for ComplexExpr<T> {
    fn clone(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.clone() }
    }
}

impl<T: Floating> ComplexExpr<T> {
    /// Creates the complex number with these parts.
    pub fn new(re: impl Operand<Elem = T>, im: impl Operand<Elem = T>) -> Self {
        Self { re: re.expr(), im: im.expr() }
    }

    /// Creates a real number, with the imaginary part 0.
    pub fn real(re: impl Operand<Elem = T>) -> Self {
        Self { re: re.expr(), im: Expr::of_node(zero(T::DTYPE)) }
    }

    /// Returns the conjugate.
    #[must_use]
    pub fn conj(self) -> Self {
        Self { re: self.re, im: Expr::unary(Op::Neg, self.im) }
    }

    /// Returns the square of the absolute value.
    pub fn norm_squared(self) -> Expr<T> {
        let [re, im] = [self.re, self.im].map(|part| Expr::<T>::binary(Op::Mul, part.clone(), part));
        Expr::binary(Op::Add, re, im)
    }

    /// Multiplies both parts by a real number, such as a window.
    #[must_use]
    pub fn times(self, factor: impl Operand<Elem = T>) -> Self {
        let factor = factor.expr();
        Self { re: Expr::binary(Op::Mul, self.re, factor.clone()), im: Expr::binary(Op::Mul, self.im, factor) }
    }

    /// Contracts sums of products in both parts: see [`Expr::contract`].
    #[must_use]
    pub fn contract(self) -> Self {
        Self { re: self.re.contract(), im: self.im.contract() }
    }
}

/// A complex operand of an expression: a [`ComplexTensor`] by reference, or a [`ComplexExpr`].
pub trait ComplexOperand<T: Floating>: Sized {
    /// Returns the operand as an expression.
    fn complex(self) -> ComplexExpr<T>;
}

impl<T: Floating> ComplexOperand<T> for ComplexExpr<T> {
    fn complex(self) -> Self {
        self
    }
}
impl<T: Floating> ComplexOperand<T> for &ComplexExpr<T> {
    fn complex(self) -> ComplexExpr<T> {
        self.clone()
    }
}
impl<T: Floating> ComplexOperand<T> for &ComplexTensor<T> {
    fn complex(self) -> ComplexExpr<T> {
        let [re, im] = &self.parts;
        ComplexExpr { re: re.expr(), im: im.expr() }
    }
}

fn sum<T: Floating>(op: Op, a: ComplexExpr<T>, b: ComplexExpr<T>) -> ComplexExpr<T> {
    ComplexExpr { re: Expr::binary(op, a.re, b.re), im: Expr::binary(op, a.im, b.im) }
}

fn product<T: Floating>(a: ComplexExpr<T>, b: ComplexExpr<T>) -> ComplexExpr<T> {
    let of = |x: &Expr<T>, y: &Expr<T>| Expr::<T>::binary(Op::Mul, x.clone(), y.clone());
    ComplexExpr {
        re: Expr::binary(Op::Sub, of(&a.re, &b.re), of(&a.im, &b.im)),
        im: Expr::binary(Op::Add, of(&a.re, &b.im), of(&a.im, &b.re)),
    }
}

macro_rules! operators {
    ($($a:ty),*) => {$(
        impl<T: Floating, B: ComplexOperand<T>> Add<B> for $a {
            type Output = ComplexExpr<T>;
            fn add(self, other: B) -> ComplexExpr<T> {
                sum(Op::Add, self.complex(), other.complex())
            }
        }
        impl<T: Floating, B: ComplexOperand<T>> Sub<B> for $a {
            type Output = ComplexExpr<T>;
            fn sub(self, other: B) -> ComplexExpr<T> {
                sum(Op::Sub, self.complex(), other.complex())
            }
        }
        impl<T: Floating, B: ComplexOperand<T>> Mul<B> for $a {
            type Output = ComplexExpr<T>;
            fn mul(self, other: B) -> ComplexExpr<T> {
                product(self.complex(), other.complex())
            }
        }
        impl<T: Floating> Neg for $a {
            type Output = ComplexExpr<T>;
            fn neg(self) -> ComplexExpr<T> {
                let ComplexExpr { re, im } = self.complex();
                ComplexExpr { re: Expr::unary(Op::Neg, re), im: Expr::unary(Op::Neg, im) }
            }
        }
    )*};
}
operators!(ComplexExpr<T>, &ComplexExpr<T>, &ComplexTensor<T>);

/// A contiguous array of complex numbers in device memory, with a shape.
///
/// Its [parts](Self::re) are views: tensors of every second element of the memory.
///
/// ```
/// use kernel_primitives::expr::{ComplexTensor, assign_all};
/// use kernel_primitives::{Complex, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = ComplexTensor::from_slice(&stream, 2, &[Complex::new(1.0f32, 2.0), Complex::new(0.0, 1.0)])?;
/// let square = &x * &x;
/// assign_all([x.re().to(square.re), x.im().to(square.im)])?;
/// assert_eq!(x.to_vec()?, [Complex::new(-3.0, 4.0), Complex::new(-1.0, 0.0)]);
/// # Ok(())
/// # }
/// ```
pub struct ComplexTensor<T> {
    parts: [Tensor<T>; 2],
}

impl<T> Clone for ComplexTensor<T> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone() }
    }
}

impl<T: Floating> std::fmt::Debug for ComplexTensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ComplexTensor<{}>({} on {})", T::DTYPE, self.shape(), self.parts[0].device())
    }
}

impl<T: Floating> ComplexTensor<T> {
    /// Creates a tensor with a copy of `data`, which must have as many numbers as `shape`, outermost axis first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if `data` has another number of elements, or if there are too many axes, and [`Error::Allocation`] if
    /// there is not enough memory.
    #[track_caller]
    pub fn from_slice(stream: &Stream, shape: impl IntoShape, data: &[Complex<T>]) -> Result<Self> {
        let shape = checked_shape(&shape, Some(data.len()))?;
        Ok(Self::at(stream, shape, Storage::of(stream.buffer_from(data)?)))
    }

    /// Creates a tensor whose numbers are all zero.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_slice`](Self::from_slice).
    #[track_caller]
    pub fn zeros(stream: &Stream, shape: impl IntoShape) -> Result<Self> {
        let shape = checked_shape(&shape, None)?;
        let buffer = stream.buffer_zeroed::<Complex<T>>(shape.elements().unwrap_or(usize::MAX))?;
        Ok(Self::at(stream, shape, Storage::of(buffer)))
    }

    /// Creates a tensor from the numbers of a buffer, one for each element of `shape`. Work on the tensor runs in the order of `stream`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`from_slice`](Self::from_slice), and [`Error::WrongDevice`] if the buffer is not on the stream's device.
    #[track_caller]
    pub fn from_buffer(stream: &Stream, shape: impl IntoShape, buffer: Buffer<Complex<T>>) -> Result<Self> {
        let shape = checked_shape(&shape, Some(buffer.len()))?;
        let storage = Storage::of(buffer);
        if !storage.is_on(stream.device()) {
            return Err(Error::WrongDevice {
                kernel: "ComplexTensor::from_buffer".into(),
                argument: "`buffer`".into(),
                stream: stream.device().to_string(),
                buffer: storage.device().to_string(),
            });
        }
        Ok(Self::at(stream, shape, storage))
    }

    /// Creates a tensor from the memory of a buffer, which has one complex number for each element of the shape.
    pub(crate) fn at(stream: &Stream, shape: Shape, storage: Storage) -> Self {
        let storage = Arc::new(storage);
        let parts = [0, 1].map(|offset| {
            let mut layout = Layout::contiguous(shape);
            layout.strides.iter_mut().for_each(|stride| *stride = stride.wrapping_mul(2));
            // If there are no elements, the second place is outside.
            let offset = if shape.contains(&0) { 0 } else { offset };
            Tensor::at(storage.clone(), stream.clone(), Layout { offset, ..layout })
        });
        Self { parts }
    }

    /// Returns the extents of all axes.
    pub fn shape(&self) -> Shape {
        self.parts[0].shape()
    }

    /// Returns the stream that work is enqueued on.
    pub fn stream(&self) -> &Stream {
        self.parts[0].stream()
    }

    /// Returns a view of the same numbers that enqueues its work on another stream, after the work that is enqueued now.
    pub fn on(&self, stream: &Stream) -> Self {
        Self { parts: self.parts.each_ref().map(|part| part.on(stream)) }
    }

    /// Returns the real parts, as a view.
    pub fn re(&self) -> &Tensor<T> {
        &self.parts[0]
    }

    /// Returns the imaginary parts, as a view.
    pub fn im(&self) -> &Tensor<T> {
        &self.parts[1]
    }

    /// Copies the numbers to the host, outermost axis first. The copy waits for all earlier writes of the numbers.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Fault`] if a kernel that writes the numbers had a fault, and the errors of the copy.
    pub fn to_vec(&self) -> Result<Vec<Complex<T>>> {
        // SAFETY: the tensor has the memory of a buffer of complex numbers.
        unsafe { self.parts[0].view.storage.as_slice::<Complex<T>>() }.to_vec()
    }
}
