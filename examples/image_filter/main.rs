//! Filters of a picture: a blur, and edges by Sobel's operator. Each filter is one kernel that reads neighbours.
//!
//! ```text
//! cargo run --release --example image_filter [picture.png]
//! ```
//!
//! The picture is a rendered scene of shaded balls over a chequered floor. The PNG has the scene, the blurred scene and its edges side
//! by side.

#[path = "../common/picture.rs"]
mod picture;

use std::error::Error;

use kernel_primitives::Device;
use kernel_primitives::expr::{Boundary, Expr, Functions, Operand, Tensor, clamp, hypot, scalar, stencil};

use picture::Picture;

const HEIGHT: usize = 480;
const WIDTH: usize = 640;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;
    let scene = scene();
    let picture = Tensor::from_slice(&stream, [HEIGHT, WIDTH, 3], &scene)?;

    let blurred = Tensor::<u8>::uninit(&stream, [HEIGHT, WIDTH, 3])?;
    blurred.assign(to_bytes(blur(&picture)))?;

    // The edges are those of the brightness, which is computed on the way.
    let channel = |c: isize| picture.slice((.., .., c)).map(|channel| channel.cast::<f32>());
    let grey = channel(0)? * 0.299 + channel(1)? * 0.587 + channel(2)? * 0.114;
    let edges = Tensor::<u8>::uninit(&stream, [HEIGHT, WIDTH])?;
    edges.assign(to_bytes(sobel(grey)))?;

    let (blurred, edges) = (blurred.to_vec()?, edges.to_vec()?);
    check(&scene, &blurred, &edges);
    println!("{WIDTH} × {HEIGHT} pixels blurred, and their edges found; checked pixel by pixel");
    let side_by_side = Picture::from_fn(3 * WIDTH, HEIGHT, |column, row| {
        let place = row * WIDTH + column % WIDTH;
        let pixel = |picture: &[u8]| [picture[3 * place], picture[3 * place + 1], picture[3 * place + 2]];
        match column / WIDTH {
            0 => pixel(&scene),
            1 => pixel(&blurred),
            _ => [edges[place]; 3],
        }
    });
    side_by_side.write(std::env::args_os().nth(1), "image_filter.png")?;
    Ok(())
}

/// Blurs each channel with the weights 1 2 1 along both axes.
fn blur(picture: &Tensor<u8>) -> Expr<f32> {
    stencil(picture.cast::<f32>(), Boundary::Clamp, |n| {
        let mut sum = scalar(0.0f32);
        for (down, a) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
            for (right, b) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                sum = sum + n.at([down, right, 0]) * (a * b / 16.0);
            }
        }
        sum
    })
}

/// The length of the gradient.
fn sobel(grey: Expr<f32>) -> Expr<f32> {
    stencil(grey, Boundary::Clamp, |n| {
        let line = |from: [[isize; 2]; 3]| {
            let [a, b, c] = from.map(|by| n.at(by));
            a + b * 2.0 + c
        };
        let across = line([[-1, 1], [0, 1], [1, 1]]) - line([[-1, -1], [0, -1], [1, -1]]);
        let along = line([[1, -1], [1, 0], [1, 1]]) - line([[-1, -1], [-1, 0], [-1, 1]]);
        hypot(across, along)
    })
}

fn to_bytes(x: impl Operand<Elem = f32>) -> Expr<u8> {
    clamp(x, 0.0, 255.0).round().cast()
}

