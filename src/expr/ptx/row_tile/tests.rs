//! Tests kernels of row tiles. A machine for PTX runs them, and the results are compared with loops.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use half::{bf16, f16};
use primitives_host::{Device, Result, Stream};
use ptx_machine::Machine;

use crate::expr::evaluate::prepare;
use crate::expr::gpu::Operands;
use crate::expr::gpu::text::KernelText;
use crate::expr::graph::View;
use crate::expr::program::lower;
use crate::expr::{AxisSlice, Boundary, Expr, Scalar, Summed, Tensor, convolve, element_index, maximum, stencil};

fn stream() -> Stream {
    Device::emulator().stream().expect("a stream of the emulator")
}

/// Returns the kernel of an assignment, and the views that it reads.
#[track_caller]
fn written<T: Scalar>(target: &Tensor<T>, value: &Expr<T>, always: bool) -> Result<(KernelText, Vec<Arc<View>>)> {
    let (lowered, targets) = (lower([&value.node]), [&target.view]);
    let nest = prepare(Location::caller(), &targets, &lowered, &|| vec![&value.node])?;
    let kernel = Operands::new(&targets, &lowered, &nest).written(always, 90)?;
    Ok((kernel, lowered.inputs))
}

/// Runs an assignment's kernel on the machine. With `always`, the kernel has row tiles if they are possible; otherwise, it has them if they
/// are chosen. Returns whether it had tiles, and how often lanes waited for a bank.
#[track_caller]
fn assign<T: Scalar>(target: &Tensor<T>, value: &Expr<T>, always: bool) -> Result<(bool, usize)> {
    let (KernelText { text, mut words, blocks, threads, tiled }, reads) = written(target, value, always)?;
    words.push(0);
    let bytes_of = |view: &View| -> Range<u64> {
        let start = view.storage.address();
        start..start + view.storage.len() as u64
    };
    let reads: Vec<_> = reads.iter().map(|view| bytes_of(view)).collect();
    let machine = Machine::new(&text).parting();
    // SAFETY: the memory is that of tensors of this thread, which are alive.
    unsafe { machine.run(blocks, threads, &words, &reads, &[bytes_of(&target.view)]) };
    Ok((tiled, machine.conflicts()))
}

/// Returns the index that is read for an index, by the definition of the boundary. Returns `None` for the constant.
fn index(at: isize, len: isize, boundary: usize) -> Option<usize> {
    let within = |at: isize, period: isize| at.rem_euclid(period);
    let mirrored = |at: isize, period: isize| if at < len { at } else { period - at };
    Some(match boundary {
        0 => at.clamp(0, len - 1),
        1 => within(at, len),
        2 if len == 1 => 0,
        2 => mirrored(within(at, 2 * len - 2), 2 * len - 2),
        3 => mirrored(within(at, 2 * len), 2 * len - 1),
        _ if (0..len).contains(&at) => at,
        _ => return None,
    } as usize)
}

fn boundary<T: Sample>(number: usize) -> Boundary<T> {
    [Boundary::Clamp, Boundary::Periodic, Boundary::Mirror, Boundary::Symmetric, Boundary::Constant(T::number(3))]
        [number]
}

