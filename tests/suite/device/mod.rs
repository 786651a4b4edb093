//! Tests the primitives, with a module for each module of `primitives-gpu`.

mod block;
mod element;
mod functor;
mod input;
mod io;
mod simt;
mod thread;
mod warp;
