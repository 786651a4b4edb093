//! Calls all functors of a type in one kernel. Each pair of arguments gives an array with one result for each functor.
//! The tests call the same functions on the host.

use kernel_primitives::functor::*;
use kernel_primitives::prelude::*;

/// Encodes a result as 64 bits. Each NaN has the same bits, because its payload is not fixed.
pub trait Encode {
    fn encode(self) -> u64;
}

macro_rules! encode {
    ($($t:ty: |$x:ident| $bits:expr;)*) => {$(
        impl Encode for $t {
            #[inline(always)]
            fn encode(self) -> u64 {
                let $x = self;
                $bits
            }
        }
    )*};
}
encode! {
    bool: |x| x as u64;
    u8: |x| x as u64;
    u16: |x| x as u64;
    u32: |x| x as u64;
    u64: |x| x;
    i8: |x| x as u64;
    i16: |x| x as u64;
    i32: |x| x as u64;
    i64: |x| x as u64;
    f16: |x| if Float::is_nan(x) { 0x7e00 } else { x.to_bits() as u64 };
    bf16: |x| if Float::is_nan(x) { 0x7fc0 } else { x.to_bits() as u64 };
    f32: |x| if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() as u64 };
    f64: |x| if x.is_nan() { 0x7ff8 << 48 } else { x.to_bits() };
    Complex<f32>: |x| x.re.encode() << 32 | x.im.encode();
}

/// A number of any type with its functors.
pub trait Columns:
    Quotient
    + Magnitude<Real = Self>
    + ByConstant
    + SortKey<Bits: Encode>
    + Encode
    + ConvertTo<bool>
    + ConvertTo<u8>
    + ConvertTo<u16>
    + ConvertTo<u32>
    + ConvertTo<u64>
    + ConvertTo<i8>
    + ConvertTo<i16>
    + ConvertTo<i32>
    + ConvertTo<i64>
    + ConvertTo<f16>
    + ConvertTo<bf16>
    + ConvertTo<f32>
    + ConvertTo<f64>
{
    /// Returns a number that is allowed as a divisor. For integers, it returns 1 in place of 0.
    fn nonzero(self) -> Self;
}

macro_rules! nonzero {
    ($($t:ty: |$x:ident| $nonzero:expr;)*) => {$(
        impl Columns for $t {
            #[inline(always)]
            fn nonzero(self) -> Self {
                let $x = self;
                $nonzero
            }
        }
    )*};
    ($($t:ty),*) => { nonzero! { $($t: |x| if x == 0 { 1 } else { x };)* } };
}
nonzero!(u8, u16, u32, u64, i8, i16, i32, i64);
nonzero! { f16: |x| x; bf16: |x| x; f32: |x| x; f64: |x| x; }

/// Defines a function from two arguments to an array of results, and the names of the results.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident, $names:ident: <$t:ident: $($bound:path),+> |$x:ident, $y:ident| -> $r:ty [
        $($column:expr),* $(,)?
    ]) => {
        pub const $names: &[&str] = &[$(stringify!($column)),*];

        $(#[$doc])*
        #[inline(always)]
        pub fn $name<$t: $($bound +)+>($x: $t, $y: $t) -> [$r; $names.len()] {
            [$($column),*]
        }
    };
}

