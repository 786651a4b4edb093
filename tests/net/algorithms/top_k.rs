//! The first few of many.

use kernel_primitives::algorithms::{top_k, top_k_pairs};
use kernel_primitives::functor::{Greater, Less};
use kernel_primitives::input::counting;
use kernel_primitives::kernels::device::{TOP_K_MOST, TOP_K_TILE};

use crate::case::{Case, Lengths};
use crate::data::items;
use crate::reference::{Key, at, order};
use crate::subject::{Subject, exact, subject};

fn lengths() -> Lengths {
    let near = [TOP_K_TILE, TOP_K_MOST, 5 * TOP_K_TILE, 9 * TOP_K_TILE];
    Lengths { most: 24 * TOP_K_TILE, ..Lengths::near(&near) }
}

/// Returns the number of items that are requested.
fn k(case: &Case) -> usize {
    let mut param = case.param(6);
    let [few, some] = [param.below(40), param.below(TOP_K_MOST)];
    let drawn = [0, 1, few, some, TOP_K_MOST - 1, TOP_K_MOST, TOP_K_MOST + 1, case.len][param.below(8)];
    case.usual([10, case.len / 2]).unwrap_or(drawn).min(case.len)
}

fn places<K: Key>(case: &Case, x: &[K], descending: bool) -> Vec<usize> {
    let mut places = order(x, |a, b| if descending { b.order(a).is_lt() } else { a.order(b).is_lt() });
    places.truncate(k(case));
    places
}

pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    macro_rules! subjects {
        ($($name:literal, $t:ty, $order:ident, $descending:literal;)*) => {$(
            all.push(subject(
                // Several blocks find a limit by the collectives.
                &["top_k", "block_top_k_before", "block_top_k_records"],
                $name,
                lengths(),
                |case| (items::<$t>(case, 0, case.len),),
                |case, (x,)| (exact(at(x, &places(case, x, $descending))),),
                |case, place, (x,), (out,)| top_k(place.run(), x.get(), k(case), $order, out.room()),
            ));
        )*};
    }
    subjects! {
        "f32, Greater", f32, Greater, true;
        "f32, Less", f32, Less, false;
        "bool, Greater", bool, Greater, true;
    }
    let pairs = subject(
        &["top_k_pairs"],
        "f32, Counting<u32>, Greater",
        lengths(),
        |case| (items::<f32>(case, 0, case.len),),
        |case, (x,)| {
            let places = places(case, x, true);
            (exact(at(x, &places)), exact(places.iter().map(|&i| i as u32).collect()))
        },
        |case, place, (x,), (out, places)| {
            let x = x.get();
            top_k_pairs(place.run(), x, counting(0u32, x.len()), k(case), Greater, out.room(), places.room())
        },
    );
    // The second kernel reads the keys and the places that the first one finds.
    all.push(pairs.takes_memory(|_| true));
    all
}