trait Sample: Summed + PartialEq + Debug {
    fn number(number: usize) -> Self;
    /// Adds the products in order.
    fn sum(terms: impl Iterator<Item = (Self, Self)>) -> Self;
}
macro_rules! elements {
    ($($t:ty, $sum:ty: $x:ident => $value:expr, $wide:expr, $add:expr, $mul:expr, $narrow:expr;)*) => {$(
        impl Sample for $t {
            fn number($x: usize) -> Self {
                $value
            }
            fn sum(terms: impl Iterator<Item = (Self, Self)>) -> Self {
                let product = |(x, weight): (Self, Self)| -> $sum { $mul($wide(x), $wide(weight)) };
                $narrow(terms.map(product).reduce($add).unwrap())
            }
        }
    )*};
}
elements! {
    f32, f32: x => x as f32 * 0.37 - 1.5, |x| x, |a: f32, b| a + b, |a: f32, b: f32| a * b, |x| x;
    f64, f64: x => x as f64 * 0.37 - 1.5, |x| x, |a: f64, b| a + b, |a: f64, b: f64| a * b, |x| x;
    f16, f32: x => f16::from_f32(x as f32 * 0.37 - 1.5), f16::to_f32, |a: f32, b| a + b, |a: f32, b: f32| a * b, f16::from_f32;
    i32, i32: x => (x as i32).wrapping_mul(0x3579_1357), |x| x, i32::wrapping_add, i32::wrapping_mul, |x| x;
    u8, u8: x => (x * 37) as u8, |x| x, u8::wrapping_add, u8::wrapping_mul, |x| x;
    i64, i64: x => (x as i64).wrapping_mul(0x1357_9135_7913_5791), |x| x, i64::wrapping_add, i64::wrapping_mul, |x| x;
    bf16, f32: x => bf16::from_f32(x as f32 * 0.37 - 1.5), bf16::to_f32, |a: f32, b| a + b, |a: f32, b: f32| a * b, bf16::from_f32;
    i8, i8: x => (x * 37) as i8, |x| x, i8::wrapping_add, i8::wrapping_mul, |x| x;
    u16, u16: x => (x * 3571) as u16, |x| x, u16::wrapping_add, u16::wrapping_mul, |x| x;
    u64, u64: x => (x as u64).wrapping_mul(0x9357_9135_7913_5791), |x| x, u64::wrapping_add, u64::wrapping_mul, |x| x;
}

/// Returns `len` numbers that look random, by a fixed rule.
fn numbers<T: Sample>(len: usize, seed: usize) -> Vec<T> {
    let mut state = seed as u64 * 7919 + 1;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::number((state >> 33) as usize % 17)
        })
        .collect()
}

/// Returns the results of `convolve`, computed by a loop.
fn sums<T: Sample>(data: &[T], len: usize, weights: &[T], origin: isize, boundary: usize) -> Vec<T> {
    let rows = data.chunks(len.max(1));
    rows.flat_map(|row| {
        (0..len as isize).map(move |i| {
            T::sum(weights.iter().zip(-origin..).map(|(&weight, by)| {
                let x = index(i + by, len as isize, boundary).map_or(T::number(3), |at| row[at]);
                (x, weight)
            }))
        })
    })
    .collect()
}

/// Compares a kernel with loops. Returns whether it had row tiles. Also returns false if the boundary does not take the weights.
fn holds<T: Sample>(shape: &[usize], width: usize, origin: isize, rule: usize, always: bool) -> Result<bool> {
    let stream = stream();
    let len = shape[shape.len() - 1];
    let (data, weights) = (numbers::<T>(shape.iter().product(), width), numbers::<T>(width, len));
    let x = Tensor::from_slice(&stream, shape, &data)?;
    let y = Tensor::from_slice(&stream, shape, &vec![T::number(5); data.len()])?;
    let value = convolve(&x, &weights, origin, boundary(rule));
    let Ok((tiled, _)) = assign(&y, &value, always) else {
        assert!(matches!(rule, 2 | 3), "a kernel of {width} weights from {origin}, shape {shape:?}");
        return Ok(false);
    };
    let (found, expected) = (y.to_vec()?, sums(&data, len, &weights, origin, rule));
    if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
        panic!(
            "element {at}: {:?}, not {:?}; shape {shape:?}, {width} weights from {origin}, boundary {rule}",
            found[at], expected[at]
        );
    }
    Ok(tiled)
}

#[test]
fn few_weights_of_every_number() -> Result<()> {
    let lens = [1, 2, 7, 31, 40, 100, 191, 192, 193, 319, 320, 321, 384, 385, 500, 777, 1024, 1537, 2561, 3076];
    let mut tiled = 0;
    for width in 1..=64 {
        let (len, rule) = (lens[width % lens.len()], width * 7 % 5);
        let origin = [width / 2, 0, width - 1, width / 3][width % 4] as isize;
        tiled += usize::from(holds::<f32>(&[len], width, origin, rule, true)?);
    }
    assert!(tiled > 40, "{tiled} kernels");
    Ok(())
}

