//! Tensors and buffers over several GPUs beside one, copies between GPUs, and NCCL's all-reduce. Of a machine with one GPU there are no
//! rows.
//!
//! Times are the host's, until all GPUs are done. NCCL is opened where it is installed, and is asked with `NCCL_NVLS_ENABLE=0` only: a
//! fault in NVLink's multicast takes all GPUs of the host out of service.

mod heat;
mod sorts;

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::time::Instant;

use kernel_primitives::expr::{
    Expr, Functions, Operand, PairFunctions, Reductions, Scalar, SplitTensor, Tensor, element_index, scalar, sin, sqrt,
    uniform,
};
use kernel_primitives::functor::{Add, LessThan, bind_second};
use kernel_primitives::{Buffer, Device, Devices, Result, Split, SplitBuffer, split};
use primitives_nccl::Nccl;
use primitives_nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use self::heat::Heat;
use self::sorts::{ReduceByKey, Sort, SortPairs, TopK};
use crate::harness::{Options, Report, median};

/// Samples of a row.
const SAMPLES: usize = 11;

/// Milliseconds of a sample, if a run is shorter. A device may work on the next run while another one ends the last: a sample is long
/// beside the first run, in which nobody does.
const SAMPLE: f64 = 60.0;

/// The most runs of a sample.
const RUNS: u32 = 64;

/// Elements of each GPU whose results are looked at.
const LOOK: usize = 4096;

struct Bench<'a> {
    /// Over one GPU, over two, and so on.
    splits: Vec<Split>,
    report: &'a mut Report,
}

pub(crate) fn run(_: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let gpus = Device::gpu_count();
    if gpus < 2 {
        println!("split: there is one GPU, so that nothing goes over several");
        return Ok(());
    }
    let over = |count: usize| {
        let devices = (0..count).map(Device::gpu_at).collect::<Result<Vec<_>>>()?;
        Split::even(&Devices::new(devices)?)
    };
    let splits = [1, 2, 4, 8].into_iter().filter(|count| *count <= gpus).map(over).collect::<Result<_>>()?;
    let mut bench = Bench { splits, report };
    let n = 1usize << options.log2;
    bench.rows::<Expression>("sin(2x) + sqrt(1 - x^2), f32", n, 8 * n)?;
    bench.rows::<Sum>("sum, f32", n, 4 * n)?;
    bench.rows::<Scan>("inclusive_scan, u32", n, 8 * n)?;
    bench.rows_of::<Scan>("inclusive_scan, u32, one call alone", n, 8 * n, 1)?;
    bench.rows::<Select>("select_if, u32, half of them", n, 4 * n + 4 * kept_of(n))?;
    bench.rows::<Histogram>("histogram_even, f32, 256 bins", n, 4 * n)?;
    bench.rows::<Heat>("a step of the heat equation, 5 points, f32", n, 8 * n)?;
    bench.rows::<Sort>("sort_keys, u32", n, 8 * n)?;
    bench.rows::<SortPairs>("sort_pairs, u32 with u64", n, 24 * n)?;
    let n = n.min(1 << 28);
    bench.rows::<ReduceByKey>("reduce_by_key, u32, runs of 31", n, 8 * n)?;
    bench.rows::<TopK>("top_k, u32, 100", n, 4 * n)?;
    bench.copies(n)?;
    bench.all_reduce(n)
}

/// What is measured on a split.
trait Job: Sized {
    fn new(split: &Split, n: usize) -> Result<Self>;
    fn run(&mut self) -> Result<()>;
    /// Whether the result of the last run is right.
    fn is_right(&self) -> Result<bool>;
}

/// Milliseconds of a run of so many at most, of which the result is right before and after; none if it is wrong.
fn measured<J: Job>(split: &Split, n: usize, most: u32) -> Result<Option<f64>> {
    let mut job = J::new(split, n)?;
    job.run()?;
    if !job.is_right()? {
        return Ok(None);
    }
    let mut sample = |runs: u32| -> Result<f64> {
        split.synchronize()?;
        let start = Instant::now();
        for _ in 0..runs {
            job.run()?;
        }
        split.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(runs))
    };
    sample(1)?;
    let runs = (SAMPLE / sample(1)?).clamp(1.0, f64::from(most)) as u32;
    let times = (0..SAMPLES).map(|_| sample(runs)).collect::<Result<Vec<_>>>()?;
    Ok(job.is_right()?.then(|| median(times)))
}

