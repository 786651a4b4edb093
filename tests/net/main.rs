//! The net tests every device-wide algorithm and every collective of a warp, a block and a tile on random cases, against plain Rust.
//!
//! A *subject* is an algorithm, or a kernel that calls some collectives, with its types. It says how its inputs are made, which results are
//! expected by plain loops, and how it is called ([`subject`]). A *case* decides the rest: lengths, offsets in buffers, the [kind of
//! data](data::Pattern), tuning values, the device, and a seed ([`case`]). These tests go through the subjects:
//!
//! - `properties`: one call, compared with the reference. The elements beside the results are unchanged. For collectives, the first cases
//!   are blocks of one thread, of a partial warp, of two dimensions and of the largest size, which use their storage again ([`shape`]);
//! - `captures`: a graph of the call, replayed with other data in the same buffers. With a used workspace, the capture allocates nothing;
//! - `one_tile`: a call of one tile allocates nothing, and is captured without a workspace, unless the subject says that it needs memory.
//!   If all its cases need memory, the test checks that the usual one allocates;
//! - `shared_memory`: blocks with the shared memory of any architecture, from 64 KiB to 227 KiB;
//! - `tuning`: each candidate of all tuning values, and the least and the greatest values, for one subject of each function;
//! - `short_outputs`: the error of each output that is one shorter than needed: an error of lengths, or what the subject says;
//! - `sanitize`: small cases on the device that the environment names, for tools that slow it down;
//! - `workspaces`: calls on two streams and from two threads that share one workspace;
//! - `threads`: two threads, each with a stream of its own, on the same inputs;
//! - `bits`: for sums of floats that round, the same bits on every run and device.
//!
//! Tests of long inputs begin with [usual shapes](case::Case::usual), because many drawn shapes are trivial.
//!
//! [`lists`] fails if a function that the library exports has no subject. A new algorithm takes a few lines in the file of its family under
//! `algorithms`: a `subject(…)` with three closures. If it takes temporary memory for one tile, or if it does not check the length of an
//! output, the subject says so. If a drawn shape can be trivial, its inputs ask for the usual one.
//!
//! **Small and large.** `KERNEL_PRIMITIVES_NET_CASES` is the number of cases of each subject in `properties`. Most other tests have an
//! eighth of that; `shared_memory` has a twentieth, and `tuning` and `sanitize` have a fixed number. `KERNEL_PRIMITIVES_NET_SEED` draws
//! other cases. With `--nocapture`, a line such as `net: properties exclusive_scan<f32, Add> 1000 cases` says how many cases there were of
//! each. On the emulator, most cases run unchecked, on one OS thread or on several in random order. Small cases run checked, too.
//!
//! ```text
//! KERNEL_PRIMITIVES_NET_CASES=1000 cargo test --release --test net -- --nocapture
//! KERNEL_PRIMITIVES_DEVICE=gpu KERNEL_PRIMITIVES_NET_CASES=5000 cargo test --release --features cuda --test net -- --nocapture
//! ```
//!
//! **To reproduce.** A failure is shrunk, and prints one line, which runs only that case:
//!
//! ```text
//! KERNEL_PRIMITIVES_NET_CASE='top_k<bool, Greater> len=2 …' cargo test --test net properties::top_k
//! ```
//!
//! The name of this binary, `net`, is a part of its kernels' names. The build script knows it.

#![allow(unreachable_pub, reason = "a test binary exports nothing")]

mod algorithms;
mod case;
mod collectives;
mod data;
mod items;
mod kernels;
mod lab;
mod lists;
mod reference;
mod shape;
mod subject;

/// The tests of each family of subjects, and all subjects for the lists.
macro_rules! families {
    ($([$of:ident] $($family:ident)*;)*) => {
        /// Tests one call against the reference.
        mod properties {
            $($(#[test] fn $family() { crate::lab::$of(crate::$of::$family::subjects()) })*)*
        }
        families!(@algorithms $([$of] $($family)*;)*);
        /// All subjects.
        fn subjects() -> Vec<subject::Subject> {
            let mut all = Vec::new();
            $($(all.extend(crate::$of::$family::subjects());)*)*
            all
        }
    };
    (@algorithms [$of:ident] $($family:ident)*; $($collectives:tt)*) => {
        /// Tests graphs that are replayed.
        mod captures {
            $(#[test] fn $family() { crate::lab::captures(crate::$of::$family::subjects()) })*
        }
        /// Tests calls of one tile without a workspace.
        mod one_tile {
            $(#[test] fn $family() { crate::lab::one_tile(crate::$of::$family::subjects()) })*
        }
        /// Tests blocks with little shared memory.
        mod shared_memory {
            $(#[test] fn $family() { crate::lab::shared_memory(crate::$of::$family::subjects()) })*
        }
        /// Tests all candidates of tuning values.
        mod tuning {
            $(#[test] fn $family() { crate::lab::tuning(crate::$of::$family::subjects()) })*
        }
        /// Tests outputs that are too short.
        mod short_outputs {
            $(#[test] fn $family() { crate::lab::short_outputs(crate::$of::$family::subjects()) })*
        }
        /// Tests small cases.
        mod sanitize {
            $(#[test] fn $family() { crate::lab::sanitize(crate::$of::$family::subjects()) })*
        }
        /// Tests one workspace for several streams and threads.
        mod workspaces {
            $(#[test] fn $family() { crate::lab::workspaces(crate::$of::$family::subjects()) })*
        }
        /// Tests several threads on the same inputs.
        mod threads {
            $(#[test] fn $family() { crate::lab::threads(crate::$of::$family::subjects()) })*
        }
    };
}

/// Tests that sums of floats have the same bits everywhere, for the algorithms that promise it.
#[test]
fn bits() {
    lab::bits(subjects());
}

families! {
    [algorithms] reduce scan select unique by_key segments segmented_sort sort merge top_k histogram search sparse fourier transform;
    [collectives] warp block_reduce block_scan exchange fft neighbours path tables sorts radix io;
}
