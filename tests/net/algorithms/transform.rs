//! Functions of each item, gathers and scatters.

use kernel_primitives::algorithms::{fill, gather, generate, scatter, transform};
use kernel_primitives::functor::Identity;
use kernel_primitives::input::{Source, Span, counting, zip};
use kernel_primitives::kernels::device::{SCATTER_ITEMS, transform_vectors, warp_items};
use kernel_primitives::{input, output};

use crate::case::{Case, Lengths};
use crate::data::{items, shuffled};
use crate::items::Item;
use crate::kernels::{Both, Three, Twelve};
use crate::subject::{Short, Subject, exact, subject};

/// Returns lengths near the items of a warp, and of a block of eight warps.
fn lengths<S: Source>() -> Lengths {
    let warp = warp_items(transform_vectors::<S>(), S::VECTOR);
    Lengths::near(&[warp, 8 * warp, warp_items(SCATTER_ITEMS, 1)])
}

/// Returns the step of strided inputs and outputs.
fn step(case: &Case) -> usize {
    1 + case.param(11).below(5)
}

/// Returns the number of places beside the results of a permutation. These are unchanged.
fn gaps(case: &Case) -> usize {
    case.param(12).below(3) * case.len / 2
}

/// Returns each item at its place, and the old values at the other places.
fn scattered<T: Item>(case: &Case, x: &[T], places: &[usize], before: &[T]) -> Vec<T> {
    let mut out = before.to_vec();
    assert_eq!(out.len(), case.len + gaps(case));
    x.iter().zip(places).for_each(|(&x, &place)| out[place] = x);
    out
}

/// Returns some of more places than there are items.
fn some_places(case: &Case) -> Vec<usize> {
    shuffled(case, 1, case.len + gaps(case)).into_iter().take(case.len).collect()
}

pub fn subjects() -> Vec<Subject> {
    let mut all = vec![
        subject(
            &["transform"],
            "f32, Identity, f32",
            lengths::<Span<f32>>(),
            |case| (items::<f32>(case, 0, case.len),),
            |_, (x,)| (exact(x.clone()),),
            |_, place, (x,), (out,)| transform(place.run(), x.get(), Identity, out.room()),
        ),
        subject(
            &["transform"],
            "Zip<u32, u32>, Both, Zip<u32, Reversed<u32>, Discard>",
            lengths::<Span<u32>>(),
            |case| (items::<u32>(case, 0, case.len + 3), items::<u32>(case, 1, case.len)),
            |_, (x, y)| {
                let both = || x.iter().zip(y);
                let sums = both().map(|(x, y)| x.wrapping_add(*y)).collect();
                (exact(sums), exact(both().rev().map(|(x, y)| x.wrapping_sub(*y)).collect()))
            },
            |case, place, (x, y), (sums, differences)| {
                let out = output::zip(output::reversed(differences.exact()), output::discard(case.len + 1));
                transform(place.run(), zip(x.get(), y.get()), Both, output::zip(sums.room(), out))
            },
        ),
        subject(
            &["transform"],
            "Strided<u16>, Identity, Strided<u16>",
            lengths::<Span<u16>>(),
            |case| (items::<u16>(case, 0, case.len * step(case)),),
            |case, (x,)| {
                // The other places are unchanged. In each step, there is one result.
                let every = step(case);
                let kept = |i: usize| if i.is_multiple_of(2) { Some(x[i / 2 * every]) } else { None };
                (exact((0..2 * case.len).map(|i| kept(i).unwrap_or(u16::beside(case.place + i))).collect()),)
            },
            |case, place, (x,), (out,)| {
                transform(place.run(), input::strided(x.get(), step(case)), Identity, output::strided(out.exact(), 2))
            },
        ),
        subject(
            &["transform"],
            "u32, Identity, Permutation<u32>",
            lengths::<Span<u32>>(),
            |case| {
                let places = some_places(case).iter().map(|&at| at as u32).collect();
                (items::<u32>(case, 0, case.len), places)
            },
            |case, (x, places): &(_, Vec<u32>)| {
                let places: Vec<usize> = places.iter().map(|&at| at as usize).collect();
                (exact(scattered(case, x, &places, &untouched(case))),)
            },
            |_, place, (x, places), (out,)| {
                transform(place.run(), x.get(), Identity, output::permutation(out.exact(), places.get()))
            },
        ),
        subject(
            &["scatter"],
            "Three, u64",
            lengths::<Span<Three>>(),
            |case| {
                let places = some_places(case).iter().map(|&at| at as u64).collect();
                (items::<Three>(case, 0, case.len), places)
            },
            |case, (x, places): &(_, Vec<u64>)| {
                let places: Vec<usize> = places.iter().map(|&at| at as usize).collect();
                (exact(scattered(case, x, &places, &untouched(case))),)
            },
            |_, place, (x, places), (out,)| scatter(place.run(), x.get(), places.get(), out.exact()),
        ),
        subject(
            &["gather"],
            "f32, u32",
            lengths::<Span<f32>>(),
            |case| {
                // The places are any of a few items.
                let of = 1 + case.param(13).below(case.len + 5);
                let places = items::<u32>(case, 1, case.len).into_iter().map(|at| at % of as u32).collect();
                (items::<f32>(case, 0, of), places)
            },
            |_, (x, places): &(Vec<f32>, Vec<u32>)| (exact(places.iter().map(|&at| x[at as usize]).collect()),),
            |_, place, (x, places), (out,)| gather(place.run(), x.get(), places.get(), out.room()),
        ),
        subject(
            &["gather"],
            "Twelve, Reversed<Counting<i64>>",
            lengths::<Span<Twelve>>(),
            |case| (items::<Twelve>(case, 0, case.len),),
            |_, (x,)| (exact(x.iter().rev().copied().collect()),),
            |_, place, (x,), (out,)| {
                let x = x.get();
                gather(place.run(), x, input::reversed(counting(0i64, x.len())), out.room())
            },
        ),
    ];
    all.push(subject(
        &["generate"],
        "Identity, u64",
        lengths::<Span<u64>>(),
        |_| (),
        |case, ()| (exact((0..case.len as u64).collect()),),
        |_, place, (), (out,)| generate(place.run(), Identity, out.exact()),
    ));
    macro_rules! fills {
        ($($name:literal, $t:ty;)*) => {$(
            all.push(subject(
                &["fill"],
                $name,
                lengths::<Span<$t>>(),
                |_| (),
                |case, ()| (exact(vec![<$t>::beside(case.params as usize); case.len]),),
                |case, place, (), (out,)| fill(place.run(), <$t>::beside(case.params as usize), out.exact()),
            ));
        )*};
    }
    fills! { "u8", u8; "f64", f64; }
    let shorts = |subject: Subject| match subject.covers[0] {
        "generate" | "fill" | "scatter" => subject.shorts(&[Short::Any]),
        "transform" if subject.types.contains("Strided") || subject.types.contains("Permutation") => {
            subject.shorts(&[Short::Any])
        }
        _ => subject,
    };
    all.into_iter().map(shorts).collect()
}

/// Returns the old contents of the room for results.
fn untouched<T: Item>(case: &Case) -> Vec<T> {
    (0..case.len + gaps(case)).map(|i| T::beside(case.place + i)).collect()
}
