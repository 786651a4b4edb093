//! Kernels of algorithms for types that the library does not ship.
