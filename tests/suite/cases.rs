//! Tests cases of Paddle's and InfiniCore's tests that no shipped kernel takes: strided operands, products in place,
//! and running sums along any dimension. Their reductions and broadcasts are in `rows`, `columns` and `broadcast`.

use kernel_primitives::{Buffer, Number, Result, Stream};

use crate::kernels::cases as kernels;
use crate::support::{Arbitrary, stream, values};

/// InfiniCore's products. Each case has the shape `[outer, rows, columns]`, and the strides of outer elements and of
/// rows for both inputs and the output. A stride of 0 repeats a row or an outer element.
const PRODUCTS: [([u32; 3], [[u32; 2]; 3]); 10] = [
    ([1, 13, 4], [[0, 4], [0, 4], [0, 4]]),
    ([1, 13, 4], [[0, 10], [0, 10], [0, 10]]),
    ([1, 13, 4], [[0, 0], [0, 4], [0, 4]]),
    ([13, 4, 4], [[16, 4], [16, 4], [16, 4]]),
    ([13, 4, 4], [[20, 4], [20, 4], [20, 4]]),
    ([13, 4, 4], [[4, 0], [0, 4], [16, 4]]),
    ([1, 16, 5632], [[0, 5632], [0, 5632], [0, 5632]]),
    ([1, 16, 5632], [[0, 13_312], [0, 13_312], [0, 13_312]]),
    ([4, 4, 5632], [[22_528, 5632], [22_528, 5632], [22_528, 5632]]),
    ([4, 4, 5632], [[45_056, 5632], [45_056, 5632], [45_056, 5632]]),
];

fn products<T: Arbitrary + Number>(
    strided: impl Fn(&Stream, u32, [u32; 3], [[u32; 2]; 3], &Buffer<T>, &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    in_place: impl Fn(&Stream, &mut Buffer<T>, &Buffer<T>) -> Result<()>,
) -> Result<()> {
    let stream = stream()?;
    // Only one type has the long rows, because types do not differ there.
    let cases = if size_of::<T>() == 4 { 10 } else { 6 };
    for (k, (shape, strides)) in PRODUCTS.into_iter().take(cases).enumerate() {
        let [outers, rows, columns] = shape.map(|extent| extent as usize);
        let place = |k: usize, outer: usize, row: usize| outer * strides[k][0] as usize + row * strides[k][1] as usize;
        let len = |k: usize| place(k, outers - 1, rows - 1) + columns;
        let (x, y) = (values::<T>(len(0), 1), values::<T>(len(1), 2));
        let (a, b) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
        let mut expected = vec![T::GREATEST; len(2)];
        let mut out = stream.buffer_from(&expected)?;
        strided(&stream, [32, 7, 128][k % 3], shape, strides, &a, &b, &mut out)?;
        for (outer, row) in (0..outers).flat_map(|outer| (0..rows).map(move |row| (outer, row))) {
            let [at_x, at_y, at] = [0, 1, 2].map(|k| place(k, outer, row));
            for column in 0..columns {
                expected[at + column] = x[at_x + column].mul(y[at_y + column]);
            }
        }
        assert!(out.to_vec()? == expected, "{shape:?}, {strides:?}");

        // Contiguous operands allow a product in place of either operand, because multiplication commutes.
        if x.len() == y.len() {
            let expected: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| x.mul(y)).collect();
            for (mut target, other) in [(stream.buffer_from(&x)?, &b), (stream.buffer_from(&y)?, &a)] {
                in_place(&stream, &mut target, other)?;
                assert!(target.to_vec()? == expected, "in place, {shape:?}, {strides:?}");
            }
        }
    }
    Ok(())
}

macro_rules! products {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() -> Result<()> {
            products::<$t>(
                |stream, threads, shape, strides, a, b, out| {
                    kernels::strided_product::<$t>::launch(stream, (3, threads), shape, strides, a, b, out)
                },
                |stream, a, b| kernels::product_in_place::<$t>::launch(stream, (2, 65), a, b),
            )
        }
    )*};
}
products! {
    sanitize_strided_products_of_f32: f32;
    strided_products_of_f64: f64;
    strided_products_of_f16: kernel_primitives::f16;
    strided_products_of_bf16: kernel_primitives::bf16;
}

/// The strides in three dimensions, of input and output.
type Strides = [[u32; 3]; 2];

fn contiguous([_, len, inner]: [u32; 3]) -> Strides {
    [[len * inner, inner, 1]; 2]
}

#[test]
fn sanitize_running_sums_along_any_dimension() -> Result<()> {
    let stream = stream()?;
    // Each case has a shape, the strides of input and output unless they are contiguous, whether it runs from the end,
    // and whether it is exclusive.
    let cases: [([u32; 3], Option<Strides>, bool, bool); 15] = [
        ([1, 5, 60], None, false, false),
        ([5, 6, 10], None, false, false),
        ([30, 10, 1], None, false, false),
        ([30, 10, 1], None, true, false),
        ([5, 20, 1], None, false, false),
        ([1, 150, 1], None, false, false),
        ([1, 100, 1], None, false, false),
        ([20, 20, 1], None, false, true),
        ([1, 100, 1], None, false, true),
        ([20, 6, 1], None, true, true),
        ([1, 1, 1], None, false, false),
        ([1, 1, 1], None, true, true),
        ([1, 13, 4], Some([[0, 10, 1], [0, 4, 1]]), false, false),
        ([16, 64, 1], Some([[128, 1, 0], [128, 1, 0]]), false, false),
        ([3, 0, 5], None, false, false),
    ];
    for (k, (shape, strides, reversed, exclusive)) in cases.into_iter().enumerate() {
        let strides = strides.unwrap_or(contiguous(shape));
        let [outer, len, inner] = shape.map(|extent| extent as usize);
        let place = |k: usize, [o, i, n]: [usize; 3]| {
            let [outer_stride, stride, inner_stride] = strides[k].map(|stride| stride as usize);
            o * outer_stride + i * stride + n * inner_stride
        };
        let size = |k: usize| if len == 0 { 0 } else { place(k, [outer - 1, len - 1, inner - 1]) + 1 };
        let x: Vec<f64> = values(size(0), k as u64);
        let mut expected = vec![-7.0; size(1)];
        let mut out = stream.buffer_from(&expected)?;
        let threads = [32, 7, 65][k % 3];
        let (from_end, before) = (reversed as u32, exclusive as u32);
        let input = stream.buffer_from(&x)?;
        kernels::running_sums::launch(&stream, (4, threads), shape, strides, from_end, before, &input, &mut out)?;
        for (o, n) in (0..outer).flat_map(|o| (0..inner).map(move |n| (o, n))) {
            let mut sum = 0.0;
            for step in 0..len {
                let i = if reversed { len - 1 - step } else { step };
                let item = x[place(0, [o, i, n])];
                expected[place(1, [o, i, n])] = if exclusive { sum } else { sum + item };
                sum += item;
            }
        }
        assert_eq!(out.to_vec()?, expected, "{shape:?}, {strides:?}, reversed {reversed}, exclusive {exclusive}");
    }
    Ok(())
}
