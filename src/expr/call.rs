//! Calls of device functions in expressions.

use std::hash::{Hash, Hasher};

use primitives_host::{FunctionCode, FunctionInfo, FunctionValue};

use super::dtype::Scalar;
use super::graph::{Expr, Kind, Operand, arguments};

/// A device function of any type: its code for a GPU, and the function on values in memory.
pub(crate) trait Function: Send + Sync {
    fn code(&'static self) -> &'static FunctionCode;

    /// # Safety
    /// There must be `len` arguments of the function's types at each address, and room for `len` results.
    unsafe fn run(&self, arguments: &[*const u8], to: *mut u8, len: usize);
}

/// A device function in a program. Two are equal if their code is.
#[derive(Clone, Copy)]
pub(crate) struct FunctionRef(pub(crate) &'static dyn Function);

impl PartialEq for FunctionRef {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0.code(), other.0.code())
    }
}
impl Eq for FunctionRef {}
impl Hash for FunctionRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0.code()).addr().hash(state);
    }
}
impl std::fmt::Debug for FunctionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.code().name())
    }
}

/// Operands that a device function of type `F` takes: a tuple with an operand of the right type for each parameter.
#[diagnostic::on_unimplemented(
    message = "a device function `{F}` does not take `{Self}`",
    label = "not a tuple of operands of the function's types",
    note = "pass tensors by reference, or expressions: `call(f::info(), (&x, &y))`"
)]
pub trait CallArguments<F> {
    /// The function's result.
    type Result: Scalar;
    #[doc(hidden)]
    fn call(self, function: &'static FunctionInfo<F>) -> Expr<Self::Result>;
}

macro_rules! calls {
    ($(($($t:ident $x:ident $at:tt $e:ident),*);)*) => {$(
        impl<$($t: Scalar + FunctionValue,)* R: Scalar + FunctionValue> Function for FunctionInfo<fn($($t),*) -> R> {
            fn code(&'static self) -> &'static FunctionCode {
                FunctionInfo::code(self)
            }

            unsafe fn run(&self, arguments: &[*const u8], to: *mut u8, len: usize) {
                let (f, to) = (self.function(), to.cast::<R>());
                for i in 0..len {
                    // SAFETY: the caller's contract.
                    unsafe { to.add(i).write(f($(arguments[$at].cast::<$t>().add(i).read()),*)) };
                }
            }
        }

        impl<$($t: Scalar + FunctionValue,)* R: Scalar + FunctionValue, $($e: Operand<Elem = $t>),*>
            CallArguments<fn($($t),*) -> R> for ($($e,)*)
        {
            type Result = R;
            fn call(self, function: &'static FunctionInfo<fn($($t),*) -> R>) -> Expr<R> {
                let ($($x,)*) = self;
                Expr::new(Kind::Call(FunctionRef(function)), arguments([$($x.expr().node),*]))
            }
        }
    )*};
}
calls! {
    (A a 0 P);
    (A a 0 P, B b 1 Q);
    (A a 0 P, B b 1 Q, C c 2 S);
    (A a 0 P, B b 1 Q, C c 2 S, D d 3 T);
    (A a 0 P, B b 1 Q, C c 2 S, D d 3 T, E e 4 U);
    (A a 0 P, B b 1 Q, C c 2 S, D d 3 T, E e 4 U, F f 5 V);
}

/// Calls a [`device_function`](macro@crate::device_function) for each element: a function of the library, or of your own kernel module.
///
/// ```
/// use kernel_primitives::Device;
/// use kernel_primitives::expr::{Tensor, call};
/// use kernel_primitives::kernels::functions::powi_f64;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::auto()?.stream()?;
/// let x = Tensor::from_slice(&stream, 3, &[1.0f64, 2.0, 3.0])?;
/// let n = Tensor::from_slice(&stream, 3, &[5i32, 4, 3])?;
/// let y = Tensor::zeros(&stream, 3)?;
/// y.assign(call(powi_f64::info(), (&x, &n)) + 1.0)?;
/// assert_eq!(y.to_vec()?, [2.0, 17.0, 28.0]);
/// # Ok(())
/// # }
/// ```
pub fn call<F: 'static, A: CallArguments<F>>(function: &'static FunctionInfo<F>, operands: A) -> Expr<A::Result> {
    operands.call(function)
}
