//! Operators that have a name or are made from a closure.

use std::panic::Location;
use std::sync::Arc;

use primitives_host::{ExpressionErrorKind, Result};

use super::value::{Mistake, TERNARY, UNARY, Value, binary};
use crate::expr::dtype::DType;
use crate::expr::evaluate::mistake;

/// Computes an element of the output from the elements of the inputs at the same place.
///
/// ```
/// use kernel_primitives::ops::Operator;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// assert_eq!(Operator::named("hypot")?.arity(), 2);
/// let swish = Operator::new("swish", 2, |x| &x[0] * (&x[0] * &x[1]).sigmoid());
/// assert_eq!((swish.name(), swish.arity()), ("swish", 2));
/// assert!(Operator::named("swish").is_err());
/// assert!(Operator::names().any(|name| name == "mul_add"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Operator {
    name: Arc<str>,
    arity: usize,
    body: Body,
}

type Traced = dyn Fn(&[Value]) -> Value + Send + Sync;

#[derive(Clone)]
enum Body {
    /// The input without a change.
    Copy,
    /// The input in the type of the output.
    Cast,
    Unary(fn(&Value) -> Value),
    Binary(fn(&Value, &Value) -> Value),
    Ternary(fn(&Value, &Value, &Value) -> Value),
    Traced(Arc<Traced>),
}

impl Operator {
    /// Returns the operator with a name: a function of [`Value`], `copy`, or `cast`, which converts to the type of the output.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`](crate::Error::Expression) if there is no operator with that name.
    #[track_caller]
    pub fn named(name: &str) -> Result<Self> {
        let unary = UNARY.iter().find(|known| known.0 == name).map(|known| (1, Body::Unary(known.1)));
        let of_two = || binary().find(|known| known.0 == name).map(|known| (2, Body::Binary(known.1)));
        let ternary = || TERNARY.iter().find(|known| known.0 == name).map(|known| (3, Body::Ternary(known.1)));
        let found = match name {
            "copy" => Some((1, Body::Copy)),
            "cast" => Some((1, Body::Cast)),
            _ => unary.or_else(of_two).or_else(ternary),
        };
        let Some((arity, body)) = found else {
            let reason = format!("no operator is called `{name}`");
            return Err(mistake(Location::caller(), ExpressionErrorKind::UnknownName, reason, &[]));
        };
        Ok(Self { name: name.into(), arity, body })
    }

    /// Makes an operator of `arity` values from a closure. Each plan calls the closure once. The operations that it applies to the values
    /// are the kernel.
    pub fn new(name: &str, arity: usize, body: impl Fn(&[Value]) -> Value + Send + Sync + 'static) -> Self {
        Self { name: name.into(), arity, body: Body::Traced(Arc::new(body)) }
    }

    /// The names of all operators that have a name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let (unary, binary) = (UNARY.iter().map(|known| known.0), binary().map(|known| known.0));
        ["copy", "cast"].into_iter().chain(unary).chain(binary).chain(TERNARY.iter().map(|known| known.0))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of inputs.
    pub fn arity(&self) -> usize {
        self.arity
    }

    /// The value of the output, which has the type `output`, for as many inputs as the operator has.
    pub(super) fn apply(&self, inputs: &[Value], output: DType) -> Result<Value, Mistake> {
        let value = match &self.body {
            Body::Copy => inputs[0].clone(),
            Body::Cast => inputs[0].cast(output),
            Body::Unary(f) => f(&inputs[0]),
            Body::Binary(f) => f(&inputs[0], &inputs[1]),
            Body::Ternary(f) => f(&inputs[0], &inputs[1], &inputs[2]),
            Body::Traced(f) => f(inputs),
        };
        value.0.clone()?;
        Ok(value)
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Operator({} of {})", self.name, self.arity)
    }
}
