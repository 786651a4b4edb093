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

/// What a kernel says of the shape of its launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchShape {
    /// The extents of every block, or zeros.
    pub(crate) threads: [u32; 3],
    /// The dimensions of blocks and grid: 1 or 3. A `bool` would leave bytes without a value, which the compiler copies to local memory one
    /// by one.
    pub(crate) dimensions: u32,
}

impl LaunchShape {
    /// The extents of every block, if the kernel says.
    #[inline(always)]
    pub(crate) const fn threads(self) -> Option<Dim3> {
        let [x, y, z] = self.threads;
        if x == 0 { None } else { Some(Dim3::new(x, y, z)) }
    }

    /// Whether blocks and grid have one dimension.
    #[inline(always)]
    pub(crate) const fn one_dimensional(self) -> bool {
        self.dimensions == 1
    }
}
