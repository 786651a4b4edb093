
// Appended to the copy's `primitives-gpu/src/lib.rs`.
extern crate self as primitives_gpu;

/// Returns whether the mutant with this number is on. The environment variable `KERNEL_PRIMITIVES_MUTANT` names the mutant.
///
/// If there is `KERNEL_PRIMITIVES_REACHED` instead, no mutant is on, and the numbers that are reached are written into the file that it
/// names.
#[doc(hidden)]
#[inline(always)]
pub fn mutant(number: u32) -> bool {
    let on = mutants::ON.load(core::sync::atomic::Ordering::Relaxed);
    on == number || on >= mutants::NOTING && mutants::first_look(number)
}

mod mutants {
    use std::fs::File;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    pub(crate) const NOTING: u32 = u32::MAX - 1;
    const UNKNOWN: u32 = u32::MAX;
    pub(crate) static ON: AtomicU32 = AtomicU32::new(UNKNOWN);

    static REACHED: [AtomicBool; 1 << 13] = [const { AtomicBool::new(false) }; 1 << 13];
    static NOTES: OnceLock<File> = OnceLock::new();

    #[cold]
    #[inline(never)]
    pub(crate) fn first_look(number: u32) -> bool {
        if ON.load(Relaxed) == UNKNOWN {
            let on = match (std::env::var("KERNEL_PRIMITIVES_MUTANT"), std::env::var("KERNEL_PRIMITIVES_REACHED")) {
                (Ok(on), _) => on.parse().expect("the number of a mutant"),
                (_, Ok(path)) => {
                    NOTES.get_or_init(|| File::options().append(true).create(true).open(path).expect("a file"));
                    NOTING
                }
                _ => 0,
            };
            ON.store(on, Relaxed);
        }
        let on = ON.load(Relaxed);
        if on == NOTING && !REACHED[number as usize].swap(true, Relaxed) {
            let line = [b'\n'; 1];
            let mut digits = [b' '; 8];
            let mut rest = number;
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let mut bytes = [0; 9];
            bytes[..8].copy_from_slice(&digits);
            bytes[8..].copy_from_slice(&line);
            if let Some(mut notes) = NOTES.get() {
                notes.write_all(&bytes).expect("the notes can be written");
            }
        }
        on == number
    }
}
