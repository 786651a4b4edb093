//! Functions of complex numbers.

use super::functors;
use crate::element::{Arithmetic, Complex, Element};

functors! {
    /// The real part.
    RealPart: <T: Element> UnaryFn<Complex<T>> -> T, |x| x.re;
    /// The imaginary part.
    ImaginaryPart: <T: Element> UnaryFn<Complex<T>> -> T, |x| x.im;
    /// The conjugate.
    Conjugate: <T: Arithmetic> UnaryFn<Complex<T>> -> Complex<T>, |x| Complex { re: x.re, im: x.im.neg() };
    /// The square of the absolute value: `re * re + im * im`, in which each operation is rounded. For a spectrum, it is the power.
    NormSquared: <T: Arithmetic> UnaryFn<Complex<T>> -> T, |x| x.re.mul(x.re).add(x.im.mul(x.im));
}
