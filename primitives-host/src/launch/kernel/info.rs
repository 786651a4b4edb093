//! What the host knows of a kernel: its names, its code by architecture, its layout.

use std::marker::PhantomData;
use std::panic::Location;

use primitives_gpu::Dim3;
use primitives_gpu::simt::Place;
use primitives_gpu::view::{LaunchBounds, SharedParam};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::Device;
#[cfg(any(feature = "cuda", test))]
use crate::{Error, Result};

/// A kernel's code for an architecture: compute capability times ten (`90`), PTX, and a cubin if one was made.
pub type Image = (u32, &'static str, Option<&'static [u8]>);

/// A kernel's code by architecture.
pub type Images = &'static [Image];

/// Where a kernel's code is.
#[derive(Clone, Copy)]
enum Code {
    Here(Images),
    Of(fn() -> Images),
}

/// What the host knows of a kernel, or of one instantiation of a generic one: its names and its code.
///
/// Every kernel has it, as `saxpy::info()` or `reduce::<f32, Add, 4>::info()`:
///
/// ```
/// use kernel_primitives::kernels::map_binary;
/// use kernel_primitives::{Device, functor::Add};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let info = map_binary::<f32, f32, Add, 4>::info();
/// assert_eq!(info.name(), "kernel_primitives::kernels::elementwise::map_binary::<f32, f32, Add, 4>");
/// // In a build with the feature `cuda`: the code for an H100 or H200, of a machine without a GPU too.
/// if let Some(ptx) = info.ptx_for(90) {
///     println!("{ptx}");
/// }
/// // The code for the GPU at hand.
/// assert!(info.ptx(&Device::emulator()).is_none());
/// # Ok(())
/// # }
/// ```
pub struct KernelInfo {
    pub(super) name: &'static str,
    pub(super) entry: &'static str,
    code: Code,
    pub(super) static_shared: usize,
    pub(super) shared_params: &'static [SharedParam],
    /// The shared memory of a multiprocessor that the kernel prefers, in bytes.
    pub(super) carveout: Option<usize>,
    pub(super) place: Place,
    pub(super) layout: u64,
    pub(super) bounds: LaunchBounds,
    #[cfg(feature = "cuda")]
    pub(super) loaded: cuda::LoadedKernels,
}

impl KernelInfo {
    /// A kernel by its display name, its entry's path, its code, the bytes of its `Shared` parameters, the hash of the
    /// layout that the host passes its parameters in, and its bounds. The caller's place is the kernel's.
    #[doc(hidden)]
    #[track_caller]
    pub const fn new(
        name: &'static str,
        entry: &'static str,
        images: Images,
        static_shared: usize,
        layout: u64,
        bounds: LaunchBounds,
    ) -> Self {
        Self {
            name,
            entry,
            code: Code::Here(images),
            static_shared,
            shared_params: &[],
            carveout: None,
            place: Location::caller(),
            layout,
            bounds,
            #[cfg(feature = "cuda")]
            loaded: cuda::LoadedKernels::new(),
        }
    }

    /// With the parameters that are in shared memory, for the emulator's reports.
    #[doc(hidden)]
    pub const fn with_shared_params(mut self, params: &'static [SharedParam]) -> Self {
        self.shared_params = params;
        self
    }

    /// With the code that a function returns. The code of all kernels is long: the compiler copies constants into a crate's metadata, and
    /// leaves the body of a function that is not inlined where it is.
    #[doc(hidden)]
    pub const fn with_images(mut self, images: fn() -> Images) -> Self {
        self.code = Code::Of(images);
        self
    }

    /// With the shared memory of a multiprocessor that the kernel prefers, in bytes.
    #[doc(hidden)]
    pub const fn with_carveout(mut self, bytes: Option<usize>) -> Self {
        self.carveout = bytes;
        self
    }

    /// The shared memory of a multiprocessor that the kernel prefers, in bytes, if its `carveout` says.
    pub fn carveout(&self) -> Option<usize> {
        self.carveout
    }