/// Milliseconds as GB/s.
fn rate(bytes: usize, ms: f64) -> f64 {
    bytes as f64 / ms / 1e6
}

impl Bench<'_> {
    /// A row for each number of GPUs, beside one. Each byte that is read or written counts once.
    fn rows<J: Job>(&mut self, what: &str, n: usize, bytes: usize) -> Result<()> {
        self.rows_of::<J>(what, n, bytes, RUNS)
    }

    /// As [`rows`](Self::rows), with at most `most` runs between two waits of the host.
    fn rows_of<J: Job>(&mut self, what: &str, n: usize, bytes: usize, most: u32) -> Result<()> {
        let mut alone = None;
        for split in &self.splits {
            let gpus = split.streams().len();
            let name = format!("split, {what} 2^{}, {gpus} GPUs", n.ilog2());
            let Some(ms) = measured::<J>(split, n, most)? else {
                self.report.failure(name);
                continue;
            };
            match alone {
                _ if gpus == 1 => alone = Some(ms),
                Some(alone) => {
                    let values =
                        [("ms", ms), ("GB/s", rate(bytes, ms)), ("one GPU ms", alone), ("speed-up", alone / ms)];
                    self.report.row(&name, &values);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// From the first GPU to the second.
    fn copies(&mut self, n: usize) -> Result<()> {
        let name = format!("split, copy between GPUs, u32 2^{}", n.ilog2());
        match measured::<PeerCopy>(&self.splits[1], n, RUNS)? {
            Some(ms) => self.report.row(&name, &[("ms", ms), ("GB/s", rate(4 * n, ms))]),
            None => self.report.failure(name),
        }
        Ok(())
    }

    fn all_reduce(&mut self, n: usize) -> Result<()> {
        if std::env::var("NCCL_NVLS_ENABLE").as_deref() != Ok("0") {
            println!("split: all-reduce by NCCL is measured with NCCL_NVLS_ENABLE=0");
            return Ok(());
        }
        match primitives_nccl::load() {
            Ok(nccl) => self.report.about("NCCL", &nccl.version().to_string()),
            Err(error) => {
                println!("split: there is no all-reduce: {error}");
                return Ok(());
            }
        }
        for split in &self.splits[1..] {
            let gpus = split.streams().len();
            let name = format!("split, all-reduce by NCCL, f32 2^{}, {gpus} GPUs", n.ilog2());
            let Some(ms) = measured::<AllReduce>(split, n, RUNS)? else {
                self.report.failure(name);
                continue;
            };
            // What goes over each GPU's links, as NCCL's own tests count it.
            let over_links = rate(4 * n, ms) * 2.0 * (gpus - 1) as f64 / gpus as f64;
            self.report.row(&name, &[("ms", ms), ("GB/s", rate(4 * n, ms)), ("bus GB/s", over_links)]);
        }
        Ok(())
    }
}

/// Item `i` of what is read: small whole numbers, each as often as the others.
fn value(i: usize) -> u32 {
    (i * 7 % PERIOD) as u32
}
const PERIOD: usize = 31;

fn values<T: Scalar>() -> Expr<T> {
    (element_index::<u64>() * 7).floor_rem(scalar(PERIOD as u64)).cast::<T>()
}

/// The sum of the first so many items.
fn sum_of(n: usize) -> u64 {
    let sum = |count: usize| (0..count).map(|i| u64::from(value(i))).sum::<u64>();
    (n / PERIOD) as u64 * sum(PERIOD) + sum(n % PERIOD)
}

/// Items less than this are selected.
const LIMIT: u32 = 16;

/// How many of the first so many items are.
fn kept_of(n: usize) -> usize {
    let kept = |count: usize| (0..count).filter(|&i| value(i) < LIMIT).count();
    n / PERIOD * kept(PERIOD) + kept(n % PERIOD)
}

/// A buffer of the elements of an expression.
fn filled<T: Scalar>(over: &Split, n: usize, value: impl Operand<Elem = T>) -> Result<SplitBuffer<T>> {
    let tensor = SplitTensor::uninit(over, n)?;
    tensor.assign(value)?;
    let mut buffer = SplitBuffer::uninit(over, n)?;
    for (mut part, shard) in buffer.parts_mut().zip(tensor.shards()) {
        part.copy_from_device(shard.stream(), shard.as_slice().expect("in a row"))?;
    }
    Ok(buffer)
}

struct Expression {
    x: SplitTensor<f32>,
    y: SplitTensor<f32>,
}

impl Job for Expression {
    fn new(split: &Split, n: usize) -> Result<Self> {
        let (x, y) = (SplitTensor::uninit(split, n)?, SplitTensor::uninit(split, n)?);
        x.assign(element_index::<f32>() / n as f32)?;
        Ok(Self { x, y })
    }

    fn run(&mut self) -> Result<()> {
        let Self { x, y } = self;
        y.assign(sin(&*x * 2.0f32) + sqrt(1.0f32 - &*x * &*x))
    }

    fn is_right(&self) -> Result<bool> {
        for (device, shard) in self.y.shards().enumerate() {
            let first = self.y.range(device).start;
            let head = shard.slice(..LOOK.min(shard.len()) as isize)?.to_vec()?;
            let is_right = |(i, y): (usize, &f32)| {
                let x = (first + i) as f32 / self.y.len() as f32;
                (y - ((2.0 * x).sin() + (1.0 - x * x).sqrt())).abs() < 1e-5
            };
            if !head.iter().enumerate().all(is_right) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Sum {
    x: SplitTensor<f32>,
    sum: Tensor<f32>,
}

impl Job for Sum {
    fn new(split: &Split, n: usize) -> Result<Self> {
        let (x, sum) = (SplitTensor::uninit(split, n)?, Tensor::zeros(&split.streams()[0], [])?);
        x.assign(values::<f32>())?;
        Ok(Self { x, sum })
    }

    fn run(&mut self) -> Result<()> {
        self.x.sum().assign_to(&self.sum)
    }

    fn is_right(&self) -> Result<bool> {
        let expected = sum_of(self.x.len()) as f64;
        Ok((f64::from(self.sum.item()?) - expected).abs() <= 1e-4 * expected)
    }
}

struct Scan {
    x: SplitBuffer<u32>,
    out: SplitBuffer<u32>,
}

impl Job for Scan {
    fn new(split: &Split, n: usize) -> Result<Self> {
        Ok(Self { x: filled(split, n, values::<u32>())?, out: SplitBuffer::zeroed(split, n)? })
    }

    fn run(&mut self) -> Result<()> {
        split::inclusive_scan(&self.x, Add, &mut self.out)
    }

    fn is_right(&self) -> Result<bool> {
        for device in 0..self.out.split().streams().len() {
            let range = self.out.range(device);
            let look = LOOK.min(range.len());
            let tail = self.out.part(device).slice(range.len() - look..)?.to_vec()?;
            // Sums wrap.
            if !tail.iter().zip(range.end - look..).all(|(&sum, i)| sum == sum_of(i + 1) as u32) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Select {
    x: SplitBuffer<u32>,
    kept: SplitBuffer<u32>,
}

impl Job for Select {
    fn new(split: &Split, n: usize) -> Result<Self> {
        Ok(Self { x: filled(split, n, values::<u32>())?, kept: SplitBuffer::zeroed(split, 0)? })
    }

    fn run(&mut self) -> Result<()> {
        self.kept = split::select_if(&self.x, bind_second(LessThan, LIMIT))?;
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        for device in 0..self.x.split().streams().len() {
            let (items, kept) = (self.x.range(device), self.kept.range(device));
            if (kept.start, kept.end) != (kept_of(items.start), kept_of(items.end)) {
                return Ok(false);
            }
            let head = self.kept.part(device).slice(..LOOK.min(kept.len()))?.to_vec()?;
            let expected = items.map(value).filter(|&value| value < LIMIT);
            if !expected.take(head.len()).eq(head) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Histogram {
    x: SplitBuffer<f32>,
    counts: Option<Tensor<u32>>,
}

const BINS: usize = 256;

impl Job for Histogram {
    fn new(split: &Split, n: usize) -> Result<Self> {
        Ok(Self { x: filled(split, n, uniform::<f32>(1) * BINS as f32)?, counts: None })
    }

    fn run(&mut self) -> Result<()> {
        self.counts = Some(split::histogram_even::<_, u32, _>(&self.x, 0.0, BINS as f32, BINS)?);
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        let Some(counts) = &self.counts else { return Ok(false) };
        let (counts, n) = (counts.to_vec()?, self.x.len());
        let mean = n as f64 / BINS as f64;
        let is_near = |&count: &u32| (f64::from(count) - mean).abs() < 8.0 * mean.sqrt();
        Ok(counts.iter().map(|&count| count as usize).sum::<usize>() == n && counts.iter().all(is_near))
    }
}

/// From the first GPU of a split to the second.
struct PeerCopy {
    over: Split,
    from: Buffer<u32>,
    to: Buffer<u32>,
}

impl Job for PeerCopy {
    fn new(over: &Split, n: usize) -> Result<Self> {
        let [from, to] = [0, 1].map(|device| &over.streams()[device]);
        let host: Vec<u32> = (0..n).map(value).collect();
        Ok(Self { over: over.clone(), from: from.buffer_from(&host)?, to: to.buffer_zeroed(n)? })
    }

    fn run(&mut self) -> Result<()> {
        self.to.as_mut_slice().copy_from_peer(&self.over.streams()[1], self.from.as_slice())
    }

    fn is_right(&self) -> Result<bool> {
        Ok((0..).map(value).zip(self.to.to_vec()?).all(|(expected, found)| expected == found))
    }
}

/// NCCL's sum over the GPUs, to all of them.
struct AllReduce {
    nccl: &'static Nccl,
    over: Split,
    n: usize,
    members: Vec<Member>,
}

/// What a GPU has of it: the addresses are those of the tensors' elements.
struct Member {
    comm: ncclComm_t,
    _from: Tensor<f32>,
    to: Tensor<f32>,
    addresses: [u64; 2],
}

impl AllReduce {
    #[track_caller]
    fn check(&self, result: ncclResult_t) {
        assert_eq!(result, ncclResult_t::ncclSuccess, "{}", self.nccl.describe(result));
    }
}

impl Job for AllReduce {
    fn new(over: &Split, n: usize) -> Result<Self> {
        let nccl = primitives_nccl::load().unwrap_or_else(|error| panic!("{error}"));
        let mut all = Self { nccl, over: over.clone(), n, members: Vec::new() };
        let mut comms = vec![null_mut(); over.streams().len()];
        let number = |device: &Device| device.ordinal().expect("a GPU") as i32;
        let numbers: Vec<i32> = over.streams().iter().map(|stream| number(stream.device())).collect();
        // SAFETY: so many communicators and numbers of GPUs, which this process has open.
        all.check(unsafe { nccl.ncclCommInitAll(comms.as_mut_ptr(), numbers.len() as i32, numbers.as_ptr()) });
        for ((rank, comm), stream) in comms.into_iter().enumerate().zip(over.streams()) {
            let buffers = [stream.buffer_uninit(n)?, stream.buffer_uninit(n)?];
            let addresses = buffers.each_ref().map(Buffer::address);
            let [from, to] = buffers.map(|buffer| Tensor::from_buffer(stream, n, buffer));
            let (from, to) = (from?, to?);
            from.fill((rank + 1) as f32)?;
            to.fill(-1.0)?;
            all.members.push(Member { comm, _from: from, to, addresses });
        }
        Ok(all)
    }

    fn run(&mut self) -> Result<()> {
        // SAFETY: a group of one call for each member, on a stream of its GPU, with so many elements on both sides, which nothing else uses
        // until the stream has been waited for.
        unsafe {
            self.check(self.nccl.ncclGroupStart());
            for (member, stream) in self.members.iter().zip(self.over.streams()) {
                let [from, to] = member.addresses.map(|address| address as usize);
                let (from, to) = (with_exposed_provenance::<c_void>(from), with_exposed_provenance_mut::<c_void>(to));
                let (f32, sum) = (ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum);
                self.check(self.nccl.ncclAllReduce(from, to, self.n, f32, sum, member.comm, stream.as_raw()));
            }
            self.check(self.nccl.ncclGroupEnd());
        }
        Ok(())
    }

    fn is_right(&self) -> Result<bool> {
        // The library knows nothing of NCCL's work.
        self.over.synchronize()?;
        let count = self.members.len();
        let expected = (count * (count + 1) / 2) as f32;
        let look = LOOK.min(self.n) as isize;
        for Member { to, .. } in &self.members {
            for part in [to.slice(..look)?, to.slice(-look..)?] {
                if part.to_vec()?.iter().any(|&x| x != expected) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Drop for AllReduce {
    fn drop(&mut self) {
        // NCCL's work ends before its members.
        let _ = self.over.synchronize();
        for member in &self.members {
            // SAFETY: made by `ncclCommInitAll`, destroyed once.
            unsafe { self.nccl.ncclCommDestroy(member.comm) };
        }
    }
}
