//! The block's sorts beside CUB's BlockRadixSort and BlockMergeSort: keys sorted a second, whole tiles, from registers to
//! registers.

use kernel_primitives::{Buffer, Device, Result, Stream};

use crate::harness::{Options, Report, compare};
use crate::kernels::block_sort::{Scramble, merge, network, radix};
use crate::peers::Peers;

/// Sorts a launch.
const ROUNDS: u32 = 8;

/// Keys.
const KEYS: usize = 1 << 24;

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

/// Three sorts of ours and two of CUB's, taken in turn. The network, which has no counterpart, stands beside the radix sort.
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
    let mut outs = (0..5).map(|_| stream.buffer_zeroed::<K>(KEYS)).collect::<Result<Vec<_>>>()?;
    stream.synchronize()?;
    let raw = stream.as_raw();
    let cub = ["radix", "merge"]
        .map(|sort| peers.map(|peers| peers.block_sort(&format!("{sort}_sort_{name}_{threads}_{items}"))));

    let addresses: Vec<u64> = outs.iter().map(|out| out.address()).collect();
    let [a, b, c, ..] = &mut outs[..] else { unreachable!("five buffers") };
    let mut run_radix = || ours[0].1(stream, blocks, &x, a);
    let mut run_merge = || ours[1].1(stream, blocks, &x, b);
    let mut run_network = || ours[2].1(stream, blocks, &x, c);
    let peer = |which: usize| {
        if let Some(cub) = &cub[which] {
            cub(x.address(), addresses[3 + which], blocks, ROUNDS, raw);
        }
        Ok(())
    };
    let (mut cub_radix, mut cub_merge) = (|| peer(0), || peer(1));
    let times =
        compare(stream, &mut [&mut run_radix, &mut run_merge, &mut run_network, &mut cub_radix, &mut cub_merge])?;

    let sorted = outs[0].to_vec()?;
    for tile in sorted.chunks(tile) {
        assert!(tile.is_sorted_by_key(|key| key.to_sort_bits()), "{name} {threads} x {items}: not sorted");
    }
    for out in &outs[1..if peers.is_some() { 5 } else { 3 }] {
        assert!(out.to_vec()? == sorted, "{name} {threads} x {items}: the sorts disagree");
    }
    let rate = |time: f64| KEYS as f64 * f64::from(ROUNDS) / time / 1e6;
    for (k, (sort, _)) in ours.iter().enumerate() {
        let mut values = vec![("ms", times[k]), ("Gkeys/s", rate(times[k]))];
        if peers.is_some() {
            let theirs = if k == 1 { times[4] } else { times[3] };
            values.extend([("CUB Gkeys/s", rate(theirs)), ("ratio to CUB", theirs / times[k])]);
        }
        report.row(&format!("block sort, {sort}, {name} {threads} x {items}"), &values);
    }
    Ok(())
}
