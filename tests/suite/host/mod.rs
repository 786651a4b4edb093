//! Tests the runtime: devices, streams, buffers, launches and graphs, and objects that others made.

mod adoption;
mod graph;
#[cfg(feature = "cuda")]
mod images;
mod launches;
mod printing;
mod runtime;
mod transfers;
