//! Tests every algorithm with a workspace: its allocations, and the results of its graph when it is launched again.

use kernel_primitives::algorithms::{
    Csr, FftKind, FftPlan, Run, Workspace, adjacent_difference, exclusive_scan, exclusive_scan_by_key, fft, fft_by,
    fft_in_place, fill, gather, generate, histogram_even, histogram_ranges, ifft, ifft_in_place, inclusive_scan,
    inclusive_scan_by_key, irfft, lower_bound, merge, merge_pairs, partition, reduce, reduce_by_key, rfft,
    run_length_encode, scatter, segmented_exclusive_scan, segmented_inclusive_scan, segmented_reduce, segmented_sort,
    segmented_sort_pairs, select_flagged, select_if, sort_by, sort_keys, sort_keys_by_bits, sort_pairs, sort_pairs_by,
    sort_pairs_by_bits, spmm, spmm_by, spmm_with, spmv, spmv_by, spmv_with, stable_partition, top_k, top_k_pairs,
    transform, unique, unique_by_key, upper_bound,
};
use kernel_primitives::functor::{
    Add, All, Any, ArgMax, Axpby, Greater, Identity, Less, LessThan, PlusTimes, RealPart, Sub, Sum, bind_second,
};
use kernel_primitives::input::counting;
use kernel_primitives::{Buffer, Complex, Device, Result, Stream};

use crate::kernels::Flagged;
use crate::support::{stream, values};

/// The inputs and the outputs of all algorithms.
pub struct Data {
    len: usize,
    x: Buffer<u32>,
    sorted: Buffer<u32>,
    floats: Buffer<f32>,
    flags: Buffer<bool>,
    flagged: Buffer<Flagged>,
    places: Buffer<u32>,
    offsets: Buffer<u32>,
    levels: Buffer<f32>,
    matrix: Csr<f32, u32>,
    plan: FftPlan<f32>,
    spectrum: Buffer<Complex<f32>>,
    out: Buffer<u32>,
    more: Buffer<u32>,
    numbers: Buffer<f32>,
    transformed: Buffer<Complex<f32>>,
    wide: Buffer<u64>,
    truths: Buffer<bool>,
    flagged_out: Buffer<Flagged>,
    best: Buffer<<ArgMax as kernel_primitives::functor::Reduction<f32>>::Output>,
    counts: Buffer<u32>,
    count: Buffer<u64>,
}

impl Data {
    pub fn new(stream: &Stream, len: usize, seed: u64) -> Result<Self> {
        let segments = len / 7 + 1;
        // Each row has two entries.
        let ends: Vec<u32> = (0..=len as u32).map(|row| 2 * row).collect();
        let columns: Vec<u32> = (0..len).flat_map(|row| [row as u32, ((7 * row + 3) % len) as u32]).collect();
        let mut data = Self {
            len,
            x: stream.buffer_zeroed(len)?,
            sorted: stream.buffer_zeroed(len)?,
            floats: stream.buffer_zeroed(len)?,
            flags: stream.buffer_zeroed(len)?,
            flagged: stream.buffer_zeroed(len)?,
            places: stream.buffer_zeroed(len)?,
            offsets: stream.buffer_zeroed(segments + 1)?,
            matrix: Csr::new(stream, (len, len), &ends, &columns, &values(2 * len, 5))?,
            plan: FftPlan::new(stream, &[len], &[0])?,
            spectrum: stream.buffer_zeroed(len)?,
            transformed: stream.buffer_zeroed(len)?,
            levels: stream.buffer_from(&[-900.0, -3.0, 5.0, 1000.0])?,
            out: stream.buffer_zeroed(2 * len)?,
            more: stream.buffer_zeroed(2 * len)?,
            numbers: stream.buffer_zeroed(len)?,
            wide: stream.buffer_zeroed(len)?,
            truths: stream.buffer_zeroed(len)?,
            flagged_out: stream.buffer_zeroed(len)?,
            best: stream.buffer_zeroed(1)?,
            counts: stream.buffer_zeroed(100)?,
            count: stream.buffer_zeroed(2)?,
        };
        data.set(seed)?;
        Ok(data)
    }

