//! The macros of `kernel-primitives`, which re-exports them: depend on that crate rather than on this one.
//!
//! | macro | |
//! |---|---|
//! | [`macro@kernel`] | makes a function a kernel |
//! | [`instantiate!`] | adds an instantiation to a generic kernel of another crate |
//! | [`macro@device_function`] | makes a function one that kernels written at run time can call |
//! | [`macro@KernelParam`] | makes a struct a kernel parameter |
//! | [`macro@Element`] | makes a struct an element of device memory |
//!
//! # One source, two machines
//!
//! A kernel module is compiled twice: as a part of its crate for the host, and by the crate's build script for the GPU.
//! Both compilations see the same attributes, and the same features of the package. The expansion holds what either
//! needs, under `cfg(target_arch)`: PTX entries there, launchers and the emulator's entries here. It names everything by
//! absolute paths from `::kernel_primitives`.
//!
//! Entries are emitted only in the packages that `primitives-build` writes (their names begin with `ptx-entries-`), so
//! that a library's kernels do not appear in the PTX of all its users. The name of an entry is the path of the module, and
//! the function's name with the generic arguments: `my_crate::kernels::reduce__f32_Add_4`.
//!
//! On the host, the folder that the environment variable `KERNEL_PRIMITIVES_PTX` names says in `index.txt` and
//! `functions.txt` which entries were compiled; their images become part of the program. Without them, a kernel runs on
//! the emulator only.
//!
//! # A renamed crate
//!
//! A crate that depends on `kernel-primitives` by another name, or finds it in a crate that re-exports it, says where:
//!
//! ```
//! mod gpu {
//!     pub use kernel_primitives::*;
//! }
//! use gpu::prelude::*;
//!
//! #[derive(Clone, Copy, KernelParam)]
//! #[kernel_primitives(crate = crate::gpu)]
//! #[repr(C)]
//! struct Scale(f32);
//!
//! #[kernel(crate = crate::gpu, equal_len(x, out))]
//! fn scale(cx: Block, by: Scale, x: Global<f32>, mut out: GlobalMut<f32>) {
//!     for i in cx.items(out.len()) {
//!         out.set(i, by.0 * x[i]);
//!     }
//! }
//!
//! # fn main() -> gpu::Result<()> {
//! # let stream = gpu::Device::emulator().stream()?;
//! let x = stream.buffer_from(&[1.0f32, 2.0])?;
//! let mut out = stream.buffer_zeroed::<f32>(2)?;
//! scale::launch(&stream, gpu::Dims::for_items(2), Scale(3.0), &x, &mut out)?;
//! assert_eq!(out.to_vec()?, [3.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! That is enough for the emulator. The package in which `primitives-build` compiles a kernel file for the GPU depends on
//! `kernel-primitives` by its own name, so a file that is compiled for both names the path in a `use` of its own, such as
//! `use kernel_primitives as gpu;`.

mod arguments;
mod derive;
mod environment;
mod function;
mod group;
mod instance;
mod instantiate;
mod kernel;
mod names;
mod note;
mod product;
mod row;
mod shipped;
mod signature;

use environment::Environment;
use proc_macro::TokenStream;

