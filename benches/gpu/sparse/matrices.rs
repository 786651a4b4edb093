//! The matrices that products are measured with: of grids, random ones, and patterns like those of real matrices, from seeds.

/// Where a matrix has entries, and their values.
pub(super) struct Matrix {
    pub(super) columns: usize,
    pub(super) offsets: Vec<u32>,
    pub(super) indices: Vec<u32>,
    /// The value of an entry by its row, its column and its number.
    value: fn(usize, usize, usize) -> f64,
}

/// A small whole number by an entry's number.
fn whole(_: usize, _: usize, entry: usize) -> f64 {
    (hash(!entry) % 17) as f64 - 8.0
}

impl Matrix {
    pub(super) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The values in the order of the entries.
    pub(super) fn values<T>(&self, of: impl Fn(f64) -> T) -> Vec<T> {
        let entries = |row: usize| (self.offsets[row]..self.offsets[row + 1]).map(move |entry| (row, entry as usize));
        let all = (0..self.rows()).flat_map(entries);
        all.map(|(row, entry)| of((self.value)(row, self.indices[entry] as usize, entry))).collect()
    }

    /// A square matrix of these rows, of which `row` adds the columns.
    fn of_rows(rows: usize, value: fn(usize, usize, usize) -> f64, mut row: impl FnMut(usize, &mut Vec<u32>)) -> Self {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for at in 0..rows {
            row(at, &mut indices);
            offsets.push(indices.len().try_into().expect("no more entries than 32 bits count"));
        }
        Self { columns: rows, offsets, indices, value }
    }

    /// Poisson's equation on a cube of `n` points along an edge, by seven-point differences: row by row, six times a point less its
    /// neighbours.
    pub(super) fn poisson(n: usize) -> Self {
        let value = |row: usize, column: usize, _: usize| if row == column { 6.0 } else { -1.0 };
        Self::of_rows(n * n * n, value, |row, indices| {
            let (i, j, k) = (row / (n * n), row / n % n, row % n);
            let neighbours = [
                (i > 0, row.wrapping_sub(n * n)),
                (j > 0, row.wrapping_sub(n)),
                (k > 0, row.wrapping_sub(1)),
                (true, row),
                (k + 1 < n, row + 1),
                (j + 1 < n, row + n),
                (i + 1 < n, row + n * n),
            ];
            indices.extend(neighbours.iter().filter(|(inside, _)| *inside).map(|&(_, column)| column as u32));
        })
    }

    /// A square matrix with rows of these lengths and columns at random.
    pub(super) fn random(rows: usize, length: impl Fn(usize) -> usize) -> Self {
        Self::of_rows(rows, whole, |row, indices| {
            let begin = indices.len();
            indices.extend((0..length(row)).map(|entry| (hash(begin + entry) % rows as u64) as u32));
        })
    }

    /// 2^20 rows, of which the one of rank `r` has 7.7 million by `r` entries, or as many as there are columns: some 98 million in all. The
    /// ranks lie scattered.
    pub(super) fn zipf() -> Self {
        const ROWS: usize = 1 << 20;
        Self::random(ROWS, |row| {
            let rank = row * 0x9_e377 % ROWS + 1;
            (7_700_000 / rank).min(ROWS)
        })
    }

    /// Bilinear elements on a square of `2^log2` points along an edge, nine neighbours a point, whose numbers are at random, as a mesh
    /// generator may leave them.
    pub(super) fn mesh(log2: u32) -> Self {
        let n = 1usize << log2;
        let value = |row: usize, column: usize, _: usize| if row == column { 8.0 } else { -1.0 };
        Self::of_rows(n * n, value, |row, indices| {
            let at = unscrambled(row, 2 * log2);
            let (i, j, begin) = (at >> log2, at & (n - 1), indices.len());
            for i in i.saturating_sub(1)..(i + 2).min(n) {
                for j in j.saturating_sub(1)..(j + 2).min(n) {
                    indices.push(scrambled((i << log2) | j, 2 * log2) as u32);
                }
            }
            indices[begin..].sort_unstable();
        })
    }

