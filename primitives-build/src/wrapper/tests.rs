use super::*;
use crate::damage::{Shown, try_all};

fn source(file: &str, module_path: &str) -> Source {
    Source {
        file: file.into(),
        crate_name: "app".into(),
        segments: module_path.split("::").map(str::to_owned).collect(),
        archs: Vec::new(),
    }
}

#[test]
fn modules_are_nested_as_on_the_host() {
    let modules =
        [source("/p/src/gpu/a.rs", "gpu::a"), source("/p/src/k.rs", "k"), source("/p/src/gpu/b/mod.rs", "gpu::b")];
    let mut text = String::new();
    let mut linked = Vec::new();
    let tree = Tree::new(&modules).unwrap();
    tree.write(&mut text, Path::new("/w/src"), Path::new("src"), &mut linked).unwrap();
    assert_eq!(
        text,
        "pub mod gpu {\n#[path = \"/p/src/gpu/a.rs\"]\npub mod a;\n#[path = \"/p/src/gpu/b/mod.rs\"]\npub mod b;\n}\n\
             #[path = \"/p/src/k.rs\"]\npub mod k;\n"
    );
    assert!(linked.is_empty());
}

#[cfg(unix)]
#[test]
fn sources_are_safe_from_builds_of_other_modules() {
    let root = std::env::temp_dir().join(format!("primitives-build-links-{}", std::process::id()));
    let sources = ["kernels.rs", "kernels/sort.rs", "kernels/sort/keys.rs"].map(|name| root.join("p/src").join(name));
    sources.iter().for_each(|file| files::write(file, "// kernels").unwrap());
    let src = root.join("w/src");
    for (file, path) in [(&sources[0], "kernels"), (&sources[1], "kernels::sort"), (&sources[0], "kernels")] {
        let modules = [source(file.to_str().unwrap(), path)];
        remove_links(&src).unwrap();
        let tree = Tree::new(&modules).unwrap();
        tree.write(&mut String::new(), &src, Path::new("src"), &mut Vec::new()).unwrap();
        for file in &sources {
            assert!(file.symlink_metadata().unwrap().is_file(), "{}", file.display());
        }
        assert_eq!(
            fs::read_to_string(src.join(path.replace("::", "/")).with_added_extension("rs")).unwrap(),
            "// kernels"
        );
    }
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn overlapping_modules_are_refused() {
    for (a, b) in [("k", "k"), ("k", "k::more"), ("k::more", "k")] {
        let modules = [source("/p/src/a.rs", a), source("/p/src/b.rs", b)];
        let message = Tree::new(&modules).unwrap_err().to_string();
        assert!(message.contains("name the outer one only"), "{message}");
    }
}

#[test]
fn outer_build_is_kept_away_but_registries_are_not() {
    for name in [
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTUP_TOOLCHAIN",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
        "CARGO_FEATURE_CUDA",
        "CARGO_CFG_TARGET_ARCH",
        "CARGO_PROFILE_RELEASE_LTO",
        "CARGO_INCREMENTAL",
        "KERNEL_PRIMITIVES_PTX",
        "CARGO_PKG_NAME",
        "OUT_DIR",
        "TARGET",
        "DEP_KERNEL_PRIMITIVES_MANIFEST_DIR",
    ] {
        assert!(is_of_outer_build(name), "{name}");
    }
    for name in ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_REGISTRIES_X_TOKEN", "PATH", "RUSTUP_HOME", "HOSTNAME"] {
        assert!(!is_of_outer_build(name), "{name}");
    }
}

