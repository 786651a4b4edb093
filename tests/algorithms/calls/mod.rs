//! Tests what all calls have: tuning values, limits, and functors and types that keep no promise.

mod hostile;
mod limits;
mod tuning;