/// Computes the same by loops over the pixels, in `f64`. Results may differ by one, because of rounding.
fn check(scene: &[u8], blurred: &[u8], edges: &[u8]) {
    let at = |r: isize, c: isize, channel: usize| {
        let (r, c) = (r.clamp(0, HEIGHT as isize - 1) as usize, c.clamp(0, WIDTH as isize - 1) as usize);
        f64::from(scene[(r * WIDTH + c) * 3 + channel])
    };
    let grey = |r, c| 0.299 * at(r, c, 0) + 0.587 * at(r, c, 1) + 0.114 * at(r, c, 2);
    let near = |got: u8, expected: f64| (f64::from(got) - expected.min(255.0)).abs() < 0.51;
    for (place, &edge) in edges.iter().enumerate() {
        let (r, c) = ((place / WIDTH) as isize, (place % WIDTH) as isize);
        for channel in 0..3 {
            let row = |r| at(r, c - 1, channel) + 2.0 * at(r, c, channel) + at(r, c + 1, channel);
            let expected = (row(r - 1) + 2.0 * row(r) + row(r + 1)) / 16.0;
            assert!(near(blurred[place * 3 + channel], expected), "blur at {r}, {c}");
        }
        let column = |c| grey(r - 1, c) + 2.0 * grey(r, c) + grey(r + 1, c);
        let row = |r| grey(r, c - 1) + 2.0 * grey(r, c) + grey(r, c + 1);
        let expected = (column(c + 1) - column(c - 1)).hypot(row(r + 1) - row(r - 1));
        assert!(near(edge, expected), "edge at {r}, {c}: {edge}, not {expected}");
    }
}

/// Red, green and blue of each pixel. A pixel shows the nearest ball that the ray from the eye meets, or the floor, or the sky.
fn scene() -> Vec<u8> {
    type Point = [f64; 3];
    const BALLS: [(Point, f64, Point); 3] = [
        ([-1.2, 1.0, 5.0], 1.0, [0.9, 0.3, 0.2]),
        ([1.1, 0.8, 4.2], 0.8, [0.2, 0.5, 0.9]),
        ([0.1, 0.4, 3.0], 0.4, [0.9, 0.8, 0.3]),
    ];
    let dot = |a: Point, b: Point| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let unit = |a: Point| a.map(|x| x / dot(a, a).sqrt());
    let (eye, light) = ([0.0, 1.2, 0.0], unit([-0.5, 0.8, -0.4]));
    let hit = |from: Point, ray: Point, (centre, radius, _): &(Point, f64, Point)| {
        let to: Point = std::array::from_fn(|i| centre[i] - from[i]);
        let (along, beyond) = (dot(to, ray), dot(to, to) - radius * radius);
        let root = along * along - beyond;
        (root > 0.0 && along - root.sqrt() > 1e-6).then(|| along - root.sqrt())
    };
    let mut pixels = Vec::with_capacity(HEIGHT * WIDTH * 3);
    for place in 0..HEIGHT * WIDTH {
        let (r, c) = ((place / WIDTH) as f64, (place % WIDTH) as f64);
        let ray = unit([(c - WIDTH as f64 / 2.0) / 400.0, (HEIGHT as f64 / 2.0 - r) / 400.0 - 0.1, 1.0]);
        let ball =
            BALLS.iter().filter_map(|ball| Some((hit(eye, ray, ball)?, ball))).min_by(|a, b| a.0.total_cmp(&b.0));
        let floor = (ray[1] < 0.0).then(|| -eye[1] / ray[1]);
        let point = |along: f64| -> Point { std::array::from_fn(|i| eye[i] + along * ray[i]) };
        let lit = |at: Point, normal: Point, colour: Point| {
            let shadow = BALLS.iter().any(|ball| hit(at, light, ball).is_some());
            let shade = 0.25 + if shadow { 0.0 } else { 0.75 * dot(normal, light).max(0.0) };
            colour.map(|x| x * shade)
        };
        let colour = match (ball, floor) {
            (Some((along, ball)), _) => {
                let at = point(along);
                lit(at, std::array::from_fn(|i| (at[i] - ball.0[i]) / ball.1), ball.2)
            }
            (None, Some(along)) => {
                let at = point(along);
                let dark = (at[0].floor() + at[2].floor()).rem_euclid(2.0) == 0.0;
                lit(at, [0.0, 1.0, 0.0], if dark { [0.3; 3] } else { [0.9; 3] })
            }
            (None, None) => [0.5, 0.7, 0.9].map(|x| x + 0.4 * ray[1]),
        };
        pixels.extend(colour.map(|x| (x.clamp(0.0, 1.0) * 255.0) as u8));
    }
    pixels
}
