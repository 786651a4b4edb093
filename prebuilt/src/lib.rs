//! The kernels of [`kernel-primitives`](https://docs.rs/kernel-primitives), compiled to PTX.
//!
//! A published package contains `kernels.zst`: the PTX of all kernels of the library, for each architecture that it supports, packed by
//! `primitives_build::pack` and compressed.
//! `kernel-primitives` depends on this package with its feature `cuda`, and its build script takes the kernels from here. So a program
//! without kernels of its own needs no device tool chain. The repository does not contain the file; a build there compiles the kernels
//! from their source, and `scripts/release.sh` makes the packages.
//!
//! With the environment variable `KERNEL_PRIMITIVES_FROM_SOURCE=1`, the kernels are compiled from source in spite of the file.

#![no_std]
