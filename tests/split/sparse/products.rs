//! Tests products with all matrices, by all methods and by other operators.

use kernel_primitives::algorithms::{self, SpmvMethod};
use kernel_primitives::functor::{Add, Axpby, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::split::{self, SplitCsr};
use kernel_primitives::{Result, SplitBuffer};

use super::{Host, matrices};
use crate::{all_splits, splits, values};

/// All methods of products.
const METHODS: [SpmvMethod; 6] = [
    SpmvMethod::Rows { lanes: 1 },
    SpmvMethod::Rows { lanes: 4 },
    SpmvMethod::Rows { lanes: 32 },
    SpmvMethod::MergePath,
    SpmvMethod::ByLength,
    SpmvMethod::Window,
];

#[test]
fn products_are_those_of_one_device() -> Result<()> {
    for devices in all_splits()? {
        let stream = devices.streams()[0].device().stream()?;
        for host in matrices() {
            let of_entries = host.values(|value| value as f32);
            let x: Vec<f32> = values(host.columns).into_iter().map(|value| (value % 30) as f32).collect();
            let mut expected = stream.buffer_uninit::<f32>(host.shape().0)?;
            algorithms::spmv(&stream, &host.one(&stream, &of_entries)?, &stream.buffer_from(&x)?, &mut expected)?;
            let a = host.split(&devices, &of_entries)?;
            assert_eq!((a.rows(), a.columns(), a.entries()), (host.shape().0, host.columns, of_entries.len()));
            let x = SplitBuffer::from_slice(&devices, &x)?;
            let mut y = SplitBuffer::from_slice(&devices, &vec![77.0f32; host.shape().0])?;
            split::spmv(&a, &x, &mut y)?;
            assert_eq!(y.to_vec()?, expected.to_vec()?, "{} {devices:?}", host.name);
        }
    }
    Ok(())
}

#[test]
fn every_method_has_the_same_product() -> Result<()> {
    for devices in splits(3)? {
        for host in matrices() {
            let of_entries = host.values(f64::from);
            let x: Vec<f64> = values(host.columns).into_iter().map(|value| f64::from(value % 30)).collect();
            let expected = host.product(&of_entries, &x);
            let mut a = host.split(&devices, &of_entries)?;
            let there = SplitBuffer::from_slice(&devices, &x)?;
            for method in METHODS {
                a.set_method(method)?;
                assert!((0..devices.streams().len()).all(|device| a.part(device).method() == method));
                let mut y = SplitBuffer::uninit(&devices, host.shape().0)?;
                split::spmv(&a, &there, &mut y)?;
                assert_eq!(y.to_vec()?, expected, "{} {method:?} {devices:?}", host.name);
            }
        }
    }
    Ok(())
}

/// Indices have 64 bits, and values are integers. The next product reads the written items, without a wait.
#[test]
fn products_follow_each_other() -> Result<()> {
    let host = Host::new("ring", (97, 97), |row| vec![row, (row + 1) % 97, (row * 5 + 3) % 97]);
    let [offsets, indices] = [&host.offsets, &host.indices].map(|numbers| numbers.iter().map(|&n| u64::from(n)));
    let (offsets, indices): (Vec<u64>, Vec<u64>) = (offsets.collect(), indices.collect());
    let (of_entries, first) = (host.values(|value| value % 2), values(97));
    let mut expected = first.clone();
    for _ in 0..6 {
        let sum = |row: usize| (3 * row..3 * row + 3).map(|at| of_entries[at] * expected[indices[at] as usize]).sum();
        expected = (0..97).map(sum).collect();
    }
    for devices in all_splits()? {
        let a = SplitCsr::new(&devices, (97, 97), &offsets, &indices, &of_entries)?;
        let (mut x, mut y) = (SplitBuffer::from_slice(&devices, &first)?, SplitBuffer::uninit(&devices, 97)?);
        for _ in 0..6 {
            split::spmv(&a, &x, &mut y)?;
            std::mem::swap(&mut x, &mut y);
        }
        assert_eq!(x.to_vec()?, expected, "{devices:?}");
    }
    Ok(())
}

#[test]
fn sums_of_floats_are_near_those_of_one_device_and_the_same_in_every_run() -> Result<()> {
    for devices in all_splits()? {
        let stream = devices.streams()[0].device().stream()?;
        for host in matrices() {
            let of_entries: Vec<f64> = (0..host.indices.len()).map(|at| (at as f64).sin()).collect();
            let x: Vec<f64> = (0..host.columns).map(|at| (at as f64 * 0.7).cos()).collect();
            let mut expected = stream.buffer_uninit::<f64>(host.shape().0)?;
            algorithms::spmv(&stream, &host.one(&stream, &of_entries)?, &stream.buffer_from(&x)?, &mut expected)?;
            let x = SplitBuffer::from_slice(&devices, &x)?;
            let product = || -> Result<Vec<f64>> {
                let mut y = SplitBuffer::uninit(&devices, host.shape().0)?;
                split::spmv(&host.split(&devices, &of_entries)?, &x, &mut y)?;
                y.to_vec()
            };
            let found = product()?;
            for (found, expected) in found.iter().zip(expected.to_vec()?) {
                assert!((found - expected).abs() <= 1e-10, "{found} {expected} {} {devices:?}", host.name);
            }
            let bits = |found: Vec<f64>| found.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(product()?), bits(found));
        }
    }
    Ok(())
}

