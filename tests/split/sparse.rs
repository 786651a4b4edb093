//! Sparse products over split buffers against those of one device.

use kernel_primitives::algorithms::{self, Csr, SpmvMethod};
use kernel_primitives::functor::{Add, Axpby, Min, Overwrite, PlusTimes, Semiring};
use kernel_primitives::split::{self, SplitCsr};
use kernel_primitives::{Buffer, Counters, Devices, Element, Error, Result, Split, SplitBuffer, Stream};

use crate::{all_splits, splits, values};

/// All ways to compute a product.
const METHODS: [SpmvMethod; 6] = [
    SpmvMethod::Rows { lanes: 1 },
    SpmvMethod::Rows { lanes: 4 },
    SpmvMethod::Rows { lanes: 32 },
    SpmvMethod::MergePath,
    SpmvMethod::ByLength,
    SpmvMethod::Window,
];

/// A matrix on the host.
#[derive(Debug)]
struct Host {
    name: &'static str,
    columns: usize,
    offsets: Vec<u32>,
    indices: Vec<u32>,
}

impl Host {
    /// Row by row, the columns of the entries.
    fn new(name: &'static str, (rows, columns): (usize, usize), of_row: impl Fn(usize) -> Vec<usize>) -> Self {
        let mut host = Self { name, columns, offsets: vec![0], indices: Vec::new() };
        for row in 0..rows {
            host.indices.extend(of_row(row).into_iter().map(|column| column as u32));
            host.offsets.push(host.indices.len() as u32);
        }
        host
    }

    fn shape(&self) -> (usize, usize) {
        (self.offsets.len() - 1, self.columns)
    }

    /// Small whole values.
    fn values<V>(&self, of: impl Fn(i32) -> V) -> Vec<V> {
        values(self.indices.len()).into_iter().map(|value| of(value % 9)).collect()
    }

    fn split<V: Element>(&self, devices: &Split, values: &[V]) -> Result<SplitCsr<V>> {
        SplitCsr::new(devices, self.shape(), &self.offsets, &self.indices, values)
    }

    fn one<V: Element>(&self, stream: &Stream, values: &[V]) -> Result<Csr<V>> {
        Csr::new(stream, self.shape(), &self.offsets, &self.indices, values)
    }
}

/// A number without order.
fn hash(at: usize) -> usize {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// Columns without order, some of which may come twice.
fn any(row: usize, count: usize, columns: usize) -> Vec<usize> {
    (0..count).map(|entry| hash(row * 1000 + entry + 1) % columns).collect()
}

fn band(row: usize, columns: usize) -> Vec<usize> {
    (row.saturating_sub(2)..(row + 3).min(columns)).collect()
}

fn matrices() -> Vec<Host> {
    vec![
        Host::new("random", (211, 211), |row| any(row, hash(row) % 12, 211)),
        Host::new("banded", (300, 300), |row| band(row, 300)),
        Host::new("empty rows", (150, 150), |row| any(row, if row % 17 == 3 { 30 } else { 0 }, 150)),
        Host::new("giant row", (40, 60), |row| any(row, if row == 25 { 20_000 } else { row % 3 }, 60)),
        Host::new("wide", (5, 1000), |row| any(row, 70, 1000)),
        Host::new("tall", (500, 3), |row| any(row, row % 4, 3)),
        Host::new("fewer rows than devices", (3, 3), |row| band(row, 3)),
        Host::new("one column of others", (64, 64), |_| vec![63]),
        Host::new("no entries", (20, 20), |_| Vec::new()),
        Host::new("no columns", (9, 0), |_| Vec::new()),
        Host::new("no rows", (0, 9), |_| Vec::new()),
        Host::new("nothing", (0, 0), |_| Vec::new()),
    ]
}

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
            let sum = |row: &[u32]| {
                let entries = row[0] as usize..row[1] as usize;
                entries.map(|entry| of_entries[entry] * x[host.indices[entry] as usize]).sum()
            };
            let expected: Vec<f64> = host.offsets.windows(2).map(sum).collect();
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
    let mut a = matrices()[0].split(&splits(2)?[0], &matrices()[0].values(f64::from))?;
    assert!(matches!(a.set_method(SpmvMethod::Rows { lanes: 3 }), Err(Error::SparseMatrix { .. })));
    Ok(())
}

/// Indices of 64 bits, integers, and what is written is read by the next product, without a wait.
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

