//! The parts that several tests have in common.

mod spare;
