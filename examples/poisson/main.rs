//! Poisson's equation, by conjugate gradients. The sparse matrix is from a Matrix Market file, and all steps run on the device.
//!
//! ```text
//! cargo run --release --example poisson [matrix.mtx]
//! ```
//!
//! The matrix that comes with the example is the Laplacian on an L-shaped region. Your own file must have a symmetric positive definite
//! matrix of real or integer values. Every source is 1.
//!
//! A step takes one sparse product, two scalar products and two kernels that update vectors. A graph captures two steps. The host reads the
//! residual from time to time. At the end, the host computes the residual again from the triplets of the file.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use kernel_primitives::algorithms::{Coo, Csr, Run, Workspace};
use kernel_primitives::expr::{Tensor, assign_all, dot, gt, scalar, select};
use kernel_primitives::functor::Add;
use kernel_primitives::{Device, Stream};

/// The file says how it was made. It is part of the program, so that the program runs anywhere.
const L_SHAPE: &[u8] = include_bytes!("l_shape.mtx");

/// The norm of the residual at the end, divided by that of the right-hand side.
const TOLERANCE: f64 = 1e-10;

/// The number of steps after which the host reads the residual again. It must be even.
const STEPS: usize = 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("poisson: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let device = Device::auto()?;
    println!("device  {device}: {}", device.reason());
    let stream = device.stream()?;

    let triplets = match std::env::args_os().nth(1) {
        Some(path) => read(Path::new(&path))?,
        None => Coo::read_matrix_market(L_SHAPE)?,
    };
    let a = Csr::from_coo(&stream, &triplets, Add)?;
    if a.rows() == 0 {
        return Err("the matrix has no rows".into());
    }
    println!("matrix  {} × {}, {} entries, products by {:?}", a.rows(), a.columns(), a.entries(), a.method());

    let sources = vec![1.0; a.rows()];
    let solution = solve(&stream, &a, &sources)?;
    let mut residual = sources.clone();
    for (row, column, value) in triplets.iter() {
        residual[row] -= value * solution[column];
    }
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let direct = norm(&residual) / norm(&sources);
    println!("computed anew on the host, it is {direct:.1e} of the sources");
    if direct.is_nan() || direct >= 10.0 * TOLERANCE {
        return Err(format!("the solution leaves {direct:e} of the sources").into());
    }
    println!("largest value {:.4}", solution.iter().copied().fold(f64::MIN, f64::max));
    Ok(())
}

/// Reads a Matrix Market file. An error names the file.
fn read(path: &Path) -> Result<Coo<f64>, Box<dyn Error>> {
    let named = |error: &dyn Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    Ok(Coo::read_matrix_market(file).map_err(|error| named(&error))?)
}

/// Makes steps until the residual is small.
fn solve(stream: &Stream, a: &Csr<f64>, b: &[f64]) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut solver = Solver::new(stream, a, b)?;
    let goal = TOLERANCE * solver.residual()?;
    // The first steps take the memory that the graph needs.
    solver.two_steps(stream)?;
    let graph = stream.capture(|captured| solver.two_steps(captured))?;
    let mut steps = 2;
    let before = stream.device().counters();
    let residual = loop {
        let residual = solver.residual()?;
        if residual <= goal {
            break residual;
        }
        let energy = solver.energy.item()?;
        if energy.is_nan() || energy <= 0.0 {
            let reason = "the matrix is not positive definite, or its numbers are not finite";
            return Err(format!("{reason}: a direction has the energy {energy:e}").into());
        }
        if steps > 10 * a.rows() {
            return Err(format!("after {steps} steps the residual is {residual:e}").into());
        }
        for _ in 0..STEPS / 2 {
            graph.launch(stream)?;
        }
        steps += STEPS;
    };
    let graphs = stream.device().counters().since(before).graph_launches;
    println!("{steps} steps, in {graphs} launches of a graph of two; the residual is {residual:.1e}");
    Ok(solver.x.to_vec()?)
}

