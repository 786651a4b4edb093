//! Spans and events for `tracing`, if the feature of that name is on. The target is `kernel_primitives`.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "told to nobody"))]

use std::time::Duration;

use primitives_gpu::Dim3;

use crate::Error;
use crate::device::Device;

/// A span that ends when this is dropped.
#[must_use]
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    _entered: tracing::span::EnteredSpan,
}

#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $($fields:tt)*) => {
        tracing::event!(target: "kernel_primitives", tracing::Level::$level, $($fields)*)
    };
}

#[inline]
pub(crate) fn launch(kernel: &str, grid: Dim3, block: Dim3, shared_bytes: usize, device: &Device) -> Span {
    Span {
        #[cfg(feature = "tracing")]
        _entered: tracing::debug_span!(
            target: "kernel_primitives", "launch", kernel, %grid, %block, shared_bytes, %device
        )
        .entered(),
    }
}

#[inline]
pub(crate) fn graph_launch(launches: usize, device: &Device) {
    #[cfg(feature = "tracing")]
    event!(DEBUG, launches, %device, "graph launched");
}

#[inline]
pub(crate) fn allocation(bytes: usize, device: &Device) {
    #[cfg(feature = "tracing")]
    event!(DEBUG, bytes, %device, "memory allocated");
}

#[inline]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the emulator loads nothing"))]
pub(crate) fn kernel_load(kernel: &str, device: &str, time: Duration) {
    #[cfg(feature = "tracing")]
    event!(DEBUG, kernel, device, ?time, "kernel loaded");
}

/// Sends an event for an error that is a kernel's fault.
#[inline]
pub(crate) fn fault(error: &Error) {
    #[cfg(feature = "tracing")]
    if let Error::Fault(fault) = error {
        let crate::KernelFault { kernel, block, thread, file, line, diagnosis, .. } = &**fault;
        event!(ERROR, kernel, %block, %thread, file, line, "{diagnosis}");
    }
}
