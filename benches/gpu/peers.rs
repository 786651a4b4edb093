//! CUB, Thrust, cuSPARSE and cuFFT, in a shared library.

use std::ffi::{c_int, c_uint, c_void};

use kernel_primitives::{Result, Stream};
use libloading::Library;

type BlockSort = unsafe extern "C" fn(*const c_void, *mut c_void, c_uint, c_uint, *mut c_void) -> c_int;
type Transform = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, usize, *mut c_void) -> c_int;

/// Temporary memory and its size, the buffers, items, stream.
type Algorithm = unsafe extern "C" fn(*mut c_void, *mut usize, *const *mut c_void, usize, *mut c_void) -> c_int;

/// A block collective's launch: rounds, factor, input, output, items, stream.
pub(crate) type BlockPeer<T> = Box<dyn Fn(u32, T, u64, u64, usize, *mut c_void)>;

/// The library of `benches/peers/*.cu`.
pub(crate) struct Peers(&'static Library);

impl Peers {
    pub(crate) fn open(path: &str) -> Self {
        // SAFETY: the library is the program's own; its initialisation is the CUDA runtime's.
        let library = unsafe { Library::new(path) };
        let library = library.unwrap_or_else(|error| panic!("the peers could not be loaded from {path}: {error}"));
        // Never unloaded: the CUDA runtime in it lives as long as the program.
        Self(Box::leak(Box::new(library)))
    }

    /// The versions of what is in the library, by name.
    pub(crate) fn versions(&self) -> Vec<(&'static str, String)> {
        let version = |name: &'static str| {
            let symbol = format!("{}_version\0", name.to_lowercase());
            // SAFETY: the function has this type.
            let get = unsafe { self.0.get::<unsafe extern "C" fn() -> c_int>(symbol.as_bytes()) };
            // SAFETY: it takes nothing, and asks for nothing.
            let version = unsafe { get.ok()?() };
            Some((name, format!("{}.{}.{}", version / 100_000, version / 100 % 1000, version % 100)))
        };
        ["CUB", "CUDA", "cuSPARSE", "cuFFT"].into_iter().filter_map(version).collect()
    }

    /// An algorithm of `cub`, `thrust`, `cusparse` or `cufft` on `n` items in these buffers, with the temporary memory that it asks for: what runs
    /// it and returns CUDA's error, also if it refuses to say what memory it wants. `None` if the library has none of this name.
    pub(crate) fn algorithm(
        &self,
        library: &str,
        name: &str,
        stream: &Stream,
        n: usize,
        buffers: &[u64],
    ) -> Result<Option<impl Fn() -> c_int + use<>>> {
        let symbol = format!("{library}_{name}\0");
        // SAFETY: the function has this type, and the library stays loaded.
        let Ok(call) = (unsafe { self.0.get::<Algorithm>(symbol.as_bytes()) }) else { return Ok(None) };
        let (call, buffers, raw) = (*call, buffers.to_vec(), stream.as_raw());
        let mut bytes = 0;
        // SAFETY: without storage it says how much it wants, and looks at nothing else.
        let refused = unsafe { call(std::ptr::null_mut(), &mut bytes, buffers.as_ptr().cast(), n, raw) };
        let bytes = if refused == 0 { bytes } else { 0 };
        let storage = stream.buffer_uninit::<u8>(bytes.max(1))?;
        Ok(Some(move || {
            if refused != 0 {
                return refused;
            }
            let mut bytes = bytes;
            // SAFETY: the addresses are buffers of as many elements as it reads and writes, on the stream's device, or of the
            // host's memory where the function writes there.
            unsafe { call(storage.address() as _, &mut bytes, buffers.as_ptr().cast(), n, raw) }
        }))
    }

    /// `out = x + y` by `cub::DeviceTransform`, for the element type of this name.
    pub(crate) fn transform_add(&self, name: &str) -> impl Fn(u64, u64, u64, usize, *mut c_void) + use<> {
        let symbol = format!("cub_transform_add_{name}\0");
        // SAFETY: the function has this type, and the library stays loaded.
        let transform = unsafe { *self.0.get::<Transform>(symbol.as_bytes()).expect("the peers have this type") };
        move |x, y, out, n, stream| {
            // SAFETY: the addresses are buffers of `n` elements on the stream's device.
            let code = unsafe { transform(x as _, y as _, out as _, n, stream) };
            assert_eq!(code, 0, "CUB failed");
        }
    }

    /// Tiles of keys, scrambled and sorted so many times by so many blocks of CUB's, for a sort, a type, a shape, and
    /// the threads that a multiprocessor runs at once.
    pub(crate) fn block_sort(&self, name: &str) -> impl Fn(u64, u64, u32, u32, *mut c_void) + use<> {
        let symbol = format!("cub_block_{name}\0");
        // SAFETY: the function has this type, and the library stays loaded.
        let sort = unsafe { *self.0.get::<BlockSort>(symbol.as_bytes()).expect("the peers have this sort") };
        move |x, out, blocks, rounds, stream| {
            // SAFETY: the addresses are buffers of a tile a block on the stream's device.
            let code = unsafe { sort(x as _, out as _, blocks, rounds, stream) };
            assert_eq!(code, 0, "CUB failed");
        }
    }

    /// 64-round kernels of a block collective, of this kind, element type and shape.
    pub(crate) fn block<T: Copy + 'static>(&self, kind: &str, ty: &str, threads: u32, items: u32) -> BlockPeer<T> {
        type Block<T> = unsafe extern "C" fn(u32, T, *const c_void, *mut c_void, usize, *mut c_void) -> c_int;
        let symbol = format!("cub_block_{kind}_{ty}_{threads}_{items}\0");
        // SAFETY: the function has this type, and the library stays loaded.
        let launch = unsafe { *self.0.get::<Block<T>>(symbol.as_bytes()).expect("the peers have this collective") };
        Box::new(move |rounds, factor, x, out, n, stream| {
            // SAFETY: the addresses are buffers of `n` elements on the stream's device.
            let code = unsafe { launch(rounds, factor, x as _, out as _, n, stream) };
            assert_eq!(code, 0, "CUB failed");
        })
    }
}