/// Conjugate gradients for `A x = b`, from `x = 0`.
///
/// Hestenes and Stiefel, *Methods of conjugate gradients for solving linear systems*, 1952.
struct Solver<'a> {
    a: &'a Csr<f64>,
    x: Tensor<f64>,
    /// The residual, `b - A x`.
    r: Tensor<f64>,
    /// The direction.
    p: Tensor<f64>,
    /// `A p`.
    q: Tensor<f64>,
    /// The squares of the residual's norm before and after a step, in turn.
    squares: [Tensor<f64>; 2],
    /// `p · A p`.
    energy: Tensor<f64>,
    workspace: Workspace,
}

impl<'a> Solver<'a> {
    fn new(stream: &Stream, a: &'a Csr<f64>, b: &[f64]) -> kernel_primitives::Result<Self> {
        let vector = |values| Tensor::from_slice(stream, b.len(), values);
        let number = || Tensor::zeros(stream, []);
        let solver = Self {
            a,
            x: Tensor::zeros(stream, b.len())?,
            r: vector(b)?,
            p: vector(b)?,
            q: Tensor::zeros(stream, b.len())?,
            squares: [number()?, number()?],
            energy: number()?,
            workspace: Workspace::new(),
        };
        dot(&solver.r, &solver.r).assign_to(&solver.squares[0])?;
        Ok(solver)
    }

    /// Makes two steps, after which the squares are in their original places.
    fn two_steps(&mut self, stream: &Stream) -> kernel_primitives::Result<()> {
        self.step(stream, 0)?;
        self.step(stream, 1)
    }

    fn step(&mut self, stream: &Stream, turn: usize) -> kernel_primitives::Result<()> {
        let [x, r, p, q] = [&self.x, &self.r, &self.p, &self.q].map(|tensor| tensor.on(stream));
        let [square, next, energy] =
            [&self.squares[turn], &self.squares[1 - turn], &self.energy].map(|tensor| tensor.on(stream));
        (self.a * &p).assign_on(Run::on(stream).with(&mut self.workspace), &q)?;
        dot(&p, &q).assign_to(&energy)?;
        // A direction without energy changes nothing and stays, so that the host sees it: all directions of a positive definite matrix
        // have energy. After an exact solution, the direction is zero.
        let moves = || gt(&energy, scalar(0.0));
        let length = || select(moves(), &square / &energy, scalar(0.0));
        assign_all([x.to(&x + length() * &p), r.to(&r - length() * &q)])?;
        dot(&r, &r).assign_to(&next)?;
        let share = select(gt(&square, scalar(0.0)), &next / &square, scalar(0.0));
        p.assign(select(moves(), &r + share * &p, &p))
    }

    /// The residual's norm.
    fn residual(&self) -> kernel_primitives::Result<f64> {
        Ok(self.squares[0].item()?.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Solves for sources of 1.
    fn solution(matrix: &str) -> Result<Vec<f64>, String> {
        let stream = Device::emulator().stream().expect("a stream");
        let text = format!("%%MatrixMarket matrix coordinate real symmetric\n{matrix}");
        let triplets = Coo::<f64>::read_matrix_market(text.as_bytes()).expect("a matrix");
        let a = Csr::from_coo(&stream, &triplets, Add).expect("a matrix");
        solve(&stream, &a, &vec![1.0; a.rows()]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_an_error() {
        let solved = solution("2 2 3\n1 1 2\n2 1 1\n2 2 2\n").expect("this one is");
        assert!(solved.iter().all(|x| (x - 1.0 / 3.0).abs() < 1e-9), "{solved:?}");
        let indefinite = "2 2 3\n1 1 -2\n2 1 1\n2 2 1\n";
        let singular = "2 2 3\n1 1 1\n2 1 -1\n2 2 1\n";
        for matrix in [indefinite, singular, "1 1 1\n1 1 -1\n", "1 1 1\n1 1 nan\n"] {
            let error = solution(matrix).expect_err(matrix);
            assert!(error.contains("not positive definite"), "{error}");
        }
    }

    #[test]
    fn an_error_of_a_file_names_it() {
        let error = read(Path::new("no.mtx")).expect_err("there is no such file").to_string();
        assert!(error.starts_with("no.mtx: "), "{error}");
    }
}