#[test]
fn a_matrix_of_one_device_is_split() -> Result<()> {
    for devices in all_splits()? {
        let stream = devices.streams()[devices.streams().len() - 1].device().stream()?;
        for host in matrices() {
            let of_entries = host.values(f64::from);
            let one = host.one(&stream, &of_entries)?;
            let (a, same) = (SplitCsr::from_csr(&devices, &one)?, host.split(&devices, &of_entries)?);
            assert_eq!(format!("{a:?}"), format!("{same:?}"));
            for device in 0..devices.streams().len() {
                let arrays = |a: &SplitCsr<f64>| -> Result<_> {
                    let part = a.part(device);
                    Ok((part.offsets().to_vec()?, part.indices().to_vec()?, part.values().to_vec()?))
                };
                assert_eq!(arrays(&a)?, arrays(&same)?, "{} {devices:?}", host.name);
                assert_eq!((a.halo(device), a.part(device).method()), (same.halo(device), same.part(device).method()));
            }
            // The copy has values of its own.
            assert_eq!(one.values().to_vec()?, of_entries);
        }
    }
    Ok(())
}

#[test]
fn parts_number_their_own_columns_first_and_then_those_of_others() -> Result<()> {
    let devices = Split::weighted(&Devices::emulated(3)?, &[2.0, 1.0, 2.0])?;
    let (offsets, columns) = ([0u32, 2, 2, 5, 7, 8], [4, 0, 2, 0, 4, 3, 1, 2]);
    let a = SplitCsr::new(&devices, (5, 5), &offsets, &columns, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    assert_eq!([0, 1, 2].map(|device| a.range(device)), [0..2, 2..3, 3..5]);
    assert_eq!([0, 1, 2].map(|device| a.column_range(device)), [0..2, 2..3, 3..5]);
    assert_eq!([0, 1, 2].map(|device| a.halo(device)), [&[4][..], &[0, 4], &[1, 2]]);
    assert_eq!([0, 1, 2].map(|device| a.part(device).columns()), [3, 3, 4]);
    assert_eq!(a.part(0).indices().to_vec()?, [2, 0]);
    assert_eq!(a.part(1).indices().to_vec()?, [0, 1, 2]);
    assert_eq!(a.part(2).indices().to_vec()?, [0, 2, 3]);
    assert_eq!(a.part(2).offsets().to_vec()?, [0, 2, 3]);
    assert_eq!(a.part(2).values().to_vec()?, [6.0, 7.0, 8.0]);
    assert_eq!(
        format!("{a:?}"),
        "SplitCsr<f32, u32>(rows 0..2 on device 0 of the emulator, 2..3 on device 1 of the emulator, 3..5 on device 2 of the \
         emulator; columns 0..2 on device 0 of the emulator, 2..3 on device 1 of the emulator, 3..5 on device 2 of the \
         emulator; 8 entries)"
    );
    Ok(())
}

#[test]
fn values_are_changed_in_place() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let mut a = SplitCsr::new(&devices, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    a.values_mut(1).copy_from(&[7.0])?;
    let (x, mut y) = (SplitBuffer::from_slice(&devices, &[1.0f32, 10.0])?, SplitBuffer::uninit(&devices, 2)?);
    split::spmv(&a, &x, &mut y)?;
    assert_eq!(y.to_vec()?, [20.0, 7.0]);
    Ok(())
}

/// What devices of the emulator counted during a call, all together.
fn counted(devices: &Devices, call: impl FnOnce() -> Result<()>) -> Result<Counters> {
    let counters = || devices.iter().map(|device| device.counters()).collect::<Vec<_>>();
    let before = counters();
    call()?;
    let mut all = Counters::default();
    for (after, before) in counters().into_iter().zip(before) {
        let one = after.since(before);
        all.allocations += one.allocations;
        all.launches += one.launches;
        all.peer_copies += one.peer_copies;
        all.peer_bytes += one.peer_bytes;
        all.host_to_device_copies += one.host_to_device_copies;
        all.device_to_host_copies += one.device_to_host_copies;
    }
    Ok(all)
}

#[test]
fn only_what_rows_read_of_others_goes_between_devices() -> Result<()> {
    let devices = Devices::emulated(3)?;
    let even = Split::even(&devices)?;
    for host in matrices() {
        let mut a = host.split(&even, &host.values(f64::from))?;
        a.set_method(SpmvMethod::Rows { lanes: 4 })?;
        let x = SplitBuffer::from_slice(&even, &vec![1.0f64; host.columns])?;
        let mut y = SplitBuffer::uninit(&even, host.shape().0)?;
        split::spmv(&a, &x, &mut y)?;
        // The second product finds the memory of the first.
        let cost = counted(&devices, || split::spmv(&a, &x, &mut y))?;
        let halos: usize = (0..3).map(|device| a.halo(device).len()).sum();
        assert_eq!(cost.peer_bytes, 8 * halos as u64, "{}", host.name);
        let copies = (cost.host_to_device_copies, cost.device_to_host_copies);
        assert_eq!((copies, cost.allocations), ((0, 0), 0), "{}", host.name);
        if host.name == "banded" {
            // Two rows on each side of a border; each device collects, and each multiplies.
            assert_eq!((halos, cost.peer_copies, cost.launches), (8, 4, 6));
        }
    }
    // Blocks on the diagonal need nothing of others.
    let host = Host::new("blocks", (30, 30), |row| (row / 10 * 10..row / 10 * 10 + 10).collect());
    let a = host.split(&even, &host.values(f64::from))?;
    let (x, mut y) = (SplitBuffer::from_slice(&even, &[1.0f64; 30])?, SplitBuffer::uninit(&even, 30)?);
    assert_eq!(counted(&devices, || split::spmv(&a, &x, &mut y))?.peer_copies, 0);
    Ok(())
}

/// Other threads' products do not overwrite what a product sends.
#[test]
fn threads_multiply_by_one_matrix() -> Result<()> {
    let host = &matrices()[0];
    for devices in splits(3)? {
        let a = &host.split(&devices, &host.values(|value| value as f32))?;
        let devices = &devices;
        let x = |thread: usize| values(211).into_iter().map(move |value| ((value + thread as i32 * 7) % 30) as f32);
        std::thread::scope(|scope| {
            let threads = [0, 1, 2].map(|thread| {
                scope.spawn(move || -> Result<()> {
                    let there = SplitBuffer::from_slice(devices, &x(thread).collect::<Vec<_>>())?;
                    let mut expected = None;
                    for _ in 0..8 {
                        let mut y = SplitBuffer::uninit(devices, 211)?;
                        split::spmv(a, &there, &mut y)?;
                        let found = y.to_vec()?;
                        assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{thread}");
                    }
                    let stream = devices.streams()[0].device().stream()?;
                    let one = host.one(&stream, &host.values(|value| value as f32))?;
                    let (x, mut y) = (stream.buffer_from(&there.to_vec()?)?, stream.buffer_uninit::<f32>(211)?);
                    algorithms::spmv(&stream, &one, &x, &mut y)?;
                    assert_eq!(expected, Some(y.to_vec()?), "{thread}");
                    Ok(())
                })
            });
            threads.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
        })?;
    }
    Ok(())
}

#[track_caller]
fn refused<T>(result: Result<T>, expected: &str) {
    let Err(error) = result else { panic!("no error: {expected}") };
    assert_eq!(error.to_string(), expected);
}

#[test]
fn arrays_that_are_no_matrix_are_errors_that_name_the_place() -> Result<()> {
    let cases: [(_, &[u32], &[u32], &[f32], _); 9] = [
        ((2, 2), &[0, 1], &[0], &[1.0], "a matrix of 2 rows has one offset more, but there are 2"),
        ((0, 2), &[], &[], &[], "a matrix of 0 rows has one offset more, but there are 0"),
        ((1, 2), &[0, 1], &[0, 1], &[1.0], "there are 2 column indices, but 1 values"),
        ((2, 2), &[1, 1, 2], &[0, 1], &[1.0; 2], "the first offset is 1, not 0"),
        ((0, 2), &[5], &[], &[], "the first offset is 5, not 0"),
        ((4, 2), &[0, 2, 1, 0, 2], &[0, 1], &[1.0; 2], "the offsets decrease from 2 at 1 to 1 at 2"),
        ((2, 2), &[0, 1, 3], &[0, 1], &[1.0; 2], "the last offset is 3, but there are 2 values"),
        ((2, 2), &[0, 1, 1], &[0, 1], &[1.0; 2], "the last offset is 1, but there are 2 values"),
        ((2, 3), &[0, 2, 4], &[0, 2, 3, 9], &[1.0; 4], "entry 2 is in column 3 of 3"),
    ];
    for count in [1, 3] {
        let devices = Split::even(&Devices::emulated(count)?)?;
        for (shape, offsets, indices, of_entries, expected) in cases {
            let made = SplitCsr::new(&devices, shape, offsets, indices, of_entries);
            refused(made, &format!("SplitCsr::new: {expected}"));
            // As one device says it.
            let made = Csr::new(&devices.streams()[0], shape, offsets, indices, of_entries);
            refused(made, &format!("Csr::new: {expected}"));
        }
    }
    Ok(())
}

#[test]
fn a_device_whose_items_have_no_numbers_is_an_error() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let made = SplitCsr::new(&devices, (1, 1 << 34), &[0u32, 1], &[7], &[1.0f32]);
    // The last device has the row, and half of the columns, of which none is read.
    let expected =
        "SplitCsr::new: indices of 32 bits cannot number the 8589934593 items that device 1 of the split reads";
    refused(made, expected);
    Ok(())
}