    /// Sets other inputs, and outputs without contents.
    fn set(&mut self, seed: u64) -> Result<()> {
        let len = self.len;
        let x: Vec<u32> = values::<u32>(len, seed).into_iter().map(|x| x % 1000).collect();
        let mut sorted = x.clone();
        sorted.sort_unstable();
        let mut offsets: Vec<u32> =
            values::<u32>(self.offsets.len(), seed + 9).into_iter().map(|x| x % (len as u32 + 1)).collect();
        offsets.sort_unstable();
        self.x.copy_from(&x)?;
        self.sorted.copy_from(&sorted)?;
        self.floats.copy_from(&values::<f32>(len, seed + 1))?;
        self.flags.copy_from(&values::<bool>(len, seed + 2))?;
        self.flagged.copy_from(&values::<Flagged>(len, seed + 3))?;
        let turn = seed as usize * 31 % len;
        let complex = values::<Complex<f32>>(len, seed + 4);
        self.spectrum.copy_from(&complex)?;
        self.transformed.copy_from(&complex)?;
        self.places.copy_from(&(0..len).map(|i| ((i + turn) % len) as u32).collect::<Vec<_>>())?;
        self.offsets.copy_from(&offsets)?;
        self.out.copy_from(&vec![7; 2 * len])?;
        self.more.copy_from(&vec![7; 2 * len])?;
        self.numbers.copy_from(&vec![7.0; len])?;
        self.wide.copy_from(&vec![7; len])?;
        self.truths.copy_from(&vec![false; len])?;
        self.flagged_out.copy_from(&vec![Flagged { flags: [false; 2], value: 0 }; len])?;
        self.counts.copy_from(&[7; 100])?;
        self.count.copy_from(&[7; 2])
    }

    /// Returns the contents of the outputs.
    pub fn results(&self) -> Result<impl PartialEq + use<>> {
        let numbers: Vec<u32> = self.numbers.to_vec()?.into_iter().map(f32::to_bits).collect();
        let transformed: Vec<[u32; 2]> =
            self.transformed.to_vec()?.into_iter().map(|x| [x.re.to_bits(), x.im.to_bits()]).collect();
        let best = self.best.to_vec()?[0];
        Ok((
            (self.out.to_vec()?, self.more.to_vec()?, numbers, self.wide.to_vec()?, self.truths.to_vec()?),
            transformed,
            (self.flagged_out.to_vec()?, best.index(), self.counts.to_vec()?, self.count.to_vec()?),
        ))
    }
}

/// An algorithm, called with some of the data.
pub type Case = (&'static str, fn(Run<'_>, &mut Data) -> Result<()>);

