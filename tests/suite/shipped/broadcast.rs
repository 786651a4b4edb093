//! Tests the shipped kernel of two inputs that are broadcast.

use kernel_primitives::functor::{Add, BinaryFn, Mul, Sub};
use kernel_primitives::io::{BroadcastConfig, BroadcastError};
use kernel_primitives::kernels::broadcast_binary;
use kernel_primitives::{Dims, Result, f16};

use crate::support::{SHAPES, stream, streams, values};

/// Shapes of two inputs and the output. They are Paddle's cases, and outer products.
const SHAPES_OF_THREE: [(&[usize], &[usize], &[usize]); 17] = [
    (&[13, 17], &[13, 17], &[13, 17]),
    (&[], &[], &[]),
    (&[], &[13, 17], &[13, 17]),
    (&[13, 17], &[], &[13, 17]),
    (&[10, 3, 4], &[1], &[10, 3, 4]),
    (&[100], &[100], &[100]),
    (&[13, 17, 1], &[17, 17], &[13, 17, 17]),
    (&[2, 3, 100], &[100], &[2, 3, 100]),
    (&[10, 2, 11], &[10, 1, 11], &[10, 2, 11]),
    (&[10, 4, 2, 3], &[10, 4, 1, 3], &[10, 4, 2, 3]),
    (&[2, 3, 100], &[1, 1, 100], &[2, 3, 100]),
    (&[30, 3, 1, 5], &[30, 1, 4, 1], &[30, 3, 4, 5]),
    (&[64, 1], &[1, 64], &[64, 64]),
    (&[1, 65], &[33, 1], &[33, 65]),
    (&[1], &[0, 3], &[0, 3]),
    (&[2, 1, 3, 1, 4], &[5, 1, 6, 1], &[2, 5, 3, 6, 4]),
    (&[16, 352], &[16, 352], &[16, 352]),
];

/// Returns the index of an input's element for the output's element `index`, digit by digit.
fn place(output: &[usize], input: &[usize], mut index: usize) -> usize {
    let (mut found, mut step) = (0, 1);
    for back in 1..=output.len() {
        let extent = output[output.len() - back];
        let digit = index % extent;
        index /= extent;
        if back <= input.len() {
            let own = input[input.len() - back];
            found += if own == 1 { 0 } else { digit * step };
            step *= own;
        }
    }
    found
}

macro_rules! broadcasts {
    ($($name:ident: $t:ty, $op:ident, $i:ty, $nx:literal;)*) => {$(
        #[test]
        fn $name() -> std::result::Result<(), Box<dyn std::error::Error>> {
            let stream = stream()?;
            for (k, (a, b, output)) in SHAPES_OF_THREE.into_iter().enumerate() {
                let [a_len, b_len, len] = [a, b, output].map(|shape| shape.iter().product::<usize>());
                // The input has an offset, so that not all rows start on a boundary.
                let offset = k % 3;
                let (x, y) = (values::<$t>(a_len + offset, 1), values::<$t>(b_len, 2));
                let (x_buffer, y_buffer) = (stream.buffer_from(&x)?, stream.buffer_from(&y)?);
                let (by_x, by_y) = (BroadcastConfig::<$i>::new(output, a)?, BroadcastConfig::<$i>::new(output, b)?);
                for dims in [Dims::for_items(len).items_per_thread($nx), Dims::new(2, SHAPES[k % SHAPES.len()])] {
                    let mut out = stream.buffer_zeroed::<$t>(len)?;
                    let x_slice = x_buffer.slice(offset..)?;
                    broadcast_binary::<$t, $t, $op, $i, $nx>::launch(
                        &stream, dims, x_slice, by_x, &y_buffer, by_y, &mut out, $op,
                    )?;
                    let expected: Vec<_> = (0..len)
                        .map(|i| $op.apply(x[offset + place(output, a, i)], y[place(output, b, i)]))
                        .collect();
                    assert_eq!(out.to_vec()?, expected, "{a:?} and {b:?} to {output:?}, {dims:?}");
                }
            }
            Ok(())
        }
    )*};
}
broadcasts! {
    broadcast_products_of_f32: f32, Mul, u32, 4;
    broadcast_products_of_i32: i32, Mul, u32, 4;
    broadcast_products_of_f16: f16, Mul, u32, 8;
    broadcast_sums_of_f64: f64, Add, u32, 2;
    broadcast_differences_of_f32: f32, Sub, u32, 4;
    broadcast_sums_of_f32_with_64_bit_indices: f32, Add, u64, 4;
}

#[test]
fn sanitize_an_outer_product() -> Result<()> {
    for stream in streams()? {
        let (x, y) = (values::<f32>(33, 1), values::<f32>(65, 2));
        let mut out = stream.buffer_zeroed::<f32>(33 * 65)?;
        let column = BroadcastConfig::<u32>::new(&[33, 65], &[33, 1]).expect("a column");
        let row = BroadcastConfig::<u32>::new(&[33, 65], &[65]).expect("a row");
        broadcast_binary::<f32, f32, Mul, u32, 4>::launch(
            &stream,
            Dims::for_items(33 * 65).items_per_thread(4),
            &stream.buffer_from(&x)?,
            column,
            &stream.buffer_from(&y)?,
            row,
            &mut out,
            Mul,
        )?;
        let expected: Vec<_> = x.iter().flat_map(|x| y.iter().map(move |y| x * y)).collect();
        assert_eq!(out.to_vec()?, expected);
    }
    Ok(())
}

/// These are Paddle's in-place products whose output would have to grow.
#[test]
fn an_output_does_not_grow() {
    let (input, outputs): (_, [&[usize]; 3]) = ([2, 3, 4], [&[3, 4], &[2, 1, 4], &[5, 2, 1, 4]]);
    let errors = outputs.map(|output| BroadcastConfig::<u32>::new(output, &input).unwrap_err());
    assert_eq!(errors[0], BroadcastError::InputRank { input: 3, output: 2 });
    assert_eq!(errors[1], BroadcastError::Extent { axis: 1, input: 3, output: 1 });
    assert_eq!(errors[2], BroadcastError::Extent { axis: 2, input: 3, output: 1 });
}
