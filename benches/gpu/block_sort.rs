//! The block's sorts beside CUB's BlockRadixSort and BlockMergeSort: keys sorted a second, whole tiles, from registers to
//! registers.

use kernel_primitives::{Buffer, Device, Result, Stream};

use crate::harness::{Options, Report, compare, least_by_label};
use crate::kernels::block_sort::{Scramble, merge, network, radix};
use crate::peers::Peers;

/// Sorts a launch.
const ROUNDS: u32 = 8;

/// Keys.
const KEYS: usize = 1 << 24;

/// CUB's sorts. As ours, their kernels are compiled for so many threads that a multiprocessor runs at once; for any number if it is 0.
const CUB: [(&str, usize); 6] =
    [("radix", 0), ("radix", 896), ("radix", 1024), ("merge", 0), ("merge", 896), ("merge", 1024)];

type Launch<K> = fn(&Stream, u32, &Buffer<K>, &mut Buffer<K>) -> Result<()>;

pub(crate) fn run(device: &Device, options: &Options, report: &mut Report) -> Result<()> {
    let stream = device.stream()?;
    let peers = options.peers.as_deref().map(Peers::open);
    macro_rules! rows {
        ($($t:ident $threads:literal $items:literal $tile:literal)*) => {$(
            let ours: [(&str, Launch<$t>); 3] = [
                ("radix", |stream, blocks, x, out| {
                    radix::<$t, $threads, $items>::launch(stream, (blocks, $threads), x, ROUNDS, out)
                }),
                ("merge", |stream, blocks, x, out| {
                    merge::<$t, $threads, $items>::launch(stream, (blocks, $threads), x, ROUNDS, out)
                }),
                ("network", |stream, blocks, x, out| {
                    network::<$t, $threads, $items, $tile>::launch(stream, (blocks, $threads), x, ROUNDS, out)
                }),
            ];
            rows::<$t>(&stream, report, peers.as_ref(), stringify!($t), ($threads, $items), ours)?;
        )*};
    }
    rows! {
        f32 128 4 512
        f32 128 8 1024
        f32 256 4 1024
        f32 256 8 2048
        i32 128 4 512
        i32 128 8 1024
        i32 256 4 1024
        i32 256 8 2048
    }
    Ok(())
}

/// Three sorts of ours and two of CUB's, taken in turn; of the kernels of a sort of CUB's, the fastest counts. The network, which has no
/// counterpart, stands beside the faster sort.
fn rows<K: Scramble + PartialEq>(
    stream: &Stream,
    report: &mut Report,
    peers: Option<&Peers>,
    name: &str,
    (threads, items): (usize, usize),
    ours: [(&str, Launch<K>); 3],
) -> Result<()>
where
    K::Bits: From<u32>,
{
    let x: Vec<K> = (0..KEYS as u32).map(|i| K::from_sort_bits(i.into()).scramble()).collect();
    let x = stream.buffer_from(&x)?;
    let tile = threads * items;
    let blocks = (KEYS / tile) as u32;
    let cub: Vec<_> = peers
        .into_iter()
        .flat_map(|peers| {
            let shape = format!("{name}_{threads}_{items}");
            CUB.map(|(sort, at_once)| (sort, peers.block_sort(&format!("{sort}_sort_{shape}_{at_once}"))))
        })
        .collect();
    let buffers = |count: usize| (0..count).map(|_| stream.buffer_zeroed::<K>(KEYS)).collect::<Result<Vec<_>>>();
    let (mut outs, cub_outs) = (buffers(ours.len())?, buffers(cub.len())?);
    stream.synchronize()?;

    let (raw, input) = (stream.as_raw(), &x);
    let runs = ours.iter().zip(&mut outs).map(|((_, run), out)| move || run(stream, blocks, input, out));
    let mut runs: Vec<_> = runs.collect();
    let cub_runs = cub.iter().zip(&cub_outs).map(|((_, run), out)| {
        let (x, out) = (x.address(), out.address());
        move || {
            run(x, out, blocks, ROUNDS, raw);
            Ok(())
        }
    });
    let mut cub_runs: Vec<_> = cub_runs.collect();
    let mut contenders: Vec<&mut dyn FnMut() -> Result<()>> = Vec::new();
    contenders.extend(runs.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
    contenders.extend(cub_runs.iter_mut().map(|run| run as &mut dyn FnMut() -> Result<()>));
    let times = compare(stream, &mut contenders)?;

    let sorted = outs[0].to_vec()?;
    let title = format!("{name} {threads} x {items}");
    if !sorted.chunks(tile).all(|tile| tile.is_sorted_by_key(|key| key.to_sort_bits())) {
        report.failure(format!("block sort, radix, {title}: not sorted"));
        return Ok(());
    }
    let of_ours = ours.iter().map(|(sort, _)| ("ours", *sort)).zip(&outs);
    let of_cub = cub.iter().map(|(sort, _)| ("CUB's", *sort)).zip(&cub_outs);
    for ((whose, sort), out) in of_ours.chain(of_cub) {
        if out.to_vec()? != sorted {
            report.failure(format!("block sort, {sort}, {title}, {whose}: another result than the radix sort's"));
        }
    }
    let rate = |time: f64| KEYS as f64 * f64::from(ROUNDS) / time / 1e6;
    let (times, cub_times) = times.split_at(ours.len());
    let cub_times = least_by_label(cub.iter().map(|(sort, _)| *sort).zip(cub_times.iter().copied()));
    for ((sort, _), &ms) in ours.iter().zip(times) {
        let mut values = vec![("ms", ms), ("Gkeys/s", rate(ms))];
        let counterparts = cub_times.iter().filter(|(theirs, _)| theirs == sort || *sort == "network");
        if let Some(theirs) = counterparts.map(|(_, time)| *time).reduce(f64::min) {
            values.extend([("CUB ms", theirs), ("CUB Gkeys/s", rate(theirs)), ("ratio to CUB", theirs / ms)]);
        }
        report.row(&format!("block sort, {sort}, {title}"), &values);
    }
    Ok(())
}