/// Makes a function a kernel.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// out ← a·x + y
/// #[kernel(equal_len(x, y, out))]
/// pub fn axpy(cx: Block, a: f32, x: Global<f32>, y: Global<f32>, mut out: GlobalMut<f32>) {
///     for i in cx.items(out.len()) {
///         out.set(i, a * x[i] + y[i]);
///     }
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0])?;
/// let y = stream.buffer_from(&[0.5f32, 0.5])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// axpy::launch(&stream, (1, 256), 2.0, &x, &y, &mut out)?;
/// assert_eq!(out.to_vec()?, [2.5, 4.5]);
/// # Ok(())
/// # }
/// ```
///
/// # The parameters
///
/// | in the kernel | in the launch | |
/// |---|---|---|
/// | `cx: Block` | | the block token, always the first |
/// | `x: Global<T>` | `&Buffer<T>`, or a slice of one | elements that are read |
/// | `x: Input<S>` | the same, or an input of the module `input` | items that are read or computed, by the source `S` |
/// | `out: GlobalMut<T, P>` | `&mut Buffer<T>`, or a mutable slice of one | elements that are written, by the partition `P` |
/// | `out: Output<O>` | the same, or an output of the module `output` | places that are written, by the sink `O` |
/// | `s: Shared<S>` | | a storage in the block's shared memory, whose size the launch adds |
/// | `s: SharedSlice<T>` | | the shared memory that the launch asks for beyond that; at most one |
/// | `a: T` | `T` | a [`KernelParam`](macro@KernelParam) by value: a scalar, a functor, a struct |
///
/// They are told apart by the last segment of the type's path, so `view::Global<f32>` is a view, and a type alias for one
/// is not. Lifetimes are left out. The function returns nothing, and has no lifetime parameters, no references and no
/// `impl Trait`.
///
/// # What it makes
///
/// * **The function**, as it was written. Other kernels may call it: on the device it is inlined. If it says how many `threads` a
///   block has, a block of others is a fault.
/// * **A type** of the same name. It has no values; its method `launch` takes the stream, the dimensions and the
///   parameters in their order, and returns a `Result<()>`. What is wrong with the arguments is an error of the launch, and so is a
///   fault of the kernel in the emulator. On a GPU the launch does not wait: a later call returns the fault, that is the next launch
///   on the stream that finds it, or the next call that waits for the kernel, such as `to_vec`. A link to it in documentation says
///   ``[`enum@axpy`]``, or ``[`struct@reduce`]`` for a generic kernel, since the plain name is ambiguous.
/// * **An entry**, for a kernel without generics and for every listed instantiation of a generic one.
///
/// An attribute `#[cfg(…)]` on the kernel holds for all of them.
///
/// # Generic kernels
///
/// The types and constants that a generic kernel is compiled for are listed:
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// Reduces to a value a block.
/// #[kernel(instantiate(<f32, Add>, <f64, Max>))]
/// pub fn partials<T: Element, F: Reducer<T> + KernelParam>(
///     cx: Block,
///     x: Global<T>,
///     mut out: GlobalMut<T, PerBlock>,
///     op: F,
///     mut shared: Shared<ReduceStorage<T>>,
/// ) {
///     let own = cx.items(x.len()).fold(op.identity(), |total, i| op.apply(total, x[i]));
///     let total = block_reduce(cx, &mut shared, own, op);
///     out.store(total);
/// }
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32; 100])?;
/// let mut out = stream.buffer_zeroed::<f32>(1)?;
/// partials::<f32, Add>::launch(&stream, (1, 64), &x, &mut out, Add)?;
/// assert_eq!(out.to_vec()?, [100.0]);
/// # Ok(())
/// # }
/// ```
///
/// A launch with other arguments is a compile error that says so. [`instantiate!`] adds to the list, from another crate
/// as well. A constant is a literal or a block, `{ 2 * N }`. A generic kernel has at most 32 parameters, where a view
/// counts twice.
///
/// # Who may launch it, and what a launch must keep
///
/// A kernel checks what it is given, and a launch is a safe call. Where a check is too expensive, there are two ways:
///
/// * `launch(pub(crate))` makes the launch and the function more private than the kernel's type. Other crates can
///   [instantiate](instantiate!) the kernel for their types, but only this crate launches it, or calls it in another kernel,
///   because only this crate prepares the arguments.
/// * An `unsafe fn` has an unsafe launch. Its docs have a section `# Safety`, which the launch repeats.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// out ← the elements of `x` at the places `at`
/// ///
/// /// # Safety
/// /// All places are below the length of `x`.
/// #[kernel(equal_len(at, out))]
/// pub unsafe fn gather(cx: Block, x: Input<Span<f32>>, at: Global<u32>, mut out: GlobalMut<f32>) {
///     for i in cx.items(out.len()) {
///         // SAFETY: the caller's contract.
///         let [item] = unsafe { x.items_inside(at[i] as usize) };
///         out.set(i, item);
///     }
/// }
/// # use kernel_primitives::input::Span;
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # let stream = kernel_primitives::Device::emulator().stream()?;
/// let x = stream.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// let at = stream.buffer_from(&[2u32, 0])?;
/// let mut out = stream.buffer_zeroed::<f32>(2)?;
/// // SAFETY: 2 and 0 are below 3.
/// unsafe { gather::launch(&stream, (1, 32), &x, &at, &mut out) }?;
/// assert_eq!(out.to_vec()?, [3.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Arguments
///
/// * `instantiate(<f32, Add, 4>, …)`: the instantiations of a generic kernel.
/// * `equal_len(x, y, out)`: the launch fails unless these views have equal lengths. May be repeated.
/// * `threads(N)`, `threads(X, Y)` or `threads(X, Y, Z)`: every block has exactly these extents, expressions of the kernel's
///   constants; another block is an error of the launch. The compiler then knows indices and extents, and collectives shrink
///   to what that block needs.
/// * `max_threads(N)`: no block has more than `N` threads, an expression of the kernel's constants such as `THREADS`. The
///   compiler then may give each thread more registers, up to 65536 / `N`, and must not give it more; a larger block is an
///   error of the launch. Without it a kernel of many registers refuses large blocks on the GPU.
/// * `min_blocks(N)`, beside one of these: registers are limited so that a multiprocessor holds `N` blocks at once.
/// * `one_dimensional`: blocks and grid have one dimension; a launch of another shape is an error. The compiler then knows that indices
///   along `y` and `z` are 0, and ranks of threads and blocks take fewer instructions.
/// * `carveout(N)`: the kernel prefers that a multiprocessor has about `N` bytes of shared memory, or as much as it can have. The rest of this
///   memory is cache. A GPU has some divisions to choose from. It divides the memory anew if the next kernel prefers another division, and
///   waits for that. Without `carveout`, the driver decides, from the shared memory that blocks take.
/// * `launch(pub(crate))`, or any other visibility: that of the launch and of the function, if it is not that of the kernel's type;
///   `launch()` is the module's own.
/// * `crate = path`: where `kernel-primitives` is, if not at `::kernel_primitives`.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    match kernel::expand(arguments.into(), item.clone(), &Environment::read()) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            // With the function as it is, or each of its uses would be an error too.
            let error = error.into_compile_error();
            quote::quote!(#item #error).into()
        }
    }
}

