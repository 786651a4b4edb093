//! Kernels on a GPU: each is a module of its own, loaded when it is first launched and once a context.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use primitives_cuda_driver::sys::{
    self, CUdevice_attribute, CUfunction, CUfunction_attribute, CUjit_option, CUmodule, CUresult,
};

use super::{Context, call};
use crate::launch::kernel::KernelInfo;
use crate::{Error, Result, trace};

/// A kernel's modules by context; a part of its static description. Held only to look something up.
pub(crate) struct LoadedKernels(Mutex<Vec<(Weak<Context>, Arc<Slot>)>>);

/// A kernel in a context.
#[derive(Default)]
struct Slot {
    kernel: OnceLock<Arc<LoadedKernel>>,
    /// Held by who loads the kernel. Only those wait for it who launch the same kernel.
    loading: Mutex<()>,
}

impl LoadedKernels {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// The modules of a context, which go with it.
#[derive(Default)]
pub(super) struct Modules(Mutex<Vec<Module>>);

struct Module(CUmodule);

// SAFETY: a module may be unloaded by any thread.
unsafe impl Send for Module {}

impl Modules {
    fn add(&self, module: CUmodule) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Module(module));
    }

    /// Unloads all. The context is current.
    ///
    /// # Safety
    /// No kernel of them runs, or is launched after this.
    pub(super) unsafe fn unload(&mut self) {
        for Module(module) in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: loaded by `Context::load`, unloaded once; the rest is the caller's contract.
            unsafe { sys::cuModuleUnload(module) };
        }
    }
}

/// A kernel that is ready to be launched. Its module stays loaded as long as the context.
pub(crate) struct LoadedKernel {
    pub(super) function: CUfunction,
    pub(super) max_threads: u32,
    /// Bytes of shared memory that the kernel has beside what its launch asks for, with what aligns the latter.
    pub(super) own_shared: usize,
    /// Whether the kernel waits by itself for what was launched before it, so that the driver may begin it earlier.
    pub(super) waits: bool,
    /// The last answer of [`Context::busiest_blocks`], and the shared memory it is for in the high half.
    best_blocks: AtomicU64,
    /// The blocks of a multiprocessor that [`Context::blocks_at_once`] found last, and the threads of each in the high half.
    at_once: AtomicU64,
}

// SAFETY: a function handle may be used from any thread.
unsafe impl Send for LoadedKernel {}
// SAFETY: as above.
unsafe impl Sync for LoadedKernel {}

impl Context {
    /// The kernel in this context, loaded now if this is its first launch. The caller holds no lock: that may take long.
    pub(crate) fn kernel(self: &Arc<Self>, info: &'static KernelInfo) -> Result<Arc<LoadedKernel>> {
        let slot = {
            let mut slots = info.loaded().0.lock().unwrap_or_else(PoisonError::into_inner);
            match slots.iter().find(|(context, _)| std::ptr::eq(context.as_ptr(), Arc::as_ptr(self))) {
                Some((_, slot)) => match slot.kernel.get() {
                    Some(kernel) => return Ok(kernel.clone()),
                    None => slot.clone(),
                },
                None => {
                    slots.retain(|(context, _)| context.strong_count() > 0);
                    let slot = Arc::<Slot>::default();
                    slots.push((Arc::downgrade(self), slot.clone()));
                    slot
                }
            }
        };
        let _loading = slot.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = slot.kernel.get() {
            return Ok(kernel.clone());
        }
        let begin = Instant::now();
        let kernel = Arc::new(self.load(info)?);
        trace::kernel_load(info.name(), self.label(), begin.elapsed());
        Ok(slot.kernel.get_or_init(|| kernel).clone())
    }

    fn load(&self, info: &'static KernelInfo) -> Result<LoadedKernel> {
        let _relaxed = self.relaxed()?;
        let (module, ptx) = self.load_module(info)?;
        let prepared = self.prepare(info, module, ptx);
        match prepared {
            Ok(_) => self.modules.add(module),
            // SAFETY: nothing of the module is used.
            Err(_) => _ = unsafe { sys::cuModuleUnload(module) },
        }
        prepared
    }

