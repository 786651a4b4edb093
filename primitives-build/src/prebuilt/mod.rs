//! Kernels that come compiled with a package, so that its users need no device tool chain: the output of a build in one file.

use std::env;
use std::fs;
use std::io::{BufRead, Read};
use std::path::{Component, Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;

use crate::Error;
use crate::builder::OUTPUT;
use crate::files::{self, OutputDir};

mod relative;

/// The first line of an archive, before its compression.
const MAGIC: &str = "kernel-primitives-ptx 2";

/// What stands before a file's length and name, if the file is as it is, or if it is PTX whose numbers are relative.
const FORMS: [&str; 2] = ["plain", "relative"];

/// The text and bytes of all files below the output folder of a build ([`Report::directory`](crate::Report::directory)), to be
/// compressed by `zstd --check`: what [`unpack`] takes.
///
/// Registers and labels of PTX are relative numbers in it, so that kernels for several types and architectures, which come one after
/// another, have equal text where their code is equal. Compressed, they take less than half of what PTX takes as it is. The text comes
/// back byte by byte. Equal folders give equal archives.
///
/// # Errors
///
/// Returns [`Error::Io`] if a file cannot be read.
pub fn pack(directory: &Path) -> Result<Vec<u8>, Error> {
    let mut names = Vec::new();
    names_below(directory, Path::new(""), &mut names)?;
    names.sort();
    let mut archive = format!("{MAGIC}\n").into_bytes();
    for name in names {
        let content = files::read(&directory.join(&name))?;
        let ptx = std::str::from_utf8(&content).ok().filter(|_| name.ends_with(".ptx"));
        let [plain, relative] = FORMS;
        let (form, content) = match ptx.and_then(|ptx| relative::encode(&name, ptx)) {
            Some(text) => (relative, text.into_bytes()),
            None => (plain, content),
        };
        archive.extend(format!("{form} {} {name}\n", content.len()).bytes());
        archive.extend(content);
    }
    Ok(archive)
}

/// In a build script, takes a package's kernels from an archive in place of [building](crate::PtxBuilder::build) them.
///
/// # Errors
///
/// Returns [`Error::NotABuildScript`] outside a build script, [`Error::Io`] if a file cannot be read or written, and
/// [`Error::Archive`] if the file is no archive of this version, or a damaged one.
pub fn unpack(archive: &Path) -> Result<(), Error> {
    println!("cargo::rerun-if-changed={}", archive.display());
    let out_dir = env::var_os("OUT_DIR").ok_or(Error::NotABuildScript { name: "OUT_DIR" })?;
    let directory = PathBuf::from(out_dir).join("ptx");
    let fail = |reason| Error::Archive { path: archive.to_owned(), reason };
    let content = decompress(&files::read(archive)?).map_err(fail)?;
    extract(&content, &directory, &fail)?;
    println!("cargo::rustc-env={OUTPUT}={}", directory.display());
    Ok(())
}

/// What was compressed: one frame and nothing else, with the checksum that `zstd --check` leaves, which must be right.
fn decompress(mut archive: &[u8]) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut stream = StreamingDecoder::new(&mut archive).map_err(|error| error.to_string())?;
    stream.read_to_end(&mut content).map_err(|error| error.to_string())?;
    let decoder = stream.into_frame_decoder();
    match decoder.get_checksum_from_data() {
        None => Err("it has no checksum".into()),
        found if found != decoder.get_calculated_checksum() => Err("its checksum is not that of its content".into()),
        _ if !archive.is_empty() => Err(format!("{} bytes come after its end", archive.len())),
        _ => Ok(content),
    }
}

/// Writes the files of an archive, and removes others.
fn extract(mut archive: &[u8], directory: &Path, fail: &dyn Fn(String) -> Error) -> Result<(), Error> {
    let read = |error: std::io::Error| fail(error.to_string());
    let mut line = String::new();
    archive.read_line(&mut line).map_err(read)?;
    if line.strip_suffix('\n') != Some(MAGIC) {
        return Err(fail(format!("it does not begin with `{MAGIC}`")));
    }
    let mut output = OutputDir::new(directory.to_owned())?;
    loop {
        line.clear();
        if archive.read_line(&mut line).map_err(read)? == 0 {
            return output.finish();
        }
        let Some((is_relative, length, name)) = line.strip_suffix('\n').and_then(entry) else {
            return Err(fail(format!("`{}` is no form, length and name of a file", line.trim_end())));
        };
        let mut content = Vec::new();
        archive.by_ref().take(length).read_to_end(&mut content).map_err(read)?;
        if content.len() as u64 != length {
            return Err(fail(format!("`{name}` ends after {} of {length} bytes", content.len())));
        }
        if is_relative {
            let text = std::str::from_utf8(&content).map_err(|error| error.to_string());
            let text = text.and_then(|text| relative::decode(name, text));
            content = text.map_err(|reason| fail(format!("`{name}` is damaged: {reason}")))?.into_bytes();
        }
        output.write(name, content)?;
    }
}

/// Whether a file's PTX is relative, the bytes that follow, and its name, of the line before it. A name is one below the folder.
fn entry(line: &str) -> Option<(bool, u64, &str)> {
    let (form, line) = line.split_once(' ')?;
    let (length, name) = line.split_once(' ')?;
    let form = FORMS.iter().position(|known| *known == form)?;
    let mut parts = Path::new(name).components();
    let is_inside = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    Some((form == 1, length.parse().ok()?, name)).filter(|_| is_inside)
}

