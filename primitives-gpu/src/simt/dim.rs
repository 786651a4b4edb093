//! Extents and indices in three dimensions.

/// Three extents or a three-dimensional index, `x` fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Dim3 {
    /// Fastest dimension.
    pub x: u32,
    /// Second dimension.
    pub y: u32,
    /// Slowest dimension.
    pub z: u32,
}

impl Dim3 {
    /// Extents in all three dimensions.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The number of points: `x * y * z`.
    pub const fn count(self) -> u64 {
        (self.x as u64 * self.y as u64).saturating_mul(self.z as u64)
    }

    /// The linear rank of `index` in extents `self`, `x` fastest.
    #[inline(always)]
    pub const fn rank_of(self, index: Dim3) -> u64 {
        index.x as u64 + self.x as u64 * (index.y as u64 + self.y as u64 * index.z as u64)
    }

    /// The index whose linear rank in extents `self` is `rank`; the inverse of [`Dim3::rank_of`].
    pub const fn at(self, rank: u64) -> Dim3 {
        let (x, y) = (self.x as u64, self.y as u64);
        Dim3::new((rank % x) as u32, (rank / x % y) as u32, (rank / x / y) as u32)
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self::new(x, y, z)
    }
}

impl core::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}
