//! Reads the driver's compiler before the first launch needs it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;

/// The driver's library that compiles PTX. It lies beside the driver.
const COMPILER: &str = "libnvidia-ptxjitcompiler.so.1";

/// Begins to read the compiler in a thread of its own, once a process.
///
/// The driver opens the library when it first compiles a kernel. Where no program has used it since the machine began, its 40 MB come from the
/// disk then, which takes longer than the compilation itself (on hosts of an H200, 60 to 100 ms). While a context is made, there is time for
/// it. Where the file is not found, or cannot be read, the driver does what it would do anyway.
pub(super) fn read_compiler_ahead() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| _ = thread::Builder::new().name("read-ahead".into()).spawn(read));
}

fn read() -> io::Result<()> {
    let maps = fs::read("/proc/self/maps")?;
    let compiler = compilers(&String::from_utf8_lossy(&maps)).find_map(|path| File::open(path).ok());
    let mut compiler = compiler.ok_or(io::ErrorKind::NotFound)?;
    let mut piece = vec![0; 1 << 18];
    while compiler.read(&mut piece)? > 0 {}
    Ok(())
}

/// Returns where the compiler may be: beside each library of the driver among these mapped files (`/proc/self/maps`). On WSL, one of two such
/// libraries only loads the other.
fn compilers(maps: &str) -> impl Iterator<Item = PathBuf> {
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_driver =
        |file: &&Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libcuda.so"));
    files.filter(is_driver).map(|driver| driver.with_file_name(COMPILER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_beside_the_driver() {
        let maps = "55f0a000-55f0b000 r--p 00000000 fe:00 123 /opt/my app/libcuda.so.d/program\n\
                    7f5c0000-7f5c1000 rw-p 00000000 00:00 0 \n\
                    7f5c0000-7f5c1000 r--p 00000000 fe:10 76 /usr/lib/wsl/lib/libcuda.so.1\n\
                    7f5c1000-7f5c2000 r--p 00000000 fe:10 77 /usr/lib/my libs/libcuda.so.580.159.04\n\
                    7f5c2000-7f5c3000 r-xp 00001000 fe:10 77 /usr/lib/my libs/libcuda.so.580.159.04\n\
                    7ffd0000-7ffd1000 r-xp 00000000 00:00 0 [vdso]\n";
        let all: Vec<PathBuf> = compilers(maps).collect();
        let of_folder = |folder: &str| Path::new(folder).join(COMPILER);
        assert_eq!(all, [of_folder("/usr/lib/wsl/lib"), of_folder("/usr/lib/my libs"), of_folder("/usr/lib/my libs")]);
    }
}