/// Names with `/` between folders, whatever the system has.
fn names_below(root: &Path, below: &Path, names: &mut Vec<String>) -> Result<(), Error> {
    let dir = root.join(below);
    for entry in fs::read_dir(&dir).map_err(Error::io("read", &dir))? {
        let entry = entry.map_err(Error::io("read", &dir))?;
        let name = below.join(entry.file_name());
        if entry.path().is_dir() {
            names_below(root, &name, names)?;
        } else {
            let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            names.push(parts.join("/"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("primitives-build-prebuilt-{name}-{}", std::process::id()));
            files::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn given(archive: &[u8], directory: &Path) -> Result<(), String> {
        let fail = |reason| Error::Archive { path: "kernels.zst".into(), reason };
        extract(archive, directory, &fail).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_packed_comes_back_and_nothing_else_stays() {
        let (from, to) = (Folder::new("from"), Folder::new("to"));
        let files: [(&str, &[u8]); 5] = [
            ("index.txt", b"a::k\n"),
            ("a/k.sm_90.ptx", b".entry a__k()\n{\n\tadd.s32 \t%r2, %r1, 1;\n}\n"),
            ("a/l.sm_90.ptx", b"\xff\0\nplain 2 x\n"),
            ("a/m.sm_90.ptx", b"%@ %r+1\n"),
            ("a/empty", b""),
        ];
        for (name, content) in files {
            files::write(&from.0.join(name), content).unwrap();
        }
        files::write(&to.0.join("b/old.ptx"), "old").unwrap();
        let archive = pack(&from.0).unwrap();
        let text = String::from_utf8_lossy(&archive);
        for line in ["plain 5 index.txt", "plain 8 a/m.sm_90.ptx", ".entry %@()", "\tadd.s32 \t%r+1, %r-2, 1;"] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
        given(&archive, &to.0).unwrap();
        assert_eq!(pack(&to.0).unwrap(), archive);
        for (name, content) in files {
            assert_eq!(fs::read(to.0.join(name)).unwrap(), content, "{name}");
        }
        assert!(!to.0.join("b").exists());
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let to = Folder::new("bad");
        let outside = to.0.with_extension("outside");
        let escape = format!("{MAGIC}\nplain 1 ../{}\nx", outside.file_name().unwrap().to_string_lossy());
        for (archive, reason) in [
            ("", "does not begin"),
            // Of an earlier version.
            ("kernel-primitives-ptx 1\n1 a\nx", "does not begin"),
            (&format!("{MAGIC}\nplain 3 a\nab"), "ends after 2 of 3"),
            (&format!("{MAGIC}\nrelative 9 a.ptx\n%r+"), "ends after 3 of 9"),
            (&format!("{MAGIC}\n3 a\nabc"), "no form, length and name"),
            (&format!("{MAGIC}\nother 3 a\nabc"), "no form, length and name"),
            (&format!("{MAGIC}\nplain x a\n"), "no form, length and name"),
            (&format!("{MAGIC}\nplain 0 \n"), "no form, length and name"),
            (&format!("{MAGIC}\nplain 99999999999999999999 a\n"), "no form, length and name"),
            (&format!("{MAGIC}\nplain 1 /a\nx"), "no form, length and name"),
            (&format!("{MAGIC}\nplain 18446744073709551615 a\nx"), "ends after 1 of"),
            (&format!("{MAGIC}\nrelative 3 a.ptx\n%r7"), "`a.ptx` is damaged: `%r7` counts from nothing"),
            (&format!("{MAGIC}\nrelative 2 a.ptx\n%é"), "`a.ptx` is damaged: "),
            (&escape, "no form, length and name"),
        ] {
            let error = given(archive.as_bytes(), &to.0).unwrap_err();
            assert!(error.contains(reason) && error.contains("kernels.zst"), "{archive:?}: {error}");
        }
        assert!(!outside.exists());
    }

    /// `some text\n`, four times, by `zstd --check`.
    const FRAME: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x85, 0x00, 0x00, 0x50, 0x73, 0x6f, 0x6d, 0x65, 0x20, 0x74, 0x65, 0x78,
        0x74, 0x0a, 0x01, 0x00, 0x15, 0x0b, 0x12, 0x57, 0x2b, 0x67, 0xaf,
    ];

    #[test]
    fn a_damaged_archive_is_an_error() {
        let whole = b"some text\n".repeat(4);
        assert_eq!(decompress(FRAME).unwrap(), whole);
        let decompressed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = FRAME.to_vec();
            change(&mut bytes);
            decompress(&bytes)
        };
        for len in 0..FRAME.len() {
            assert!(decompressed(&|bytes| bytes.truncate(len)).is_err(), "{len} bytes");
        }
        for at in 0..FRAME.len() {
            // Some bits change nothing: the size of the window, say.
            if let Ok(content) = decompressed(&|bytes| bytes[at] ^= 1) {
                assert_eq!(content, whole, "byte {at}");
            }
        }
        let after = decompressed(&|bytes| bytes.push(0));
        assert_eq!(after.unwrap_err(), "1 bytes come after its end");
        // A frame may do without.
        let without = decompressed(&|bytes| {
            bytes[4] &= !4;
            bytes.truncate(FRAME.len() - 4);
        });
        assert_eq!(without.unwrap_err(), "it has no checksum");
    }
}
