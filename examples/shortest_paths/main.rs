//! Shortest paths over a landscape, by products of a sparse matrix and a vector that take minima for sums and sums for products.
//!
//! ```text
//! cargo run --release --example shortest_paths [picture.png]
//! ```
//!
//! A step from a field to its neighbour costs what the ground of the neighbour costs. The matrix has a row for each field, with the costs
//! of the steps to it. Its product with the distances so far, by minimum and sum, gives the distances of paths that are one step longer. An
//! epilogue keeps the old distance if that is smaller (Bellman and Ford). The products run until no distance changes. Dijkstra's algorithm
//! on the host checks every distance.
//!
//! The PNG shows the ground, the distances, and the paths from three fields at the edge to the corner where all paths begin.

#[path = "../common/picture.rs"]
mod picture;

mod kernels;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;

use kernel_primitives::algorithms::{Coo, Csr, Run, Workspace, spmv_with};
use kernel_primitives::expr::{Reductions, Tensor, ne};
use kernel_primitives::functor::Add;
use kernel_primitives::{Device, Result, Stream};

use kernels::{KeepSmaller, MinPlus};
use picture::{Picture, heat_colour};

/// Fields along an edge.
const N: usize = 240;

/// The number of products after which the host checks whether a distance has changed.
const STEPS: usize = 32;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;

    let ground = ground();
    let mut steps = Coo::<f32>::new((N * N, N * N))?;
    for (field, &cost) in ground.iter().enumerate() {
        for from in beside(field) {
            steps.push(field, from, cost as f32)?;
        }
    }
    let steps = Csr::from_coo(&stream, &steps, Add)?;
    println!(
        "matrix  {} × {}, {} entries, products by {:?}",
        steps.rows(),
        steps.columns(),
        steps.entries(),
        steps.method()
    );

    let (distances, products) = distances(&stream, &steps)?;
    let expected = dijkstra(&ground);
    let farthest = distances.iter().copied().fold(0.0, f32::max);
    println!("{products} products; the farthest field is {farthest} away");
    assert!(distances.iter().zip(&expected).all(|(found, &expected)| *found == expected as f32));

    let mut on_way = vec![false; N * N];
    for end in [N / 3 * N + N - 1, N * N - 1, N * N - N + N / 3] {
        let mut field = end;
        while field != 0 {
            on_way[field] = true;
            field = beside(field).min_by_key(|&beside| expected[beside]).expect("every field has others beside it");
        }
    }
    Picture::from_fn(2 * N, N, |column, row| {
        let field = row * N + column % N;
        match (column < N, on_way[field]) {
            (true, _) => [255 - (ground[field] * 25) as u8; 3],
            (false, true) => [64, 255, 160],
            (false, false) => heat_colour(f64::from(distances[field] / farthest)),
        }
    })
    .write(std::env::args_os().nth(1), "shortest_paths.png")?;
    Ok(())
}

/// Returns the distances from field 0, and the number of products.
fn distances(stream: &Stream, steps: &Csr<f32>) -> Result<(Vec<f32>, usize)> {
    let mut start = vec![f32::INFINITY; N * N];
    start[0] = 0.0;
    let mut now = Tensor::from_slice(stream, N * N, &start)?;
    let mut then = Tensor::from_slice(stream, N * N, &start)?;
    let mut workspace = Workspace::new();
    let mut products = 0;
    loop {
        for _ in 0..STEPS {
            let old = now.as_slice().expect("its elements lie in a row");
            let new = then.as_slice_mut().expect("it has no other view");
            let run = Run::on(stream).with(&mut workspace);
            spmv_with(run, steps, old, MinPlus::default(), KeepSmaller, old, new)?;
            (now, then) = (then, now);
        }
        products += STEPS;
        if !ne(&now, &then).any().item()? {
            return Ok((now.to_vec()?, products));
        }
    }
}

/// The neighbours of a field.
fn beside(field: usize) -> impl Iterator<Item = usize> {
    let (row, column) = (field / N, field % N);
    [
        (row > 0).then(|| field - N),
        (row + 1 < N).then(|| field + N),
        (column > 0).then(|| field - 1),
        (column + 1 < N).then(|| field + 1),
    ]
    .into_iter()
    .flatten()
}

/// The cost of the ground of each field, from 1 to 9: hills of several sizes.
fn ground() -> Vec<u32> {
    let wave =
        |row: f64, column: f64, size: f64| (row / size).sin() * (column / size + (row / size / 3.0).cos() * 2.0).cos();
    (0..N * N)
        .map(|field| {
            let (row, column) = ((field / N) as f64, (field % N) as f64);
            let height =
                wave(row, column, 17.0) + 0.5 * wave(column + 40.0, row, 7.0) + 0.25 * wave(row, column + 9.0, 3.0);
            (5.0 + 2.6 * height).round().clamp(1.0, 9.0) as u32
        })
        .collect()
}

/// The distances from field 0, by Dijkstra's algorithm.
fn dijkstra(ground: &[u32]) -> Vec<u32> {
    let mut distances = vec![u32::MAX; N * N];
    let mut queue = BinaryHeap::from([Reverse((0, 0))]);
    while let Some(Reverse((distance, field))) = queue.pop() {
        if distance < distances[field] {
            distances[field] = distance;
            queue.extend(beside(field).map(|next| Reverse((distance + ground[next], next))));
        }
    }
    distances
}
