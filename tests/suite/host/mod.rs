//! The runtime: devices, streams, buffers, launches and graphs, and what comes from elsewhere.

mod adoption;
mod graph;
#[cfg(feature = "cuda")]
mod images;
mod launches;
mod printing;
mod runtime;
mod transfers;