    /// Finds the kernel in its module and makes it ready.
    fn prepare(&self, info: &'static KernelInfo, module: CUmodule, ptx: &str) -> Result<LoadedKernel> {
        let entry = CString::new(info.entry().replace("::", "__")).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        let (mut max_threads, mut own_shared): (c_int, c_int) = (0, 0);
        // SAFETY: the module was just loaded; the pointers are valid for the calls.
        unsafe {
            call!(self, cuModuleGetFunction(&raw mut function, module, entry.as_ptr()))?;
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
            call!(self, cuFuncGetAttribute(&raw mut max_threads, attribute, function))?;
            call!(
                self,
                cuFuncGetAttribute(
                    &raw mut own_shared,
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                    function
                )
            )?;
        }
        let own_shared = (own_shared as usize).next_multiple_of(16);
        let rest = self.limits().shared_bytes.saturating_sub(own_shared);
        // SAFETY: the function is loaded.
        unsafe {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            call!(self, cuFuncSetAttribute(function, attribute, rest as c_int))?;
            if let Some(bytes) = info.carveout() {
                let mut most: c_int = 0;
                let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
                call!(self, cuDeviceGetAttribute(&raw mut most, attribute, self.device()))?;
                // In whole percent, rounded down: the driver takes the next division that has as much.
                let percent = (bytes.saturating_mul(100) / most.max(1) as usize).min(100);
                let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
                call!(self, cuFuncSetAttribute(function, attribute, percent as c_int))?;
            }
        }
        self.number_for_faults(info, module, ptx)?;
        let (best_blocks, at_once) = (AtomicU64::new(0), AtomicU64::new(0));
        let waits = ptx.contains("griddepcontrol.wait;");
        Ok(LoadedKernel { function, max_threads: max_threads as u32, own_shared, waits, best_blocks, at_once })
    }