    /// 5 to 44 entries a row, up to 2000 columns away from the diagonal.
    pub(super) fn band(rows: usize) -> Self {
        const REACH: usize = 2000;
        Self::of_rows(rows, whole, |row, indices| {
            let (first, begin) = (row.saturating_sub(REACH), indices.len());
            let width = (row + REACH + 1).min(rows) - first;
            let mut columns: Vec<u32> = (0..5 + (hash(row) % 40) as usize)
                .map(|entry| (first + (hash(begin + entry) % width as u64) as usize) as u32)
                .collect();
            columns.sort_unstable();
            indices.extend(columns);
        })
    }

    /// A circuit: a node and two to six others in a row, most of them near, and 32 rows of the supply, with an eighth of all nodes each.
    pub(super) fn circuit(rows: usize) -> Self {
        let value =
            |row: usize, column: usize, entry: usize| if row == column { 9.0 } else { -1.0 - (hash(entry) % 2) as f64 };
        Self::of_rows(rows, value, |row, indices| {
            let begin = indices.len();
            if row % (rows / 32) == 7 {
                indices.extend((0..rows / 8).map(|entry| (8 * entry + (hash(begin + entry) % 8) as usize) as u32));
                return;
            }
            indices.push(row as u32);
            for entry in 0..2 + hash(row) % 5 {
                let bits = hash(begin + 1 + entry as usize);
                let near = (row + 1 + (bits >> 32) as usize % 64) % rows;
                indices.push(if bits.is_multiple_of(8) { (bits >> 20) as usize % rows } else { near } as u32);
            }
        })
    }

    /// A graph of the web by R-MAT: `2^log2` vertices and so many edges, each in a quarter of a quarter and so on, with the probabilities 0.57,
    /// 0.19, 0.19 and 0.05 (Chakrabarti, Zhan and Faloutsos, 2004).
    pub(super) fn web(log2: u32, edges: usize) -> Self {
        let mut by_row: Vec<Vec<u32>> = vec![Vec::new(); 1 << log2];
        for edge in 0..edges {
            let (mut row, mut column) = (0usize, 0usize);
            for level in 0..log2 {
                let hundredth = hash(edge * 64 + level as usize) % 100;
                (row, column) = match hundredth {
                    0..57 => (2 * row, 2 * column),
                    57..76 => (2 * row, 2 * column + 1),
                    76..95 => (2 * row + 1, 2 * column),
                    _ => (2 * row + 1, 2 * column + 1),
                };
            }
            by_row[row].push(column as u32);
        }
        Self::of_rows(1 << log2, whole, |row, indices| {
            by_row[row].sort_unstable();
            indices.append(&mut by_row[row]);
        })
    }

    /// Elasticity on a cube of `n` points along an edge: three displacements a point, and 27 neighbours, so that rows and columns come in blocks
    /// of three.
    pub(super) fn blocks(n: usize) -> Self {
        let value = |row: usize, column: usize, entry: usize| {
            if row == column { 81.0 } else { -1.0 - (hash(entry) % 3) as f64 }
        };
        Self::of_rows(3 * n * n * n, value, |row, indices| {
            let node = row / 3;
            let near = |at: usize| at.saturating_sub(1)..(at + 2).min(n);
            for i in near(node / (n * n)) {
                for j in near(node / n % n) {
                    for k in near(node % n) {
                        let first = 3 * ((i * n + j) * n + k) as u32;
                        indices.extend(first..first + 3);
                    }
                }
            }
        })
    }
}

/// Random bits by a number (splitmix64).
pub(super) fn hash(number: usize) -> u64 {
    let z = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An odd factor, and its inverse modulo 2^64.
const FACTOR: usize = 0x9e37_79b9_7f4a_7c15;
const INVERSE: usize = inverse(FACTOR);

/// By Newton's steps, each of which doubles the bits that are right, beginning with three.
const fn inverse(odd: usize) -> usize {
    let mut found = odd;
    let mut right = 3;
    while right < usize::BITS {
        found = found.wrapping_mul(2usize.wrapping_sub(odd.wrapping_mul(found)));
        right *= 2;
    }
    found
}

/// A permutation of the numbers of so many bits, an even number of them.
fn scrambled(mut number: usize, bits: u32) -> usize {
    for _ in 0..3 {
        number = number.wrapping_mul(FACTOR) & ((1 << bits) - 1);
        number ^= number >> (bits / 2);
    }
    number
}

/// Its inverse.
fn unscrambled(mut number: usize, bits: u32) -> usize {
    for _ in 0..3 {
        number ^= number >> (bits / 2);
        number = number.wrapping_mul(INVERSE) & ((1 << bits) - 1);
    }
    number
}
