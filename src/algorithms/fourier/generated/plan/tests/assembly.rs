//! Tests that ptxas accepts the kernels. The machine of the other tests does not know the types of registers, and accepts any immediate.

use std::path::{Path, PathBuf};
use std::process::Command;

use primitives_build::Toolchain;

use super::{ARCHITECTURES, limits, texts};
use crate::algorithms::fourier::FftKind;
use crate::algorithms::fourier::generated::plan::{Plan, ahead, plan};
use crate::algorithms::fourier::generated::text::code::Real;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("fourier-kernels-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns plans that together have all kinds of kernels.
fn plans(arch: u32) -> Vec<Plan> {
    // There are lines in a row: short and long ones, of prime lengths and of other lengths with large factors. There are real lines, some
    // of which have their half spectra in a pass of their own. And there are fused passes.
    let shapes: [(&[usize], &[usize], FftKind); 10] = [
        (&[64, 31], &[1], FftKind::Forward),
        (&[64, 1000], &[1], FftKind::Inverse),
        (&[64, 8192], &[1], FftKind::Forward),
        (&[64, 1009], &[1], FftKind::Forward),
        (&[64, 1018], &[1], FftKind::Forward),
        (&[64, 1024], &[1], FftKind::RealForward),
        (&[3, 1 << 20], &[1], FftKind::RealInverse),
        (&[1024, 1 << 16], &[1], FftKind::Forward),
        (&[1, 1 << 26], &[1], FftKind::Forward),
        (&[256, 256, 256], &[0, 1, 2], FftKind::RealForward),
    ];
    let mut plans = Vec::new();
    for (shape, axes, kind) in shapes {
        for real in [Real::F32, Real::F64] {
            let plan = plan(real, shape, axes, kind, limits(arch)).expect("a plan");
            // The following changes need only one architecture.
            if arch == 90 {
                plans.push(plan.clone().split([true; 2]).scaled());
            }
            if arch == 90 && matches!(kind, FftKind::Forward | FftKind::Inverse) {
                plans.push(plan.clone().of_reals());
            }
            plans.push(plan);
        }
    }
    for n in [1 << 24, 1 << 26] {
        for plan in [Real::F32, Real::F64].into_iter().filter_map(|real| ahead(real, &[n], &[0], limits(arch))) {
            plans.push(plan.clone().scaled().inverse());
            plans.push(plan);
        }
    }
    plans
}

/// Assembles a text into a file next to `base`.
fn assemble(ptxas: &Path, base: &Path, arch: u32, text: &str) {
    let (input, cubin) = (base.with_extension("ptx"), base.with_extension("cubin"));
    std::fs::write(&input, text).expect("a temporary file");
    let arch = format!("-arch=sm_{arch}");
    let output = Command::new(ptxas).arg(&arch).arg(&input).arg("-o").arg(&cubin).output().expect("ptxas runs");
    assert!(output.status.success(), "{arch}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn kernels_are_assembled_for_every_architecture() {
    let tools = Toolchain::find().expect("the tools of the build");
    let (ptxas, folder) = (tools.ptxas().expect("ptxas"), Folder::new());
    let folder = &folder;
    std::thread::scope(|scope| {
        for arch in ARCHITECTURES {
            scope.spawn(move || {
                let texts: Vec<String> = plans(arch).iter().flat_map(|plan| texts(plan, arch)).collect();
                for (i, text) in texts.iter().enumerate() {
                    assemble(ptxas, &folder.0.join(format!("sm_{arch}-{i}")), arch, text);
                }
            });
        }
    });
}