    /// Gives the module the number that faults name the kernel by. A kernel that cannot fault has no place for it.
    fn number_for_faults(&self, info: &'static KernelInfo, module: CUmodule, ptx: &str) -> Result<()> {
        const NAME: &CStr = c"kp_kernel_number";
        // The text tells as well what is not there: a failing call would show up in tools that watch for such.
        if !NAME.to_str().is_ok_and(|name| ptx.contains(name)) {
            return Ok(());
        }
        let number = self.faults.register(info.name());
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, and no kernel of it runs yet; the pointers are valid for the calls, and the variable
        // has the number's size.
        unsafe {
            call!(self, cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, NAME.as_ptr()))?;
            self.copy_aside(address, (&raw const number).cast(), size_of_val(&number))
        }
    }

    /// Loads the image that fits best: the newest architecture up to the device's, as a cubin where there is one of the
    /// same major architecture and the driver takes it, else as PTX. The text comes along.
    fn load_module(&self, info: &'static KernelInfo) -> Result<(CUmodule, &'static str)> {
        let no_image = |reason: String| Error::NoImage { kernel: info.name().into(), reason };
        if info.images().is_empty() {
            let how = "in this program: the build script must compile its file with `primitives_build::PtxBuilder`, \
                       under the name of its crate (`KernelModule::crate_name`)";
            return Err(no_image(how.into()));
        }
        let arch = self.arch();
        let Some(&(built, ptx, cubin)) = info.image(arch) else {
            let built: Vec<_> = info.images().iter().map(|image| format!("sm_{}", image.0)).collect();
            return Err(no_image(format!("for sm_{arch}: it was built for {}", built.join(", "))));
        };
        info.check_layout(ptx)?;
        if let Some(cubin) = cubin.filter(|_| built / 10 == arch / 10)
            && let Ok(module) = load_image(cubin.as_ptr().cast())
        {
            return Ok((module, ptx));
        }
        let text = CString::new(ptx).map_err(|_| no_image(format!("for sm_{built}: the text has a null byte")))?;
        let module = load_image(text.as_ptr().cast()).map_err(|(code, log)| match code {
            CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Error::DriverTooOld {
                driver: self.driver_version(),
                needed: format!("one for PTX {}", ptx_version(ptx).unwrap_or("of this version")),
                what: format!("kernel `{}`", info.name()),
            },
            _ => self.error_or(code, |error| Error::Load {
                kernel: info.name().into(),
                device: self.label().into(),
                reason: format!("{error}{log}"),
                driver: error,
            }),
        })?;
        Ok((module, ptx))
    }

    fn driver_version(&self) -> String {
        let mut version = 0;
        // SAFETY: the pointer is valid for the call.
        unsafe { sys::cuDriverGetVersion(&raw mut version) };
        format!("{}.{}", version / 1000, version % 1000 / 10)
    }

    /// Returns an error if a launch asks for more shared memory than the kernel leaves.
    pub(super) fn check_shared(&self, info: &KernelInfo, kernel: &LoadedKernel, shared: usize) -> Result<()> {
        let limit = self.limits().shared_bytes.saturating_sub(kernel.own_shared);
        if shared <= limit {
            return Ok(());
        }
        Err(Error::LaunchLimit {
            kernel: info.name().into(),
            device: self.label().into(),
            what: "shared memory in bytes, beside what a kernel that can panic needs itself,",
            asked: shared as u64,
            limit: limit as u64,
        })
    }

    /// The block size for a one-dimensional launch that has `tiles(threads)` blocks of that many threads.
    ///
    /// Of the sizes that keep most threads of the device busy, the largest that leaves every multiprocessor several blocks:
    /// large blocks stream best (2^28 additions on an H200 take 0.730 ms with 1024 threads, 0.735 with 128 to 512), but a
    /// short launch must be spread.
    pub(crate) fn best_block(
        &self,
        info: &KernelInfo,
        kernel: &LoadedKernel,
        shared: usize,
        tiles: impl Fn(u32) -> usize,
    ) -> Result<u32> {
        const BLOCKS_EACH: usize = 4;
        // Without room for a block, there is no best one.
        self.check_shared(info, kernel, shared)?;
        // Its largest block is smaller than all sizes that are considered.
        if kernel.max_threads < BLOCK_SIZES[0] {
            return Ok(kernel.max_threads);
        }
        let cached = kernel.best_blocks.load(Ordering::Relaxed);
        let sizes = if cached != 0 && cached >> 32 == shared as u64 {
            cached as u32
        } else {
            let sizes = self.busiest_blocks(kernel, shared)?;
            kernel.best_blocks.store((shared as u64) << 32 | u64::from(sizes), Ordering::Relaxed);
            sizes
        };
        let candidates = || BLOCK_SIZES.into_iter().filter(|size| sizes & size != 0);
        let enough = BLOCKS_EACH * self.properties().multiprocessors as usize;
        let largest = candidates().rev().find(|&threads| tiles(threads) >= enough);
        largest.or_else(|| candidates().next()).ok_or_else(|| Error::LaunchLimit {
            kernel: info.name().into(),
            device: self.label().into(),
            what: "the number of threads in a block",
            asked: BLOCK_SIZES[0].into(),
            limit: kernel.max_threads.into(),
        })
    }

    /// The block sizes that keep most threads of a multiprocessor busy, or'ed.
    fn busiest_blocks(&self, kernel: &LoadedKernel, shared: usize) -> Result<u32> {
        let (mut most, mut sizes) = (0, 0);
        let fits = |threads: &u32| *threads <= kernel.max_threads && *threads > kernel.max_threads.min(SMALL_BLOCK) / 2;
        for threads in BLOCK_SIZES.into_iter().filter(fits) {
            let busy = self.blocks_of_multiprocessor(kernel, threads, shared)? * threads;
            if busy > most {
                (most, sizes) = (busy, threads);
            } else if busy == most && busy > 0 {
                sizes |= threads;
            }
        }
        Ok(sizes)
    }

    /// The number of blocks of `threads` threads without dynamic shared memory that run at once.
    pub(crate) fn blocks_at_once(&self, kernel: &LoadedKernel, threads: u32) -> Result<usize> {
        let cached = kernel.at_once.load(Ordering::Relaxed);
        let blocks = if cached != 0 && cached >> 32 == u64::from(threads) {
            cached as u32
        } else {
            let blocks = self.blocks_of_multiprocessor(kernel, threads, 0)?;
            kernel.at_once.store(u64::from(threads) << 32 | u64::from(blocks), Ordering::Relaxed);
            blocks
        };
        Ok(blocks as usize * self.properties().multiprocessors as usize)
    }

    /// The number of blocks that a multiprocessor runs at once.
    fn blocks_of_multiprocessor(&self, kernel: &LoadedKernel, threads: u32, shared: usize) -> Result<u32> {
        self.make_current()?;
        let mut blocks: c_int = 0;
        // SAFETY: the function is loaded; the pointer is valid for the call.
        unsafe {
            let (function, threads) = (kernel.function, threads as c_int);
            call!(self, cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, function, threads, shared))?;
        }
        Ok(blocks as u32)
    }
}

/// The block sizes that are considered: powers of two, so that a set of them is a word.
const BLOCK_SIZES: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// Smaller blocks are for kernels that can have no larger ones.
const SMALL_BLOCK: u32 = 128;

/// Loads PTX or a cubin; the compiler's messages come with the code.
fn load_image(image: *const c_void) -> Result<CUmodule, (CUresult, String)> {
    let mut log = [0u8; 4096];
    let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the image is a cubin or terminated text; the buffers outlive the call, which writes at most the given size.
    let code = unsafe { sys::cuModuleLoadDataEx(&raw mut module, image, 2, options.as_mut_ptr(), values.as_mut_ptr()) };
    if code == CUresult::CUDA_SUCCESS {
        return Ok(module);
    }
    let text = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
    Err((code, if text.is_empty() { String::new() } else { format!("\n{text}") }))
}

fn ptx_version(ptx: &str) -> Option<&str> {
    ptx.lines().find_map(|line| line.strip_prefix(".version ")).map(str::trim)
}