/// Each algorithm. Algorithms with temporary elements whose bytes are not all values come a second time. The net captures other calls.
pub const ALL: &[Case] = &[
    ("transform", |run, d| transform(run, &d.floats, Identity, &mut d.numbers)),
    ("generate", |run, d| generate(run, Identity, &mut d.wide)),
    ("fill", |run, d| fill(run, 2.5f32, &mut d.numbers)),
    ("gather", |run, d| gather(run, &d.floats, &d.places, &mut d.numbers)),
    ("scatter", |run, d| scatter(run, &d.floats, &d.places, &mut d.numbers)),
    ("reduce", |run, d| reduce(run, &d.floats, Sum, &mut d.numbers)),
    ("reduce to a place", |run, d| reduce(run, &d.floats, ArgMax, &mut d.best)),
    ("reduce of bool", |run, d| reduce(run, &d.flags, Any, &mut d.truths)),
    ("segmented_reduce", |run, d| segmented_reduce(run, &d.floats, &d.offsets, Sum, &mut d.numbers)),
    ("segmented_reduce by All", |run, d| segmented_reduce(run, &d.flags, &d.offsets, All, &mut d.truths)),
    ("segmented_inclusive_scan", |run, d| segmented_inclusive_scan(run, &d.x, &d.offsets, Add, &mut d.out)),
    ("segmented_inclusive_scan of a long segment", |run, d| {
        segmented_inclusive_scan(run, &d.x, d.offsets.slice(..2)?, Add, &mut d.out)
    }),
    ("segmented_exclusive_scan", |run, d| segmented_exclusive_scan(run, &d.x, &d.offsets, 5, Add, &mut d.out)),
    ("inclusive_scan", |run, d| inclusive_scan(run, &d.x, Add, &mut d.out)),
    ("exclusive_scan", |run, d| exclusive_scan(run, &d.x, 5, Add, &mut d.out)),
    ("adjacent_difference", |run, d| adjacent_difference(run, &d.x, Sub, &mut d.out)),
    ("histogram_even", |run, d| histogram_even(run, &d.x, 0, 1000, &mut d.counts)),
    ("histogram_ranges", |run, d| histogram_ranges(run, &d.floats, &d.levels, d.counts.slice_mut(..3)?)),
    ("lower_bound", |run, d| lower_bound(run, &d.sorted, &d.x, &mut d.wide)),
    ("upper_bound", |run, d| upper_bound(run, &d.sorted, &d.x, &mut d.wide)),
    ("sort_keys", |run, d| sort_keys(run, &d.x, &mut d.out, Less)),
    ("sort_keys_by_bits", |run, d| sort_keys_by_bits(run, &d.x, &mut d.out, Greater, 3..21)),
    ("sort_pairs_by_bits", |run, d| sort_pairs_by_bits(run, &d.x, &d.places, &mut d.out, &mut d.more, Less, 3..21)),
    ("sort_pairs", |run, d| sort_pairs(run, &d.x, &d.places, &mut d.out, &mut d.more, Greater)),
    ("sort_pairs with bool", |run, d| sort_pairs(run, &d.x, &d.flagged, &mut d.out, &mut d.flagged_out, Less)),
    ("sort_by", |run, d| sort_by(run, &d.x, Less, &mut d.out)),
    ("sort_pairs_by", |run, d| sort_pairs_by(run, &d.x, &d.places, Less, &mut d.out, &mut d.more)),
    ("sort_pairs_by with bool", |run, d| sort_pairs_by(run, &d.x, &d.flagged, Less, &mut d.out, &mut d.flagged_out)),
    ("segmented_sort", |run, d| segmented_sort(run, &d.x, &d.offsets, Less, &mut d.out)),
    ("segmented_sort_pairs", |run, d| {
        segmented_sort_pairs(run, &d.x, &d.places, &d.offsets, Less, &mut d.out, &mut d.more)
    }),
    ("segmented_sort_pairs with bool", |run, d| {
        segmented_sort_pairs(run, &d.x, &d.flagged, &d.offsets, Less, &mut d.out, &mut d.flagged_out)
    }),
    ("merge", |run, d| merge(run, &d.sorted, &d.sorted, Less, &mut d.out)),
    ("merge_pairs", |run, d| {
        merge_pairs(run, (&d.sorted, &d.x), (&d.sorted, &d.places), Less, &mut d.out, &mut d.more)
    }),
    ("spmv", |run, d| spmv(run, &d.matrix, &d.floats, &mut d.numbers)),
    ("spmv_by", |run, d| {
        spmv_by(run, &d.matrix, &d.floats, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut d.numbers)
    }),
    ("spmm", |run, d| spmm(run, &d.matrix, &d.floats, 1, &mut d.numbers)),
    ("spmm_by", |run, d| {
        spmm_by(run, &d.matrix, &d.floats, 1, PlusTimes, Axpby { alpha: 2.0, beta: -1.0 }, &mut d.numbers)
    }),
    ("spmm_with", |run, d| {
        let axpby = Axpby { alpha: 2.0, beta: -1.0 };
        spmm_with(run, &d.matrix, &d.floats, 1, PlusTimes, axpby, &d.floats, &mut d.numbers)
    }),
    ("spmv_with", |run, d| {
        let axpby = Axpby { alpha: 2.0, beta: -1.0 };
        spmv_with(run, &d.matrix, &d.floats, PlusTimes, axpby, &d.floats, &mut d.numbers)
    }),
    ("fft", |run, d| fft(run, &d.plan, &d.floats, &mut d.transformed)),
    ("fft of complex numbers", |run, d| fft(run, &d.plan, &d.spectrum, &mut d.transformed)),
    ("ifft", |run, d| ifft(run, &d.plan, &d.spectrum, &mut d.transformed)),
    ("fft_in_place", |run, d| fft_in_place(run, &d.plan, &mut d.transformed)),
    ("ifft_in_place", |run, d| ifft_in_place(run, &d.plan, &mut d.transformed)),
    ("rfft", |run, d| rfft(run, &d.plan, &d.floats, &mut d.transformed)),
    ("irfft", |run, d| irfft(run, &d.plan, d.spectrum.slice(..d.plan.half_items())?, &mut d.numbers)),
    ("fft_by", |run, d| {
        fft_by(run, &d.plan, FftKind::RealInverse, d.spectrum.slice(..d.len / 2 + 1)?, RealPart, &mut d.numbers)
    }),
    ("top_k", |run, d| top_k(run, &d.floats, 10, Greater, &mut d.numbers)),
    ("top_k of many", |run, d| top_k(run, &d.floats, d.len / 2, Less, &mut d.numbers)),
    ("top_k of bool", |run, d| top_k(run, &d.flags, 100, Greater, &mut d.truths)),
    ("top_k of many bool", |run, d| top_k(run, &d.flags, d.len / 2, Greater, &mut d.truths)),
    ("top_k_pairs", |run, d| {
        top_k_pairs(run, &d.floats, counting(0u32, d.len), 10, Greater, &mut d.numbers, &mut d.out)
    }),
    ("top_k_pairs of many", |run, d| {
        top_k_pairs(run, &d.floats, counting(0u32, d.len), d.len / 2, Greater, &mut d.numbers, &mut d.out)
    }),
    ("select_if", |run, d| select_if(run, &d.x, bind_second(LessThan, 500), &mut d.out, &mut d.count)),
    ("select_flagged", |run, d| select_flagged(run, &d.x, &d.flags, &mut d.out, &mut d.count)),
    ("partition", |run, d| partition(run, &d.x, bind_second(LessThan, 500), &mut d.out, &mut d.count)),
    ("stable_partition", |run, d| stable_partition(run, &d.x, bind_second(LessThan, 500), &mut d.out, &mut d.count)),
    ("unique", |run, d| unique(run, &d.sorted, &mut d.out, &mut d.count)),
    ("unique_by_key", |run, d| unique_by_key(run, &d.sorted, &d.x, &mut d.out, &mut d.more, &mut d.count)),
    ("run_length_encode", |run, d| run_length_encode(run, &d.sorted, &mut d.out, &mut d.more, &mut d.count)),
    ("reduce_by_key", |run, d| reduce_by_key(run, &d.sorted, &d.x, Add, &mut d.out, &mut d.more, &mut d.count)),
    ("inclusive_scan_by_key", |run, d| inclusive_scan_by_key(run, &d.sorted, &d.x, Add, &mut d.out)),
    ("exclusive_scan_by_key", |run, d| exclusive_scan_by_key(run, &d.sorted, &d.x, 3, Add, &mut d.out)),
];

