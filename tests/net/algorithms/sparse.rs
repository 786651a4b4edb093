//! Products of sparse matrices and vectors.

use std::marker::PhantomData;

use kernel_primitives::algorithms::{
    Csr, CsrIndex, Gather, Sell, SpmvMethod, spmm, spmm_by, spmm_with, spmv, spmv_by, spmv_with,
};
use kernel_primitives::functor::{Axpby, Overwrite, PlusTimes};
use kernel_primitives::kernels::device::{CSR_CHUNK, CSR_SHARE, CSR_THREADS, csr_tile_steps};
use kernel_primitives::{Complex, Result, Stream, bf16};

use crate::case::{Case, Lengths};
use crate::data::{floats, items, offsets, small};
use crate::items::Item;
use crate::kernels::MIN_PLUS;
use crate::subject::{Column, Inputs, Subject, equal, near, subject};

/// A matrix with a vector or several on the host. On the device, its indices have type `I`. The rows, the columns and the method depend
/// only on the parameters.
struct Product<T, I = u32> {
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    method: Option<SpmvMethod>,
    x: Vec<T>,
    vectors: usize,
    /// There is an item for each row.
    z: Vec<T>,
    indices: PhantomData<I>,
}

/// Returns the number of vectors of a case.
fn vectors(case: &Case) -> usize {
    1 + case.param(32).below(70)
}

impl<T: Item, I> Product<T, I> {
    fn of(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>) -> Self {
        Self::of_vectors(case, items, 1)
    }

    /// Makes a product with the case's number of vectors.
    fn of_several(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>) -> Self {
        Self::of_vectors(case, items, vectors(case))
    }

    fn of_vectors(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>, vectors: usize) -> Self {
        let (of, mut random) = (case.fixed(), case.param(31));
        let count = 1 + random.below(case.len + 3);
        let drawn = match random.below(10) {
            9 => None,
            8 => Some(SpmvMethod::Window),
            7 => Some(SpmvMethod::ByLength),
            6 => Some(SpmvMethod::MergePath),
            way => Some(SpmvMethod::Rows { lanes: 1 << way }),
        };
        let method = case.usual([None, Some(SpmvMethod::MergePath)]).unwrap_or(drawn);
        // Entries before the first offset and after the last one would not be in a row.
        let mut offsets: Vec<u32> = offsets(&of, of.len).iter().map(|&at| at as u32).collect();
        offsets[0] = 0;
        let end = *offsets.last().expect("there is one") as usize;
        let columns = (0..end).map(|_| random.below(count) as u32).collect();
        let z = items(case, 2, offsets.len() - 1);
        let (values, x) = (items(case, 0, end), items(case, 1, count * vectors));
        Self { offsets, columns, values, method, x, vectors, z, indices: PhantomData }
    }

    /// Returns the products of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = (T, T)> + '_ {
        self.row_by(row, 0)
    }

    /// Returns the products of a row and a vector.
    fn row_by(&self, row: usize, vector: usize) -> impl Iterator<Item = (T, T)> + '_ {
        let entries = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        entries.map(move |entry| (self.values[entry], self.x[self.columns[entry] as usize * self.vectors + vector]))
    }

    /// Returns all rows and vectors, in the order of the results.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.rows()).flat_map(|row| (0..self.vectors).map(move |vector| (row, vector)))
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl<T: Item, I: CsrIndex + From<u32>> Product<T, I> {
    fn matrix(&self, stream: &Stream) -> Result<Csr<T, I>> {
        let shape = (self.rows(), self.x.len() / self.vectors);
        let [offsets, columns] = [&self.offsets, &self.columns].map(|all| all.iter().map(|&n| n.into()).collect());
        let (offsets, columns): (Vec<I>, Vec<I>) = (offsets, columns);
        let mut matrix = Csr::new(stream, shape, &offsets, &columns, &self.values)?;
        if let Some(method) = self.method {
            matrix.set_method(method)?;
        }
        Ok(matrix)
    }
}

impl<T: Item, I: CsrIndex + From<u32>> Inputs for Product<T, I> {
    type Device = (Csr<T, I>, Column<T>, Column<T>);

    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
        let matrix = self.matrix(stream)?;
        let column = |items| Column::upload(stream, items, start);
        Ok((matrix, column(&self.x)?, column(&self.z)?))
    }

    fn refill(&self, (matrix, x, z): &mut Self::Device) -> Result<()> {
        matrix.values_mut().copy_from(&self.values)?;
        x.refill(&self.x)?;
        z.refill(&self.z)
    }
}

/// The same product, with the matrix in slices. Its values depend only on the parameters.
struct InSlices<T> {
    product: Product<T>,
    /// The number of rows of a window in which rows are sorted by length.
    window: usize,
}

impl<T: Item> InSlices<T> {
    fn of(case: &Case, items: impl Fn(&Case, u64, usize) -> Vec<T>) -> Self {
        let fixed = case.fixed();
        let of = |case: &Case, column: u64, len: usize| items(if column == 0 { &fixed } else { case }, column, len);
        Self { product: Product::of(case, of), window: case.param(33).one_of(&[0, 32, 100, 1 << 20]) }
    }
}

impl<T: Item + Gather<u32, T, ()>> Inputs for InSlices<T> {
    type Device = (Sell<T>, Column<T>, Column<T>);

    fn upload(&self, stream: &Stream, start: usize) -> Result<Self::Device> {
        let matrix = Sell::from_csr(stream, &self.product.matrix(stream)?, self.window)?;
        let column = |items| Column::upload(stream, items, start);
        Ok((matrix, column(&self.product.x)?, column(&self.product.z)?))
    }