#[test]
fn vectors_that_are_split_in_other_ways() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let a = SplitCsr::new(&even, (4, 2), &[0u32, 1, 1, 2, 3], &[0, 1, 0], &[1.0f32, 2.0, 3.0])?;
    let vector = |split: &Split, len: usize| SplitBuffer::<f32>::zeroed(split, len);
    let (x, y) = (|| vector(&even, 2), || vector(&even, 4));
    refused(
        split::spmv(&a, &vector(&even, 4)?, &mut y()?),
        "`split::spmv`: `x` is split in another way than the columns of the matrix: SplitBuffer<f32>(0..2 on device 0 of the \
         emulator, 2..4 on device 1 of the emulator) and 0..1 on device 0 of the emulator, 1..2 on device 1 of the emulator",
    );
    refused(
        split::spmv_by(&a, &x()?, PlusTimes, Axpby::OVERWRITE, &mut vector(&odd, 4)?),
        "`split::spmv_by`: `y` is split in another way than the rows of the matrix: SplitBuffer<f32>(0..3 on device 0 of the \
         emulator, 3..4 on device 1 of the emulator) and 0..2 on device 0 of the emulator, 2..4 on device 1 of the emulator",
    );
    refused(
        split::spmv_with(&a, &x()?, PlusTimes, Axpby { alpha: 1.0, beta: 1.0 }, &vector(&even, 5)?, &mut y()?),
        "`split::spmv_with`: `z` is split in another way than the rows of the matrix: SplitBuffer<f32>(0..2 on device 0 of \
         the emulator, 2..5 on device 1 of the emulator) and 0..2 on device 0 of the emulator, 2..4 on device 1 of the \
         emulator",
    );
    // The same bounds on other devices, and fewer devices.
    let turned = Split::even(&Devices::new([devices[1].clone(), devices[0].clone()])?)?;
    assert!(matches!(split::spmv(&a, &vector(&turned, 2)?, &mut y()?), Err(Error::Split { .. })));
    let first = Split::even(&Devices::new([devices[0].clone()])?)?;
    assert!(matches!(split::spmv(&a, &vector(&first, 2)?, &mut y()?), Err(Error::Split { .. })));
    // Another split with the same ranges is the same.
    let again = Split::weighted(&devices, &[2.0, 2.0])?;
    let mut sums = vector(&again, 4)?;
    split::spmv(&a, &SplitBuffer::from_slice(&again, &[10.0f32, 100.0])?, &mut sums)?;
    assert_eq!(sums.to_vec()?, [10.0, 0.0, 200.0, 30.0]);
    Ok(())
}

#[test]
fn an_item_that_nothing_has_written_is_a_fault_and_the_next_product_is_right() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let a = SplitCsr::new(&devices, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    let (x, mut y) = (SplitBuffer::<f32>::uninit(&devices, 2)?, SplitBuffer::uninit(&devices, 2)?);
    assert!(matches!(split::spmv(&a, &x, &mut y), Err(Error::Fault(_))));
    split::spmv(&a, &SplitBuffer::from_slice(&devices, &[1.0f32, 10.0])?, &mut y)?;
    assert_eq!(y.to_vec()?, [20.0, 3.0]);
    Ok(())
}

#[test]
fn parts_are_on_their_devices() -> Result<()> {
    let devices = Split::even(&Devices::emulated(3)?)?;
    let host = &matrices()[1];
    let a = host.split(&devices, &host.values(f64::from))?;
    let on = |buffer: &Buffer<f64>, stream: &Stream| buffer.device().same_as(stream.device());
    assert!(devices.streams().iter().enumerate().all(|(device, stream)| on(a.part(device).values(), stream)));
    Ok(())
}