#[test]
fn every_boundary_of_every_length() -> Result<()> {
    let mut tiled = 0;
    for rule in 0..5 {
        for len in [1, 3, 12, 33, 200, 385, 768, 1155] {
            for (width, origin) in [(5, 1), (33, 16), (9, 12), (20, -3)] {
                tiled += usize::from(holds::<f32>(&[len], width, origin, rule, true)?);
            }
        }
    }
    assert!(tiled > 100, "{tiled} kernels");
    Ok(())
}

#[test]
fn rows_of_other_types() -> Result<()> {
    let mut tiled = 0;
    for (number, shape) in [&[3, 400][..], &[2, 3, 193], &[5, 64], &[2, 1600], &[1, 9], &[70, 13]].iter().enumerate() {
        for rule in 0..5 {
            let (width, origin) = [(9, 4), (17, 0), (33, 32), (12, 6), (3, 1)][(number + rule) % 5];
            tiled += usize::from(holds::<f64>(shape, width, origin, rule, true)?);
            tiled += usize::from(holds::<i32>(shape, width, origin, rule, true)?);
            tiled += usize::from(holds::<f16>(shape, width, origin, rule, true)?);
            tiled += usize::from(holds::<u8>(shape, width, origin, rule, true)?);
            tiled += usize::from(holds::<i64>(shape, width, origin, rule, true)?);
            tiled += usize::from(match (number + rule) % 4 {
                0 => holds::<bf16>(shape, width, origin, rule, true)?,
                1 => holds::<i8>(shape, width, origin, rule, true)?,
                2 => holds::<u16>(shape, width, origin, rule, true)?,
                _ => holds::<u64>(shape, width, origin, rule, true)?,
            });
        }
    }
    assert!(tiled > 100, "{tiled} kernels");
    Ok(())
}

/// Values of `bool` are predicates in registers, and bytes in memory.
#[test]
fn rows_of_bool() -> Result<()> {
    let stream = stream();
    for len in [64usize, 385, 1600] {
        let data: Vec<bool> = (0..len).map(|i| i * i % 7 < 3).collect();
        let x = Tensor::from_slice(&stream, len, &data)?;
        let y = Tensor::zeros(&stream, len)?;
        for (number, outside) in
            [Boundary::Clamp, Boundary::Periodic, Boundary::Mirror, Boundary::Symmetric, Boundary::Constant(true)]
                .into_iter()
                .enumerate()
        {
            let value = stencil(&x, outside, |n| (-5..7isize).fold(n.at(-6), |sum, by| sum ^ n.at(by)));
            assert!(assign(&y, &value, true)?.0);
            let at = |at: isize| index(at, len as isize, number).is_none_or(|at| data[at]);
            let expected: Vec<bool> =
                (0..len as isize).map(|i| (-6..7).fold(false, |sum, by| sum ^ at(i + by))).collect();
            assert_eq!(y.to_vec()?, expected, "{len}, {outside:?}");
        }
    }
    Ok(())
}

#[test]
fn many_weights_of_every_type() -> Result<()> {
    for (number, width) in [65, 66, 67, 68, 79, 127, 128].into_iter().enumerate() {
        for (rule, len) in [(0, 400), (1, 1152), (2, 131), (3, 777), (4, 3100)] {
            let origin = [width / 2, 0, 1, width - 1, 64][(rule + number) % 5] as isize;
            assert!(holds::<f32>(&[len], width as usize, origin, rule, true)?);
            if rule == number % 5 {
                let shape = [2, len];
                assert!(holds::<f64>(&shape, width as usize, origin, rule, true)?);
                assert!(holds::<i32>(&shape, width as usize, origin, rule, true)?);
                assert!(holds::<f16>(&shape, width as usize, origin, rule, true)?);
                assert!(holds::<u8>(&shape, width as usize, origin, rule, true)?);
            }
        }
    }
    Ok(())
}

