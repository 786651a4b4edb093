use kernel_primitives::view::SharedStorage;

use super::super::MergeStorage;
use super::*;

/// However many there are, the steps lead there, and to no more.
#[test]
fn steps_lead_to_any_number() {
    for most in [0, 1, 2, 3, 64, 128, 256, 512, 1024, 2048] {
        let steps = steps(most);
        if most.is_power_of_two() {
            assert!(steps.into_iter().all(|step| step == 0 || step % 2 == 1), "of {most}: {steps:?}");
        }
        for number in 0..=most {
            let mut found = 0;
            for step in steps.into_iter().filter(|&step| step > 0) {
                if found + step <= number {
                    found += step;
                }
            }
            assert_eq!(found, number, "of {most}");
        }
    }
}

/// The most that fits the smallest shared memory, with a wide key.
#[test]
fn keys_without_a_network_have_no_memory_for_it() {
    assert_eq!(MergeStorage::<[u32; 63]>::BYTES, 64 << 10);
    assert_eq!(MergeStorage::<u32>::BYTES - MergeStorage::<u32>::VALUES, 2 * NETWORK_THREADS);
}
