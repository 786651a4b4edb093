//! Products of sparse matrices and vectors.

use kernel_primitives::algorithms::{Csr, SpmvMethod, spmm, spmm_by, spmv, spmv_by, spmv_with};
use kernel_primitives::functor::{Axpby, PlusTimes};
use kernel_primitives::kernels::device::{CSR_THREADS, csr_tile_steps};
use kernel_primitives::{Result, Stream};

use crate::case::{Case, Lengths};
use crate::data::{floats, offsets, small};
use crate::items::Item;
use crate::subject::{Column, Inputs, Subject, equal, near, subject};

/// A matrix with a vector or several, on the host. The rows, the columns and the method depend on the parameters alone.
struct Product<T> {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    method: Option<SpmvMethod>,
    x: Vec<T>,
    vectors: usize,
    /// An item for each row.
    z: Vec<T>,
}

/// How many vectors a case has.
fn vectors(case: &Case) -> usize {
    1 + case.param(32).below(70)
}

impl<T: Item> Product<T> {
    fn of(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>) -> Self {
        Self::of_vectors(case, items, 1)
    }

    /// With as many vectors as the case says.
    fn of_several(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>) -> Self {
        Self::of_vectors(case, items, vectors(case))
    }

    fn of_vectors(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>, vectors: usize) -> Self {
        let (of, mut random) = (case.fixed(), case.param(31));
        let count = 1 + random.below(case.len + 3);
        let method = match random.below(8) {
            7 => None,
            6 => Some(SpmvMethod::MergePath),
            way => Some(SpmvMethod::Rows { lanes: 1 << way }),
        };
        // Entries before the first offset and after the last one would be of no row.
        let mut offsets: Vec<u32> = offsets(&of, of.len).iter().map(|&at| at as u32).collect();
        offsets[0] = 0;
        let end = *offsets.last().expect("there is one") as usize;
        let columns = (0..end).map(|_| random.below(count) as u32).collect();
        let z = items(case, 2, offsets.len() - 1);
        Self { offsets, columns, values: items(case, 0, end), method, x: items(case, 1, count * vectors), vectors, z }
    }

    /// The products of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = (T, T)> + '_ {
        self.row_by(row, 0)
    }

    /// The products of a row and a vector.
    fn row_by(&self, row: usize, vector: usize) -> impl Iterator<Item = (T, T)> + '_ {
        let entries = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        entries.map(move |entry| (self.values[entry], self.x[self.columns[entry] as usize * self.vectors + vector]))
    }

    /// All rows and vectors, in the order of the results.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.rows()).flat_map(|row| (0..self.vectors).map(move |vector| (row, vector)))
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl<T: Item> Inputs for Product<T> {
    type Device = (Csr<T>, Column<T>, Column<T>);

    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
        let shape = (self.rows(), self.x.len() / self.vectors);
        let mut matrix = Csr::new(stream, shape, &self.offsets, &self.columns, &self.values)?;
        if let Some(method) = self.method {
            matrix.set_method(method)?;
        }
        let column = |items| Column::upload(stream, items, start);
        Ok((matrix, column(&self.x)?, column(&self.z)?))
    }

    fn refill(&self, (matrix, x, z): &mut Self::Device) -> Result<()> {
        matrix.values_mut().copy_from(&self.values)?;
        x.refill(&self.x)?;
        z.refill(&self.z)
    }
}

pub fn subjects() -> Vec<Subject> {
    let lengths = || Lengths::near(&[CSR_THREADS, csr_tile_steps::<f64>(), 20 * csr_tile_steps::<f64>()]).most(40_000);
    let mut all = Vec::new();
    all.push(subject(
        &["spmv"],
        "f64, f64, u32",
        lengths(),
        |case| Product::of(case, small::<f64>),
        |_, product| {
            let sum = |row| product.row(row).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal((0..product.rows()).map(sum).collect()),)
        },
        |_, place, (a, x, _), (y,)| spmv(place.run(), a, x.get(), y.room()),
    ));
    all.push(subject(
        &["spmv"],
        "f32, f32, u32, reals",
        lengths(),
        |case| Product::of(case, floats),
        |_, product| {
            let sum = |row| {
                let (mut sum, mut size, mut count) = (0.0, 0.0, 1.0);
                for (a, x) in product.row(row) {
                    let term = f64::from(a) * f64::from(x);
                    (sum, size, count) = (sum + term, size + term.abs(), count + 1.0);
                }
                (sum, size * count * 2f64.powi(-24))
            };
            (near::<f32>((0..product.rows()).map(sum).collect()),)
        },
        |_, place, (a, x, _), (y,)| spmv(place.run(), a, x.get(), y.room()),
    ));
    all.push(subject(
        &["spmv_by"],
        "f64, f64, u32, PlusTimes, Axpby",
        lengths(),
        |case| Product::of(case, small::<f64>),
        |_, product| {
            let sum = |row| product.row(row).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal((0..product.rows()).map(|row| -2.0 * sum(row)).collect()),)
        },
        |_, place, (a, x, _), (y,)| {
            spmv_by(place.run(), a, x.get(), PlusTimes, Axpby { alpha: -2.0, beta: 0.0 }, y.room())
        },
    ));
    all.push(subject(
        &["spmv_with"],
        "f64, f64, u32, PlusTimes, Axpby",
        lengths(),
        |case| Product::of(case, small::<f64>),
        |_, product| {
            let sum = |row| product.row(row).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal((0..product.rows()).map(|row| 3.0 * product.z[row] - sum(row)).collect()),)
        },
        |_, place, (a, x, z), (y,)| {
            spmv_with(place.run(), a, x.get(), PlusTimes, Axpby { alpha: -1.0, beta: 3.0 }, z.get(), y.room())
        },
    ));
    let few = || Lengths::near(&[CSR_THREADS]).most(600);
    all.push(subject(
        &["spmm"],
        "f64, f64, u32",
        few(),
        |case| Product::of_several(case, small::<f64>),
        |_, product| {
            let sum =
                |(row, vector)| product.row_by(row, vector).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal(product.places().map(sum).collect()),)
        },
        |case, place, (a, x, _), (y,)| spmm(place.run(), a, x.get(), vectors(case), y.room()),
    ));
    all.push(subject(
        &["spmm_by"],
        "f64, f64, u32, PlusTimes, Axpby",
        few(),
        |case| Product::of_several(case, small::<f64>),
        |_, product| {
            let sum =
                |(row, vector)| product.row_by(row, vector).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal(product.places().map(|place| -2.0 * sum(place)).collect()),)
        },
        |case, place, (a, x, _), (y,)| {
            let axpby = Axpby { alpha: -2.0, beta: 0.0 };
            spmm_by(place.run(), a, x.get(), vectors(case), PlusTimes, axpby, y.room())
        },
    ));
    all
}