/// Row tiles are chosen here; the test does not ask for them.
#[test]
fn the_widest_sums_are_tiled() -> Result<()> {
    assert!(holds::<f32>(&[6200], 2048, 1024, 0, false)?);
    assert!(holds::<f32>(&[2, 2049], 2048, 1000, 1, false)?);
    assert!(holds::<f64>(&[3100], 2048, 1, 4, false)?);
    assert!(holds::<f16>(&[4097], 2048, 2047, 3, false)?);
    assert!(holds::<i32>(&[4000], 2047, 1023, 2, false)?);
    assert!(holds::<f32>(&[1 << 13], 33, 16, 0, false)?);
    // Short rows and narrow footprints are not tiled.
    assert!(!holds::<f32>(&[8, 100], 33, 16, 0, false)?);
    assert!(!holds::<f32>(&[1 << 13], 5, 2, 0, false)?);
    // A few neighbours that are far apart are not tiled, either.
    let (stream, len) = (stream(), 1 << 13);
    let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, len).unwrap());
    assert!(!assign(&y, &stencil(&x, Boundary::Clamp, |n| n.at(-500) + n.at(500)), false)?.0);
    Ok(())
}

/// A function that panics has 8 bytes of the 48 KiB that a kernel may have.
#[test]
fn the_largest_tiles_leave_memory_to_functions() -> Result<()> {
    let stream = stream();
    // These have one tile, and two tiles, of exactly 48 KiB.
    for (len, width) in [(8192, 6145), (4608, 3073)] {
        let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, len).unwrap());
        let value = convolve(&x, &vec![0.5f32; width], width as isize / 2, Boundary::Clamp);
        let (KernelText { text, .. }, _) = written(&y, &value, false)?;
        let declared = text.split_once("row_tiles[").and_then(|(_, rest)| rest.split_once(']'));
        let bytes: usize = declared.map_or(0, |(bytes, _)| bytes.parse().unwrap());
        assert!(bytes + 8 <= 48 << 10, "{bytes} bytes for {width} weights");
    }
    Ok(())
}

/// The values of many tensors at all vectors of a thread take more registers than there are.
#[test]
fn many_tensors_are_read_vector_by_vector() -> Result<()> {
    const MANY: usize = 40;
    let (stream, len) = (stream(), 768);
    let tensor = |seed| Tensor::from_slice(&stream, len, &numbers::<f32>(len, seed));
    let (x, others) = (tensor(1)?, (2..2 + MANY).map(tensor).collect::<Result<Vec<_>>>()?);
    let sum = convolve(&x, &numbers::<f32>(9, 2), 4, Boundary::Clamp);
    let value = others.iter().fold(sum, |sum, other| sum + other);
    let [found, expected] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, len).unwrap());
    let (KernelText { text, .. }, _) = written(&found, &value, true)?;
    let loads = text[..text.find("st.global").unwrap()].matches("ld.global.v2").count();
    assert!((MANY..2 * MANY).contains(&loads), "{loads} loads before the first store");
    assert!(assign(&found, &value, true)?.0);
    expected.assign(&value)?;
    assert_eq!(found.to_vec()?, expected.to_vec()?);
    Ok(())
}

/// Kernels without tiles compute the same.
#[test]
fn sums_without_tiles_are_the_same() -> Result<()> {
    for rule in 0..5 {
        for shape in [&[8, 100][..], &[4, 97]] {
            assert!(!holds::<f32>(shape, 33, 16, rule, false)?);
            assert!(!holds::<f32>(shape, 65, 40, rule, false)?);
        }
    }
    Ok(())
}

/// Operations on a sum, and operations on its elements, are in the same kernel.
#[test]
fn what_is_around_sums_fuses() -> Result<()> {
    let stream = stream();
    let agree = |value: &Expr<f32>, shape: &[usize]| -> Result<()> {
        let [found, expected] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, shape).unwrap());
        assert!(assign(&found, value, true)?.0, "tiles for {shape:?}");
        expected.assign(value)?;
        assert_eq!(found.to_vec()?, expected.to_vec()?);
        Ok(())
    };
    for len in [400, 773, 1536] {
        let shape = [2, len];
        let tensor = |seed| Tensor::from_slice(&stream, shape, &numbers::<f32>(2 * len, seed));
        let (x, z, w) = (tensor(1)?, tensor(2)?, numbers::<f32>(70, 3));
        let row = Tensor::from_slice(&stream, len, &numbers::<f32>(len, 4))?;
        for few in [&w[..21], &w[..65]] {
            let sum = |of: &Tensor<f32>, rule| convolve(of, few, 10, boundary(rule));
            agree(&(sum(&x, 1) - &x), &shape)?;
            agree(&(sum(&x, 0).contract() * &z + &row), &shape)?;
            agree(&(sum(&x, 2) + sum(&z, 4)), &shape)?;
            agree(&(sum(&x, 2) + sum(&x, 4) * 2.0 + element_index::<f32>()), &shape)?;
            // This tensor has one element for the whole row, and more along the other axis.
            agree(&(sum(&x, 3) * &z.slice((.., 0..1))? + &x), &shape)?;
        }
        let (x, z) = (&x, &z);
        agree(&convolve(x * z + 1.0, &w[..11], 5, Boundary::Mirror), &shape)?;
        let most =
            stencil(x, Boundary::Constant(2.0), |n| (1..12isize).fold(n.at(-1), |most, by| maximum(most, n.at(by))));
        agree(&most, &shape)?;
        agree(&(stencil(x, Boundary::Clamp, |n| n.at(-9) * n.at(0)) - z * 2.0), &shape)?;
    }
    Ok(())
}

