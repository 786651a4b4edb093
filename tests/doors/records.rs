//! Tests that records of faults, which come from a device, can be shown for any numbers.

use kernel_primitives::simt::{Fault, FaultKind};

use crate::damage::try_all;

#[test]
fn every_fault_has_a_text() {
    try_all(
        3000,
        |damage| (damage.number() as u32 % 12, [damage.number(), damage.number()]),
        |&(number, args)| match FaultKind::from_u32(number) {
            Some(kind) if kind as u32 != number => Err(format!("{number} is read as {kind:?}")),
            Some(kind) if Fault { kind, args }.to_string().is_empty() => Err("no text".into()),
            _ => Ok(()),
        },
    );
}