#[test]
fn damage_is_told_from_errors_of_sources() {
    let warning = "warning: unused import: `All`\n --> src/kernels.rs:4:34\n  |\n";
    let mistake = "error[E0308]: mismatched types\n  --> src/kernels.rs:7:5\n";
    let macro_mistake = "error: expected `;`\n --> src/kernels.rs:7:5\n\nerror: could not compile `k` (lib)\n";
    let long = "error: one\n       two\n --> src/kernels.rs:7:5\n\nerror: could not compile `k` (lib)\n";
    let package = "error: no matching package named `gone` found\nlocation searched: crates.io index\n";
    let killed = "error: could not compile `k` (lib)\n\nCaused by:\n  process didn't exit successfully: `rustc` (signal: 9, SIGKILL: kill)\n";
    let std = "error[E0463]: can't find crate for `std`\n  |\n  = note: the `nvptx64-nvidia-cuda` target may not be installed\n\nerror: could not compile `rand` (lib) due to 1 previous error\n";
    let std_of_another = "error[E0463]: can't find crate for `std` which `rand` depends on\n --> src/kernels.rs:1:5\n";
    let alloc = "error[E0463]: can't find crate for `alloc`\n --> src/kernels.rs:1:1\n";
    for stderr in
        [mistake, macro_mistake, long, package, killed, std, std_of_another, alloc, &[warning, mistake].concat()]
    {
        assert!(!is_of_damage(stderr), "{stderr}");
    }
    let metadata = "error[E0786]: found invalid metadata files for crate `a`\n --> src/lib.rs:1:5\n";
    let object = "error: failed to load bitcode of module \"a\"\n\nerror: could not compile `k` (lib)\n";
    let core = "error[E0463]: can't find crate for `core`\n\nerror: could not compile `rand` (lib)\n";
    let dependency = "error[E0463]: can't find crate for `stdx`\n --> src/kernels.rs:1:5\n";
    for stderr in [metadata, object, core, dependency, &[warning, object].concat()] {
        assert!(is_of_damage(stderr), "{stderr}");
    }
}

/// Calls a function with what inner cargo runs of a package share.
fn with_inner<T>(edition: &str, features: &[String], take: impl FnOnce(&Inner<'_>) -> T) -> T {
    let compiler = Compiler { rustc: "/r/rustc".into(), release: "1.95.0".into(), llvm: 22 };
    take(&Inner {
        work: Path::new("/w"),
        cargo_dir: Path::new("/w"),
        package_root: Path::new("/p"),
        edition,
        facade: Path::new("/f"),
        lock_file: None,
        dependencies: &[],
        features,
        line_info: false,
        cargo: "cargo".into(),
        compiler: &compiler,
    })
}

#[test]
fn the_manifest_has_the_edition_of_the_package() {
    let manifest = with_inner("2021", &[], |inner| inner.manifest("app"));
    assert!(manifest.contains("\nname = \"ptx-entries-app\"\nversion = \"0.0.0\"\nedition = \"2021\"\n"), "{manifest}");
}

#[test]
fn the_compiler_gets_the_features_of_the_package() {
    let flags = with_inner("2024", &[], |inner| inner.feature_flags());
    assert_eq!(flags, ["--check-cfg", "cfg(feature, values(any()))"]);
    let features = ["f64-sums".to_owned(), "precise".to_owned()];
    let flags = with_inner("2024", &features, |inner| inner.feature_flags());
    assert_eq!(flags[..2], ["--check-cfg", "cfg(feature, values(any()))"]);
    assert_eq!(flags[2..], ["--cfg", "feature=\"f64-sums\"", "--cfg", "feature=\"precise\""]);
}

#[test]
fn no_part_of_a_users_path_or_settings_reaches_the_compiler() {
    // rustc takes a comma for the end of a kind of output.
    assert_eq!(emit("app"), "--emit=llvm-bc=../app.rustc.bc");
    assert!(cargo_config(false, Path::new("/w/target")).contains("\ndep-info-basedir = \"/w/target/none\"\n"));
}

#[test]
fn dep_info_paths_may_have_blanks() {
    let text = "/t/app.ptx: /p/src/kernels.rs /p\\ q/lib.rs\n\n/p/src/kernels.rs:\n";
    assert_eq!(parse_dep_info(text), [Path::new("/p/src/kernels.rs"), Path::new("/p q/lib.rs")]);
}

#[test]
fn damaged_dep_info_names_no_more_than_it_has() {
    let valid = &b"/t/app.ptx: /p/src/kernels.rs /p\\ q/lib.rs\n\n/p/src/kernels.rs:\n"[..];
    try_all(
        3000,
        |damage| Shown(damage.damaged(&[valid], &[": ", "\\ ", "\\", "\n"])),
        |Shown(bytes)| {
            let text = String::from_utf8_lossy(bytes);
            let paths = parse_dep_info(&text);
            let length: usize = paths.iter().map(|path| path.as_os_str().len()).sum();
            if length > text.len() { Err(format!("{paths:?}")) } else { Ok(()) }
        },
    );
}
