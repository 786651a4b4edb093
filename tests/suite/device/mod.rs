//! The primitives: a module for each of theirs.

mod block;
mod element;
mod functor;
mod input;
mod io;
mod simt;
mod thread;
mod warp;