    /// The kernel's path, with its instantiation: `my_crate::kernels::reduce::<f32, Add>`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The path of the PTX entry; `::` is `__` in PTX.
    pub fn entry(&self) -> &'static str {
        self.entry
    }

    /// The code, by ascending architecture; empty if the kernel was built for the emulator only.
    pub fn images(&self) -> Images {
        match self.code {
            Code::Here(images) => images,
            Code::Of(images) => images(),
        }
    }

    /// The PTX that a GPU of an architecture runs: compute capability times ten, such as `90`. It needs no GPU.
    ///
    /// It is the PTX of the newest architecture that the kernel was built for, up to this one. `None` if there is none: in a build
    /// without the feature `cuda`, or if the kernel was built for newer architectures only. [`images`](Self::images) has them all.
    pub fn ptx_for(&self, arch: u32) -> Option<&'static str> {
        Some(self.image(arch)?.1)
    }

    /// The PTX that this device runs, as [`ptx_for`](Self::ptx_for) its architecture. `None` for the emulator, which runs no PTX.
    pub fn ptx(&self, device: &Device) -> Option<&'static str> {
        let (major, minor) = device.compute_capability()?;
        self.ptx_for(10 * major + minor)
    }

    /// The code for an architecture: that of the newest one up to it.
    pub(crate) fn image(&self, arch: u32) -> Option<&'static Image> {
        self.images().iter().filter(|image| image.0 <= arch).max_by_key(|image| image.0)
    }

    /// Bytes of shared memory that the kernel's `Shared` parameters take.
    pub fn static_shared(&self) -> usize {
        self.static_shared
    }

    /// The extents of the kernel's blocks, if its `threads` says.
    pub fn threads(&self) -> Option<Dim3> {
        self.bounds.threads()
    }

    /// The most threads that a block of the kernel has, if its `max_threads` or `threads` says.
    pub fn max_threads(&self) -> Option<u32> {
        self.bounds.max_threads()
    }

    /// Whether the kernel's blocks and grids have one dimension, by its `one_dimensional`.
    pub fn one_dimensional(&self) -> bool {
        self.bounds.one_dimensional()
    }

    /// The hash of the layout that the host passes the kernel's parameters in.
    #[doc(hidden)]
    pub fn layout(&self) -> u64 {
        self.layout
    }

    /// Checks that the code in `ptx` takes the parameters as the host passes them.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn check_layout(&self, ptx: &str) -> Result<()> {
        // The builder's first line.
        let digits = ptx.lines().next().and_then(|line| line.strip_prefix("// layout "));
        let device = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        if device == Some(self.layout) {
            return Ok(());
        }
        Err(Error::LayoutMismatch { kernel: self.name.into(), host: self.layout, device: device.unwrap_or(0) })
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn loaded(&self) -> &cuda::LoadedKernels {
        &self.loaded
    }
}

/// A kernel that can be launched: a concrete one, or an instantiation that its list or `instantiate!` names.
///
/// `Tag` is a local type of the crate that instantiates, so that a crate can instantiate another crate's kernel.
#[diagnostic::on_unimplemented(
    message = "the kernel `{Self}` is not instantiated for these types",
    label = "not instantiated",
    note = "add it to the kernel's list, `#[kernel(instantiate(<…>))]`, or write `instantiate!({Self});` in your kernel \
            module"
)]
pub trait Instantiated<Tag> {
    /// The kernel's description, one a program.
    fn info() -> &'static KernelInfo;
}

/// A kernel among those that `instantiate!` made for an algorithm. Apart from [`Instantiated`], so that two algorithms that launch the
/// same kernel leave no doubt which one a launch by the kernel's name is of.
pub trait Grouped<Tag> {
    /// The kernel's description, one a program.
    fn info() -> &'static KernelInfo;
}

/// The description of the kernel `K`, which a launch starts from.
pub struct Entry<K> {
    info: &'static KernelInfo,
    kernel: PhantomData<fn() -> K>,
}

impl<K> Entry<K> {
    /// That of a kernel that is instantiated by its name.
    pub fn named<Tag>() -> Self
    where
        K: Instantiated<Tag>,
    {
        Self { info: K::info(), kernel: PhantomData }
    }

    /// That of a kernel that is instantiated for an algorithm.
    pub fn grouped<Tag>() -> Self
    where
        K: Grouped<Tag>,
    {
        Self { info: K::info(), kernel: PhantomData }
    }

    /// The description.
    pub fn info(self) -> &'static KernelInfo {
        self.info
    }
}

impl<K> Clone for Entry<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Entry<K> {}