columns! {
    /// The functors of all numbers.
    numbers, NUMBERS: <T: Columns> |x, y| -> u64 [
        Identity.apply(x).encode(),
        Neg.apply(x).encode(),
        Square.apply(x).encode(),
        Abs.apply(x).encode(),
        Relu.apply(x).encode(),
        Reciprocal.apply(y.nonzero()).encode(),
        LogicalNot.apply(x).encode(),
        DivideBy::new(y.nonzero()).apply(x).encode(),
        Clamp { low: y, high: T::ONE }.apply(x).encode(),
        Add.apply(x, y).encode(),
        Sub.apply(x, y).encode(),
        Mul.apply(x, y).encode(),
        Div.apply(x, y.nonzero()).encode(),
        FloorDiv.apply(x, y.nonzero()).encode(),
        TruncDiv.apply(x, y.nonzero()).encode(),
        FloorRem.apply(x, y.nonzero()).encode(),
        TruncRem.apply(x, y.nonzero()).encode(),
        Min.apply(x, y).encode(),
        Max.apply(x, y).encode(),
        Equal.apply(x, y).encode(),
        NotEqual.apply(x, y).encode(),
        LessThan.apply(x, y).encode(),
        LessOrEqual.apply(x, y).encode(),
        GreaterThan.apply(x, y).encode(),
        GreaterOrEqual.apply(x, y).encode(),
        LogicalAnd.apply(x, y).encode(),
        LogicalOr.apply(x, y).encode(),
        LogicalXor.apply(x, y).encode(),
        Select.apply(LessThan.apply(x, y), x, y).encode(),
        BinaryFn::apply(&compose(Square, Sub), x, y).encode(),
        bind_first(Sub, y).apply(x).encode(),
        bind_second(Sub, y).apply(x).encode(),
        swap_arguments(Sub).apply(x, y).encode(),
        Fold(Add).apply([x, y, x]).encode(),
        Cast::<bool>::new().apply(x).encode(),
        Cast::<u8>::new().apply(x).encode(),
        Cast::<u16>::new().apply(x).encode(),
        Cast::<u32>::new().apply(x).encode(),
        Cast::<u64>::new().apply(x).encode(),
        Cast::<i8>::new().apply(x).encode(),
        Cast::<i16>::new().apply(x).encode(),
        Cast::<i32>::new().apply(x).encode(),
        Cast::<i64>::new().apply(x).encode(),
        Cast::<f16>::new().apply(x).encode(),
        Cast::<bf16>::new().apply(x).encode(),
        Cast::<f32>::new().apply(x).encode(),
        Cast::<f64>::new().apply(x).encode(),
        x.to_sort_bits().encode(),
        T::from_sort_bits(x.to_sort_bits()).encode(),
    ]
}

columns! {
    /// The functors of integers.
    integers, INTEGERS: <T: Columns, Integer> |x, y| -> u64 [
        BitAnd.apply(x, y).encode(),
        BitOr.apply(x, y).encode(),
        BitXor.apply(x, y).encode(),
        BitNot.apply(x).encode(),
        Shl.apply(x, y).encode(),
        Shr.apply(x, y).encode(),
        Shr.apply(x, T::ONE).encode(),
        Shl.apply(x, Integer::shr(y, 5)).encode(),
        x.leading_zeros().encode(),
        x.trailing_zeros().encode(),
        x.count_ones().encode(),
    ]
}

columns! {
    /// The functors of floats that are exact to the bit.
    floats, FLOATS: <T: Columns, Real> |x, y| -> u64 [
        MulAdd.apply(x, y, x).encode(),
        MulAdd.apply(x, x, y).encode(),
        MulAdd.apply(x, y, T::MIN_POSITIVE).encode(),
        x.copysign(y).encode(),
        x.is_nan().encode(),
        x.is_finite().encode(),
        x.is_normal().encode(),
        x.is_infinite().encode(),
        Sqrt.apply(x).encode(),
        Floor.apply(x).encode(),
        Ceil.apply(x).encode(),
        Round.apply(x).encode(),
        Trunc.apply(x).encode(),
        Real::round(x).encode(),
        Real::abs(x).encode(),
    ]
}

