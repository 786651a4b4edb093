//! Where the memory of the emulator's devices lies. All of it is the host's, so that only this tells one device's from another's.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use super::fiber;

/// The allocations by their first byte: how many bytes, and the number of the device.
///
/// Lanes make and drop buffers, too. One that used up its stack in here would keep the lock, so that each use is
/// [to the end](fiber::to_the_end).
static ALLOCATIONS: RwLock<BTreeMap<usize, (usize, usize)>> = RwLock::new(BTreeMap::new());

/// Notes an allocation of `len` bytes, which is no part of another one.
pub(crate) fn note(address: usize, len: usize, device: usize) {
    fiber::to_the_end(|| {
        ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner).insert(address, (len, device));
    });
}

/// Forgets an allocation, which is about to be freed.
pub(crate) fn forget(address: usize) {
    fiber::to_the_end(|| {
        ALLOCATIONS.write().unwrap_or_else(PoisonError::into_inner).remove(&address);
    });
}

/// The number of the device in whose memory a byte lies, if it lies in any.
pub(crate) fn device_of(address: usize) -> Option<usize> {
    fiber::to_the_end(|| {
        let allocations = ALLOCATIONS.read().unwrap_or_else(PoisonError::into_inner);
        let (&start, &(len, device)) = allocations.range(..=address).next_back()?;
        (address - start < len).then_some(device)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_on_the_device_of_its_allocation() {
        // Where nothing is allocated: the first page.
        note(100, 50, 7);
        note(150, 10, 8);
        let devices = [99, 100, 149, 150, 159, 160].map(device_of);
        assert_eq!(devices, [None, Some(7), Some(7), Some(8), Some(8), None]);
        forget(100);
        assert_eq!([100, 149, 150].map(device_of), [None, None, Some(8)]);
        forget(150);
        assert_eq!(device_of(155), None);
    }
}