/// Makes a function of values one that kernels written at run time can call: vector expressions on a GPU.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// 3x² − 2x³ between 0 and 1
/// #[device_function]
/// pub fn smooth(x: f32) -> f32 {
///     let x = x.clamp(0.0, 1.0);
///     x * x * (3.0 - 2.0 * x)
/// }
///
/// assert_eq!(smooth(0.5), 0.5);
/// assert_eq!(smooth::info().function()(0.5), 0.5);
/// assert!(smooth::info().name().ends_with("::smooth"));
/// ```
///
/// It stands in a kernel module, which the build script compiles for the GPU. Parameters and result are `f32`, `f64`, `bool`
/// and integers of 8 to 64 bits, by value. The function is safe, not generic, and returns something.
///
/// # What it makes
///
/// * **The function**, as it was written. The host and kernels may call it.
/// * **A type** of the same name. It has no values; its method `info` gives the function's `FunctionInfo`, one a program.
/// * **A PTX function**, `my_crate__kernels__smooth`, which a kernel that was written at run time calls. Functions that it
///   calls are inlined, or stand beside it.
///
/// An attribute `#[cfg(…)]` on the function holds for all of them.
///
/// A function may panic: `FunctionImage::can_panic` says what the kernel does for that. A function that cannot panic costs
/// less.
///
/// # Arguments
///
/// * `crate = path`: where `kernel-primitives` is, if not at `::kernel_primitives`.
#[proc_macro_attribute]
pub fn device_function(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    match function::expand(arguments.into(), item.clone(), &Environment::read()) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            // With the function as it is, or each of its uses would be an error too.
            let error = error.into_compile_error();
            quote::quote!(#item #error).into()
        }
    }
}

