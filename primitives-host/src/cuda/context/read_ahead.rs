//! Reads the driver's compiler before the first launch needs it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;

/// The driver's library that compiles PTX. It lies beside the driver.
const COMPILER: &str = "libnvidia-ptxjitcompiler.so.1";

/// Begins to read the compiler in a thread of its own, once a process.
///
/// The driver opens the library at the first launch. Where no program has used it since the machine began, its 40 MB come from the disk then,
/// which takes longer than the compilation itself (on hosts of an H200, 70 to 100 ms). While a context is made, there is time for it. Where
/// the file is not found, or cannot be read, the driver does what it would do anyway.
pub(super) fn read_compiler_ahead() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| _ = thread::Builder::new().name("read-ahead".into()).spawn(read));
}

fn read() -> io::Result<u64> {
    let path = compiler(&fs::read_to_string("/proc/self/maps")?).ok_or(io::ErrorKind::NotFound)?;
    io::copy(&mut File::open(path)?, &mut io::sink())
}

/// Returns the path of the compiler beside the driver, which is one of these mapped files (`/proc/self/maps`).
fn compiler(maps: &str) -> Option<PathBuf> {
    let mut files = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_driver =
        |file: &&Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libcuda.so"));
    files.find(is_driver).map(|driver| driver.with_file_name(COMPILER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_beside_the_driver() {
        let maps = "55f0a000-55f0b000 r--p 00000000 fe:00 123 /opt/my app/libcuda.so.d/program\n\
                    7f5c0000-7f5c1000 rw-p 00000000 00:00 0 \n\
                    7f5c1000-7f5c2000 r--p 00000000 fe:10 77 /usr/lib/my libs/libcuda.so.580.159.04\n\
                    7f5c2000-7f5c3000 r-xp 00001000 fe:10 77 /usr/lib/my libs/libcuda.so.580.159.04\n\
                    7ffd0000-7ffd1000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(compiler(maps), Some("/usr/lib/my libs/libnvidia-ptxjitcompiler.so.1".into()));
        assert_eq!(compiler(maps.split_once("7f5c1000").unwrap().0), None);
    }
}
