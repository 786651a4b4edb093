//! Tests environment variables with values that are not possible. The error names the variable.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use kernel_primitives::Device;
use kernel_primitives::algorithms::{TUNING_VARIABLE, Tuning};

use crate::damage::{Damage, cases, seed};

/// Returns the output of another process that has these variables.
fn printed(variables: &[(&str, OsString)]) -> String {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "environment::opens_the_device", "--nocapture"])
        .env("DOORS_CHILD", "1")
        .env_remove("KERNEL_PRIMITIVES_EMULATOR")
        .env_remove("KERNEL_PRIMITIVES_SEED")
        .env("KERNEL_PRIMITIVES_DEVICE", "emulator")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{variables:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs in a process with another environment.
#[test]
fn opens_the_device() {
    if std::env::var_os("DOORS_CHILD").is_none() {
        return;
    }
    match Device::auto() {
        Err(error) => println!("device error {error}"),
        Ok(device) => match Tuning::of(&device) {
            Err(error) => println!("tuning error {error}"),
            Ok(_) => println!("opened"),
        },
    }
}

#[cfg(unix)]
fn not_utf8(start: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec([start.as_bytes(), b"\xFF"].concat())
}

#[test]
fn what_a_variable_cannot_be_is_an_error_that_names_it() {
    let refused = |variable: &str, value: OsString, what: &str| {
        let text = printed(&[(variable, value)]);
        assert!(text.contains("device error") && text.contains(variable) && text.contains(what), "{what}: {text}");
    };
    let (device, emulator, seed) = ("KERNEL_PRIMITIVES_DEVICE", "KERNEL_PRIMITIVES_EMULATOR", "KERNEL_PRIMITIVES_SEED");
    refused(device, "emulator ".into(), "`emulator `: it can be");
    refused(device, "gpu:18446744073709551616".into(), "it can be `auto`");
    refused(device, "gpu:-1".into(), "it can be `auto`");
    refused(emulator, "CHECKED".into(), "it can be `checked` or `unchecked`");
    refused(seed, "18446744073709551616".into(), "a number from 0 to 2^64 - 1");
    refused(seed, "0x10".into(), "a number from 0");
    #[cfg(unix)]
    for variable in [device, emulator, seed] {
        refused(variable, not_utf8("1"), "it is no UTF-8");
    }
    assert!(printed(&[(seed, u64::MAX.to_string().into())]).contains("opened"));
}

#[test]
fn a_tuning_file_that_is_none_is_an_error_that_names_it() {
    let folder = std::env::temp_dir().join(format!("kernel-primitives-doors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for a while");
    let file = |name: &Path, text: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file for a while");
        path
    };
    let refused = |path: &Path, what: &str| {
        let text = printed(&[(TUNING_VARIABLE, path.into())]);
        assert!(text.contains("tuning error") && text.contains(what), "{what}: {text}");
        assert!(text.contains(TUNING_VARIABLE) || text.contains("line"), "{text}");
    };
    refused(&folder, "directory");
    refused(&folder.join("none"), "No such file");
    refused(&file("no-text".as_ref(), b"all reduce.blocks = 7\n\n\xFF"), "line 3 is no UTF-8");
    refused(&file("long".as_ref(), &vec![b'\n'; (1 << 20) + 1]), "it has more than 1048576 bytes");
    refused(&file("nul".as_ref(), b"all reduce.blocks = 7\0"), "line 1, `all reduce.blocks = 7\\0`");
    #[cfg(target_os = "linux")]
    refused(Path::new("/dev/zero"), "it has more than 1048576 bytes");
    #[cfg(target_os = "linux")]
    {
        let path = file(not_utf8("values").as_ref(), b"all reduce.blocks = x");
        refused(&path, "line 1, `all reduce.blocks = x`: `x` is no value");
        let path = file(not_utf8("values").as_ref(), b"\xEF\xBB\xBFall reduce.blocks = 7\r\n");
        assert!(printed(&[(TUNING_VARIABLE, path.into())]).contains("opened"));
    }
    std::fs::remove_dir_all(&folder).expect("it was there");
}

#[cfg(unix)]
#[test]
fn damaged_values_are_an_error_or_open_a_device() {
    use std::os::unix::ffi::OsStringExt;
    for case in 0..cases(400).div_ceil(20) {
        let mut damage = Damage::new(seed().wrapping_add(case));
        let mut value = |valid: &[&[u8]]| {
            let mut bytes = damage.damaged(valid, &["gpu:", "emulator", "checked", "auto", "0"]);
            // The system does not allow zero bytes.
            bytes.retain(|&byte| byte != 0);
            bytes.truncate(1 << 12);
            OsString::from_vec(bytes)
        };
        let variables = [
            ("KERNEL_PRIMITIVES_DEVICE", value(&[b"emulator", b"gpu", b"gpu:0", b"auto"])),
            ("KERNEL_PRIMITIVES_EMULATOR", value(&[b"checked", b"unchecked", b""])),
            ("KERNEL_PRIMITIVES_SEED", value(&[b"0", b"18446744073709551615", b""])),
            (TUNING_VARIABLE, value(&[b"", b"/dev/null", b"/nowhere/tuning.txt"])),
        ];
        let text = printed(&variables);
        assert!(
            ["device error", "tuning error", "opened"].iter().any(|way| text.contains(way)),
            "{variables:?}: {text}"
        );
    }
}