/// Compiles a generic kernel for more types and constants, where this stands.
///
/// ```
/// // In a kernel module, which the build script compiles for the device.
/// use kernel_primitives::prelude::*;
///
/// #[derive(Clone, Copy, KernelParam)]
/// pub struct Halve;
///
/// impl UnaryFn<f32> for Halve {
///     type Output = f32;
///     fn apply(&self, x: f32) -> f32 {
///         x / 2.0
///     }
/// }
///
/// instantiate!(kernel_primitives::kernels::map_unary::<f32, f32, Halve, 4>);
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # use kernel_primitives::{Dims, kernels::map_unary};
/// # let stream = kernel_primitives::Device::emulator().stream()?;
/// # let x = stream.buffer_from(&[1.0f32, 3.0])?;
/// # let mut out = stream.buffer_zeroed::<f32>(2)?;
/// map_unary::<f32, f32, Halve, 4>::launch(&stream, Dims::for_items(2), &x, &mut out, Halve)?;
/// assert_eq!(out.to_vec()?, [0.5, 1.5]);
/// # Ok(())
/// # }
/// ```
///
/// The kernel may belong to any crate; a list, separated by commas, is fine. The entry belongs to the module that this
/// stands in. One instantiation has one place: where two crates have made the same one, a crate that sees both cannot
/// launch it.
///
/// The entry's name has the last segment of the kernel's path, and the arguments. If a module instantiates two kernels whose names and
/// arguments are the same, the build for a GPU fails; in one list, this is an error of every build. Instantiate one of them in another
/// module.
///
/// `instantiate!(crate = path, …)` says where `kernel-primitives` is, if not at `::kernel_primitives`: see
/// [the crate's docs](crate#a-renamed-crate).
///
/// # Algorithms
///
/// The path of an algorithm stands for all kernels that it launches. `algorithms` comes before the algorithm's name, and
/// `algorithms::sort_by<…>` is enough. Of kernels and of algorithms, both `<…>` and `::<…>` are accepted. An example:
///
/// ```
/// use kernel_primitives::functor::Less;
/// use kernel_primitives::prelude::*;
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// pub struct Point {
///     x: f32,
///     y: f32,
/// }
///
/// /// From left to right.
/// #[derive(Clone, Copy, KernelParam)]
/// pub struct ByX;
///
/// impl BinaryFn<Point> for ByX {
///     type Output = bool;
///     fn apply(&self, a: Point, b: Point) -> bool {
///         Less.apply(a.x, b.x)
///     }
/// }
///
/// instantiate!(kernel_primitives::algorithms::sort_by<Point, ByX>);
///
/// # fn main() -> kernel_primitives::Result<()> {
/// # use kernel_primitives::algorithms::sort_by;
/// # let stream = kernel_primitives::Device::emulator().stream()?;
/// # let x = stream.buffer_from(&[Point { x: 2.0, y: 0.0 }, Point { x: 1.0, y: 5.0 }])?;
/// # let mut out = stream.buffer_zeroed::<Point>(2)?;
/// sort_by(&stream, &x, ByX, &mut out)?;
/// assert_eq!(out.to_vec()?[0].y, 5.0);
/// # Ok(())
/// # }
/// ```
///
/// An element's type stands for a buffer of it. An input that is computed has its own type: `reduce<Counting<u32>, MySum>`. The
/// algorithm's trait, such as `SortBy`, names the parameters; the error of a call that has no kernels shows the line. A kernel that
/// several algorithms of one `instantiate!` launch is compiled once. A kernel that is instantiated by its own name serves no algorithm.
#[proc_macro]
pub fn instantiate(input: TokenStream) -> TokenStream {
    finish(instantiate::expand(input.into(), &Environment::read()))
}

/// The kernels of rows of the table of algorithms; what [`instantiate!`] calls by it.
#[doc(hidden)]
#[proc_macro]
pub fn __group(input: TokenStream) -> TokenStream {
    finish(group::expand(input.into(), &Environment::read()))
}

/// The trait of an algorithm, from its row of the table. Its error shows the line that makes the kernels.
#[doc(hidden)]
#[proc_macro]
pub fn __algorithm_note(input: TokenStream) -> TokenStream {
    finish(note::expand(input.into()))
}

/// The library's own instantiations, as a table of algorithms with types and operators.
#[doc(hidden)]
#[proc_macro]
pub fn __shipped(input: TokenStream) -> TokenStream {
    finish(shipped::begin(input.into()))
}

/// The rows of the algorithms in that table.
#[doc(hidden)]
#[proc_macro]
pub fn __shipped_rows(input: TokenStream) -> TokenStream {
    finish(shipped::expand(input.into(), &Environment::read()))
}

/// Makes a struct a kernel parameter, by value: a functor, or a group of scalars.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// /// x ↦ a·x + b
/// #[derive(Clone, Copy, KernelParam)]
/// #[repr(C)]
/// struct Affine {
///     a: f32,
///     b: f32,
/// }
/// ```
///
/// The fields are kernel parameters. Host and device must agree on the layout: a struct with fields is `#[repr(C)]` or
/// `#[repr(transparent)]`. The trait also asks for `Copy`, `Send`, `Sync` and `'static`. For a generic struct, the
/// implementation holds where the fields' types are parameters.
///
/// `#[kernel_primitives(crate = path)]` on the struct says where `kernel-primitives` is, if not at `::kernel_primitives`.
#[proc_macro_derive(KernelParam, attributes(kernel_primitives))]
pub fn derive_kernel_param(input: TokenStream) -> TokenStream {
    finish(derive::kernel_param(input.into()))
}

/// Makes a struct an element of device memory, and a [`KernelParam`](macro@KernelParam), which is not derived beside it.
///
/// ```
/// use kernel_primitives::prelude::*;
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Point {
///     x: f32,
///     y: f32,
/// }
/// ```
///
/// The fields are elements, at least one, and the struct is `#[repr(C)]` or `#[repr(transparent)]`. It has no padding,
/// whose bytes would be undefined: a struct that has some does not compile, a generic one where it is used.
/// `ZERO` and `ANY_BITS` come from the fields.
///
/// `#[kernel_primitives(crate = path)]` on the struct says where `kernel-primitives` is, if not at `::kernel_primitives`.
#[proc_macro_derive(Element, attributes(kernel_primitives))]
pub fn derive_element(input: TokenStream) -> TokenStream {
    finish(derive::element(input.into()))
}

fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}