/// Functors of floats with an error of a few units in the last place. Each has its largest error in these units, and
/// its result in `f64`.
macro_rules! elementary {
    (|$x:ident, $y:ident| $($functor:ident($($argument:ident),+) within $units:literal of $exact:expr;)*) => {
        /// Returns the results of all of these functors.
        #[inline(always)]
        pub fn reals<T: Real + Accumulate<Accum: Real>>($x: T, $y: T) -> [T; REALS] {
            [$($functor.apply($($argument),+)),*]
        }

        /// The number of these functors.
        pub const REALS: usize = [$(stringify!($functor)),*].len();

        /// A functor's name, its results in `f64`, and its largest error in units in the last place.
        #[cfg(not(target_arch = "nvptx64"))]
        pub type Elementary = (&'static str, fn(f64, f64) -> f64, f64);

        /// All of these functors, in the order of the results.
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(unused_variables, reason = "most take one argument")]
        pub const ELEMENTARY: [Elementary; REALS] = [$((stringify!($functor), |$x, $y| $exact, $units)),*];
    };
}
// The units are those in libdevice's documentation. For activation functions, they also allow for the rounding of the
// arguments.
elementary! { |x, y|
    Rsqrt(x) within 3.0 of 1.0 / x.sqrt();
    Cbrt(x) within 3.0 of x.cbrt();
    Exp(x) within 3.0 of x.exp();
    Exp2(x) within 3.0 of x.exp2();
    ExpM1(x) within 3.0 of x.exp_m1();
    Log(x) within 3.0 of x.ln();
    Log2(x) within 3.0 of x.log2();
    Log10(x) within 4.0 of x.log10();
    Log1p(x) within 3.0 of x.ln_1p();
    Sin(x) within 3.0 of x.sin();
    Cos(x) within 3.0 of x.cos();
    Tan(x) within 5.0 of x.tan();
    Asin(x) within 4.0 of x.asin();
    Acos(x) within 4.0 of x.acos();
    Atan(x) within 3.0 of x.atan();
    Sinh(x) within 5.0 of x.sinh();
    Cosh(x) within 4.0 of x.cosh();
    Tanh(x) within 4.0 of x.tanh();
    Asinh(x) within 4.0 of libm::asinh(x);
    Acosh(x) within 5.0 of if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    Atanh(x) within 4.0 of libm::atanh(x);
    Erf(x) within 4.0 of libm::erf(x);
    Erfc(x) within 7.0 of libm::erfc(x);
    Sigmoid(x) within 6.0 of if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
    Silu(x) within 8.0 of {
        if x == f64::NEG_INFINITY {
            -0.0
        } else if x < 0.0 {
            x * x.exp() / (1.0 + x.exp())
        } else {
            x / (1.0 + (-x).exp())
        }
    };
    Gelu(x) within 300.0 of if x == f64::NEG_INFINITY { -0.0 } else { 0.5 * x * libm::erfc(-x / 2f64.sqrt()) };
    GeluTanh(x) within 300.0 of {
        // The factor is e to the power of 2u, divided by 1 plus the same power. For large u it is 1.
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        if x == f64::NEG_INFINITY {
            -0.0
        } else if u > 20.0 {
            x
        } else {
            x * (2.0 * u).exp() / (1.0 + (2.0 * u).exp())
        }
    };
    Pow(x, y) within 9.0 of x.powf(y);
    Hypot(x, y) within 4.0 of x.hypot(y);
    Atan2(x, y) within 4.0 of x.atan2(y);
}

columns! {
    /// The functors of complex numbers that are exact to the bit.
    complexes, COMPLEXES: <T: Divide, Encode> |x, y| -> u64 [
        Neg.apply(x).encode(),
        Square.apply(x).encode(),
        Add.apply(x, y).encode(),
        Sub.apply(x, y).encode(),
        Mul.apply(x, y).encode(),
        Div.apply(x, y).encode(),
        Reciprocal.apply(x).encode(),
        Equal.apply(x, y).encode(),
    ]
}

macro_rules! kernels {
    ($($(#[$kernel:meta])* $name:ident: <$t:ident: $($bound:path),+> $function:ident -> $out:ty;)*) => {$(
        $(#[$kernel])*
        pub fn $name<$t: $($bound +)+>(cx: Block, x: Global<$t>, y: Global<$t>, mut out: GlobalMut<$out>) {
            for i in cx.items(out.len()) {
                out.set(i, $function(x[i], y[i]));
            }
        }
    )*};
}
kernels! {
    #[kernel(equal_len(x, y, out), instantiate(<u8>, <u16>, <u32>, <u64>, <i8>, <i16>, <i32>, <i64>))]
    columns_of_integers: <T: Columns, Integer> integers -> [u64; INTEGERS.len()];
    #[kernel(equal_len(x, y, out), instantiate(
        <u8>, <u16>, <u32>, <u64>, <i8>, <i16>, <i32>, <i64>, <f16>, <bf16>, <f32>, <f64>
    ))]
    columns_of_numbers: <T: Columns> numbers -> [u64; NUMBERS.len()];
    #[kernel(equal_len(x, y, out), instantiate(<f16>, <bf16>, <f32>, <f64>))]
    columns_of_floats: <T: Columns, Real> floats -> [u64; FLOATS.len()];
    #[kernel(equal_len(x, y, out), instantiate(<f16>, <bf16>, <f32>, <f64>))]
    columns_of_reals: <T: Real, Accumulate<Accum: Real>> reals -> [T; REALS];
    #[kernel(equal_len(x, y, out), instantiate(<Complex<f32>>))]
    columns_of_complexes: <T: Divide, Encode> complexes -> [u64; COMPLEXES.len()];
}
