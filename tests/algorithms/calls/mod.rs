//! Tests what all calls have: captures, tuning values, limits, and functors and types that keep no promise.

mod capture;
mod hostile;
mod limits;
mod tuning;