#[test]
fn min_and_plus_find_shortest_paths() -> Result<()> {
    let shortest = Semiring { plus: Min, times: Add };
    for devices in all_splits()? {
        let stream = devices.streams()[0].device().stream()?;
        for host in matrices() {
            let lengths = host.values(|value| (value.abs() + 1) as f32);
            let x: Vec<f32> = values(host.columns).into_iter().map(|value| value.abs() as f32).collect();
            let mut expected = stream.buffer_uninit::<f32>(host.shape().0)?;
            let one = host.one(&stream, &lengths)?;
            algorithms::spmv_by(&stream, &one, &stream.buffer_from(&x)?, shortest, Overwrite, &mut expected)?;
            let x = SplitBuffer::from_slice(&devices, &x)?;
            let mut y = SplitBuffer::uninit(&devices, host.shape().0)?;
            split::spmv_by(&host.split(&devices, &lengths)?, &x, shortest, Overwrite, &mut y)?;
            assert_eq!(y.to_vec()?, expected.to_vec()?, "{} {devices:?}", host.name);
        }
    }
    Ok(())
}

#[test]
fn results_are_scaled_and_added() -> Result<()> {
    for devices in all_splits()? {
        for host in matrices().iter().take(4) {
            let of_entries = host.values(|value| value as f32);
            let a = host.split(&devices, &of_entries)?;
            let x: Vec<f32> = values(host.columns).into_iter().map(|value| (value % 30) as f32).collect();
            let f: Vec<f32> = values(host.shape().0).into_iter().map(|value| value as f32).collect();
            let (x, f_there) = (SplitBuffer::from_slice(&devices, &x)?, SplitBuffer::from_slice(&devices, &f)?);
            let mut product = SplitBuffer::uninit(&devices, f.len())?;
            split::spmv(&a, &x, &mut product)?;
            let product = product.to_vec()?;
            let of = |op: &dyn Fn(f32, f32) -> f32| product.iter().zip(&f).map(|(&p, &f)| op(p, f)).collect::<Vec<_>>();
            let mut y = SplitBuffer::uninit(&devices, f.len())?;
            split::spmv_with(&a, &x, PlusTimes, Axpby { alpha: -1.0, beta: 1.0 }, &f_there, &mut y)?;
            assert_eq!(y.to_vec()?, of(&|p, f| f - p), "{} {devices:?}", host.name);
            y.copy_from(&f)?;
            split::spmv_by(&a, &x, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut y)?;
            assert_eq!(y.to_vec()?, of(&|p, f| 2.0 * p - f), "{} {devices:?}", host.name);
        }
    }
    Ok(())
}