/// The tensors are columns, every second element, and rows that begin anywhere.
#[test]
fn tensors_that_do_not_lie_in_rows() -> Result<()> {
    let stream = stream();
    let all = Tensor::from_slice(&stream, [6, 1001], &numbers::<f32>(6006, 1))?;
    let weights = numbers::<f32>(33, 2);
    let views = [
        all.slice((1..3, 1..))?,
        all.slice((.., AxisSlice::from(..).by(2)))?,
        all.slice((2..3, ..))?.broadcast_to([4, 1001])?,
        all.slice((.., 4..904))?,
    ];
    for view in &views {
        let value = convolve(view, &weights, 16, Boundary::Periodic);
        let [found, expected] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, view.shape()).unwrap());
        assert!(assign(&found, &value, true)?.0);
        expected.assign(&value)?;
        assert_eq!(found.to_vec()?, expected.to_vec()?);
    }
    Ok(())
}

#[test]
fn rows_that_begin_anywhere_are_read_by_elements() -> Result<()> {
    let stream = stream();
    macro_rules! types {
        ($($t:ty),*) => {$({
            let [x, y] = [0; 2].map(|_| Tensor::<$t>::zeros(&stream, [3, 1003]).unwrap().slice((1.., 3..)).unwrap());
            let value = convolve(&x, &numbers::<$t>(33, 2), 16, Boundary::Clamp);
            let (KernelText { text, tiled, .. }, _) = written(&y, &value, true)?;
            assert!(tiled && !text.contains("global.v"), "{}", <$t as Scalar>::DTYPE);
        })*};
    }
    types!(u8, f16, f32, f64, u64);
    Ok(())
}

#[test]
fn lanes_wait_for_no_bank() -> Result<()> {
    let stream = stream();
    macro_rules! types {
        ($($t:ty),*) => {$({
            let len = 6144;
            let x = Tensor::from_slice(&stream, len, &numbers::<$t>(len, 1))?;
            let y = Tensor::<$t>::zeros(&stream, len)?;
            for width in [9, 33, 64, 128] {
                let value = convolve(&x, &numbers::<$t>(width, 2), width as isize / 2, Boundary::Clamp);
                assert_eq!(assign(&y, &value, false)?, (true, 0), "{width} weights");
            }
        })*};
    }
    types!(f32, f64, f16, i32, u8);
    Ok(())
}

#[test]
fn windows_are_read_once_by_vectors() -> Result<()> {
    let stream = stream();
    let [x, y] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, 1 << 14).unwrap());
    for (width, each, vector) in [(9, 6, 2), (33, 10, 2), (64, 12, 4)] {
        let value = convolve(&x, &vec![0.5f32; width], width as isize / 2, Boundary::Clamp).contract();
        let (KernelText { text, .. }, _) = written(&y, &value, false)?;
        // These are the vectors of the window. The sums are read as vectors, too: all at once, and one by one at the end of the row.
        let before = (width / 2).next_multiple_of(vector);
        let window = (before + width - width / 2 + each - 1).div_ceil(vector);
        let read = text.matches(&format!("ld.shared.v{vector}.b32")).count();
        assert_eq!(read, window + each / vector + 1, "{width} weights");
        assert_eq!(text.matches("ld.global.f32").count(), 4);
        assert_eq!(text.matches("fma.rn.f32").count(), each * (width - 1));
    }
    Ok(())
}