    fn refill(&self, (_, x, z): &mut Self::Device) -> Result<()> {
        x.refill(&self.product.x)?;
        z.refill(&self.product.z)
    }
}

pub fn subjects() -> Vec<Subject> {
    let tile = csr_tile_steps::<f64>();
    let lengths = || Lengths::near(&[CSR_THREADS, CSR_CHUNK, tile, CSR_SHARE, 18 * tile]).most(40_000);
    let mut all = Vec::new();
    all.extend(types(&lengths));
    all.push(several_with());
    all.push(subject(
        &["spmv"],
        "f64, f64, u32",
        lengths(),
        |case| Product::<f64>::of(case, small),
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
        |case| Product::<f32>::of(case, floats),
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
        |case| Product::<f64>::of(case, small),
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
        |case| Product::<f64>::of(case, small),
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
        |case| Product::<f64>::of_several(case, small),
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
        |case| Product::<f64>::of_several(case, small),
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
    // Products with several vectors, and those in slices, take no memory.
    let of_tiles = |subject: Subject| {
        let is_product_of_rows = subject.covers[0].starts_with("spmv") && !subject.types.contains("slices");
        if is_product_of_rows { subject.takes_memory(has_tiles) } else { subject }
    };
    all.into_iter().map(of_tiles).collect()
}

/// Returns whether the matrix has more than one tile along its merge path, and may be multiplied by these tiles.
fn has_tiles(case: &Case) -> bool {
    let Product { offsets, columns, method, .. } = Product::<f64>::of(case, small);
    let by_path = matches!(method, None | Some(SpmvMethod::MergePath));
    by_path && offsets.len() - 1 + columns.len() > csr_tile_steps::<f64>()
}

/// There are several vectors, and others that are added.
fn several_with() -> Subject {
    /// Makes a product with one added item for each result.
    fn product(case: &Case) -> Product<f64> {
        let product = Product::of_several(case, small::<f64>);
        let z = small(case, 2, product.rows() * product.vectors);
        Product { z, ..product }
    }
    subject(
        &["spmm_with"],
        "f64, f64, u32, PlusTimes, Axpby",
        Lengths::near(&[CSR_THREADS]).most(600),
        product,
        |_, product| {
            let sum =
                |(row, vector)| product.row_by(row, vector).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            let results = product.places().zip(&product.z).map(|(place, z)| 3.0 * z - sum(place));
            (equal(results.collect()),)
        },
        |case, place, (a, x, z), (y,)| {
            let axpby = Axpby { alpha: -1.0, beta: 3.0 };
            spmm_with(place.run(), a, x.get(), vectors(case), PlusTimes, axpby, z.get(), y.room())
        },
    )
}

/// Returns subjects for other formats, types and operators.
fn types(lengths: &impl Fn() -> Lengths) -> Vec<Subject> {
    let mut all = Vec::new();
    all.push(subject(
        &["spmv_with"],
        "f64, f64, u32, PlusTimes, Axpby, in slices",
        lengths(),
        |case| InSlices::of(case, small::<f64>),
        |_, InSlices { product, .. }| {
            let sum = |row| product.row(row).map(|(a, x)| a * x).fold(0.0, |sum, product| sum + product);
            (equal((0..product.rows()).map(|row| 3.0 * product.z[row] - sum(row)).collect()),)
        },
        |_, place, (a, x, z), (y,)| {
            spmv_with(place.run(), a, x.get(), PlusTimes, Axpby { alpha: -1.0, beta: 3.0 }, z.get(), y.room())
        },
    ));
    all.push(subject(
        &["spmv"],
        "bf16, bf16, u64",
        lengths(),
        |case| Product::<bf16, u64>::of(case, small),
        |_, product| {
            let terms = |row| product.row(row).map(|(a, x)| a.to_f32() * x.to_f32());
            (equal((0..product.rows()).map(|row| terms(row).fold(0.0f32, |sum, term| sum + term)).collect()),)
        },
        |_, place, (a, x, _), (y,)| spmv(place.run(), a, x.get(), y.room()),
    ));
    all.push(subject(
        &["spmv"],
        "Complex<f32>, Complex<f32>, u32",
        lengths(),
        |case| Product::<Complex<f32>>::of(case, small),
        |_, product| {
            let terms = |row| product.row(row).map(|(a, x)| a * x);
            let sum = |row| terms(row).fold(Complex::new(0.0f32, 0.0), |sum, term| sum + term);
            (equal((0..product.rows()).map(sum).collect()),)
        },
        |_, place, (a, x, _), (y,)| spmv(place.run(), a, x.get(), y.room()),
    ));
    // These are the shortest paths with one more edge. Integers wrap.
    let shortest = |product: &Product<i32>| {
        let ways = |row| product.row(row).map(|(edge, start): (i32, i32)| edge.wrapping_add(start));
        equal((0..product.rows()).map(|row| ways(row).fold(i32::MAX, i32::min)).collect::<Vec<i32>>())
    };
    all.push(subject(
        &["spmv_by"],
        "i32, i32, u32, Semiring<Min, Add>, Overwrite",
        lengths(),
        |case| Product::<i32>::of(case, items),
        move |_, product| (shortest(product),),
        |_, place, (a, x, _), (y,)| spmv_by(place.run(), a, x.get(), MIN_PLUS, Overwrite, y.room()),
    ));
    all.push(subject(
        &["spmv_by"],
        "i32, i32, u32, Semiring<Min, Add>, Overwrite, in slices",
        lengths(),
        |case| InSlices::<i32>::of(case, items),
        move |_, InSlices { product, .. }| (shortest(product),),
        |_, place, (a, x, _), (y,)| spmv_by(place.run(), a, x.get(), MIN_PLUS, Overwrite, y.room()),
    ));
    all
}