/// A size with one tile, and a size with several: scans of four bytes have more than one tile from 19 457 items. Both sizes are products of
/// small primes, as Fourier transforms need them. The transforms of the second size have two passes.
pub const SIZES: [usize; 2] = [900, 20_160];

/// With the workspace of an earlier call, nothing allocates. For other data, a captured call gives the result of a call.
#[test]
fn with_a_workspace_every_algorithm_is_captured_and_launched_again() -> Result<()> {
    let stream = stream()?;
    let mut wrong = Vec::new();
    for &(name, algorithm) in ALL {
        for len in SIZES {
            let captured = || -> Result<bool> {
                let mut data = Data::new(&stream, len, 1)?;
                let mut workspace = Workspace::new();
                algorithm(Run::on(&stream).with(&mut workspace), &mut data)?;
                let before = stream.device().counters();
                let graph = stream.capture(|stream| algorithm(Run::on(stream).with(&mut workspace), &mut data))?;
                let allocations = stream.device().counters().since(before).allocations;
                // A GPU counts what other tests allocate, too.
                let mut is_right = stream.device().is_gpu() || allocations == 0;
                for seed in [2, 3] {
                    data.set(seed)?;
                    graph.launch(&stream)?;
                    let found = data.results()?;
                    data.set(seed)?;
                    algorithm(Run::on(&stream), &mut data)?;
                    is_right &= found == data.results()?;
                }
                Ok(is_right)
            };
            match captured() {
                Ok(true) => {}
                Ok(false) => wrong.push(format!("{name}, {len}: it allocates, or its graph differs")),
                Err(error) => wrong.push(format!("{name}, {len}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// An algorithm that needs no memory is captured without a workspace, and counts no allocation.
#[test]
fn a_single_tile_needs_no_workspace() -> Result<()> {
    // This is not a GPU, because all tests share its counts.
    let stream = Device::emulator().stream()?;
    let mut data = Data::new(&stream, 900, 1)?;
    for &(name, algorithm) in ALL {
        // These have data that the second kernel reads, or tables of tiles.
        if name.starts_with("top_k_pairs") || name.starts_with("segmented_sort") {
            continue;
        }
        let before = stream.device().counters();
        algorithm(Run::on(&stream), &mut data)?;
        assert_eq!(stream.device().counters().since(before).allocations, 0, "{name}");
        let graph = stream.capture(|stream| algorithm(Run::on(stream), &mut data)).map(|graph| graph.launches());
        assert!(graph.as_ref().is_ok_and(|&launches| launches > 0), "{name}: {graph:?}");
    }
    Ok(())
}
