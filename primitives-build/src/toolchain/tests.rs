use super::*;
use crate::damage::{Shown, try_all};

#[test]
fn versions_are_read() {
    let verbose = "rustc 1.96.0 (ac68faa20 2026-05-25)\nhost: x86_64-unknown-linux-gnu\n\
            release: 1.96.0\nLLVM version: 22.1.8\n";
    assert_eq!(version_field(verbose, "release").as_deref(), Some("1.96.0"));
    assert_eq!(version_field(verbose, "LLVM version").as_deref(), Some("22.1.8"));
    assert_eq!(version_field(verbose, "commit-hash"), None);
    assert_eq!(major("22.1.8"), Some(22));
    let llc = "Debian LLVM version 22.1.8\n  Optimized build.\n";
    assert_eq!(llvm_version(llc).as_deref(), Some("22.1.8"));
    assert_eq!(llvm_version("LLVM (http://llvm.org/):\n  LLVM version 23.0.0-rust\n").as_deref(), Some("23.0.0-rust"));
    assert_eq!(major("23.0.0-rust"), Some(23));
    let ptxas = "Cuda compilation tools, release 13.0, V13.0.88\n";
    assert_eq!(cuda_release(ptxas).as_deref(), Some("13.0"));
    assert_eq!(cuda_release("nothing"), None);
}

#[test]
fn llvm_folders_are_told_by_name() {
    assert_eq!(llvm_folder(Path::new("/usr/lib/llvm-22")), Some(22));
    assert_eq!(llvm_folder(Path::new("/usr/lib64/llvm21")), Some(21));
    assert_eq!(llvm_folder(Path::new("/usr/lib/llvm-dev")), None);
    assert_eq!(llvm_folder(Path::new("/usr/lib/gcc")), None);
}

#[test]
fn named_compiler_is_the_only_candidate_and_the_message_names_it() {
    let vars = |name: &str| (name == RUSTC).then(|| OsString::from("/nowhere/rustc"));
    let text = Toolchain::find_with(&vars).unwrap_err().to_string();
    assert!(text.contains("/nowhere/rustc: does not run"), "{text}");
    assert_eq!(text.matches("\n  - ").count(), 1, "{text}");
    assert!(text.contains("apt-get install rustc-web rust-web-src llvm-22"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_proxy_stands_for_the_compiler_that_was_checked() {
    use std::os::unix::fs::PermissionsExt;
    let root = env::temp_dir().join(format!("primitives-build-proxy-{}", std::process::id()));
    let [proxy, own] = ["cargo/rustc", "toolchain/bin/rustc"].map(|name| root.join(name));
    let script = format!(
        "#!/bin/sh\ncase $1 in -vV) printf 'host: h\\nrelease: 1.96.0\\nLLVM version: 22.1.8\\n';; *) echo '{}';; esac\n",
        root.join("toolchain").display()
    );
    for file in [&proxy, &own] {
        crate::files::write(file, &script).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    crate::files::write(&root.join("toolchain/lib/rustlib/src/rust/library/core/src/lib.rs"), "// core").unwrap();
    assert_eq!(check_compiler(&proxy).unwrap().0.rustc, own);
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn named_libdevice_that_is_not_there_is_an_error() {
    let vars = |name: &str| (name == LIBDEVICE).then(|| OsString::from("/nowhere/libdevice.10.bc"));
    let places = CudaPlaces { roots: Vec::new(), tried: Vec::new() };
    let missing = find_libdevice(&vars, &places).unwrap_err().to_string();
    assert!(missing.contains("KERNEL_PRIMITIVES_LIBDEVICE=/nowhere/libdevice.10.bc: not a file"), "{missing}");
}

#[test]
fn places_looked_at_are_listed() {
    let places = CudaPlaces { roots: vec!["/nowhere/cuda".into()], tried: vec!["CUDA_HOME: not set".into()] };
    let missing = find_ptxas(&|_| None, &places).unwrap_err().to_string();
    for part in ["CUDA_HOME: not set", "/nowhere/cuda/bin/ptxas: not there", "pip install nvidia-cuda-nvcc"] {
        assert!(missing.contains(part), "{part:?} is not in\n{missing}");
    }
    let missing = find_nvdisasm(&|_| None, &places).unwrap_err().to_string();
    for part in ["/nowhere/cuda/bin/nvdisasm: not there", "pip install nvidia-cuda-nvdisasm"] {
        assert!(missing.contains(part), "{part:?} is not in\n{missing}");
    }
}

#[test]
fn damaged_versions_are_none_or_some() {
    let valid: [&[u8]; 4] = [
        b"rustc 1.96.0\nhost: x86_64-unknown-linux-gnu\nrelease: 1.96.0\nLLVM version: 22.1.8\n",
        b"Debian LLVM version 22.1.8\n  Optimized build.\n",
        b"Cuda compilation tools, release 13.0, V13.0.88\n",
        b"/usr/lib/llvm-22",
    ];
    try_all(
        3000,
        |damage| Shown(damage.damaged(&valid, &["release ", "LLVM version ", ": ", ".", "llvm"])),
        |Shown(bytes)| {
            let text = String::from_utf8_lossy(bytes);
            let version = version_field(&text, "LLVM version").or(llvm_version(&text)).or(cuda_release(&text));
            let major = version.iter().find_map(|version| major(version)).or(llvm_folder(Path::new(&*text)));
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            if major.is_some_and(|major| major != u32::MAX / 2) && digits == 0 {
                Err(format!("{major:?}"))
            } else {
                Ok(())
            }
        },
    );
}
