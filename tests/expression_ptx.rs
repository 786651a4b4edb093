//! Tests the kernels of expressions. ptxas must take them for every architecture that is built. Their accesses must be as wide as possible,
//! and they must not spill.

#![cfg(feature = "cuda")]

use std::path::PathBuf;
use std::process::Command;

use half::{bf16, f16};
use kernel_primitives::expr::*;
use kernel_primitives::kernels::functions;
use kernel_primitives::{Device, Result, Stream};
use primitives_build::Toolchain;

/// The kernels by name, for any architecture.
struct Kernels {
    tools: Toolchain,
    /// The architectures of the library's kernels and of its functions, which kernels of expressions call. These are all four, unless
    /// `KERNEL_PRIMITIVES_ARCHS` names fewer.
    built: Vec<u32>,
    failures: Vec<String>,
}

/// Returns the bytes of spilled registers that each function stores and loads, one after another, as ptxas reports them.
fn spills(report: &str) -> Vec<u32> {
    let lines = report.lines().filter(|line| line.contains("spill"));
    let parts = lines.flat_map(|line| line.split(',')).filter(|part| part.contains("spill"));
    let number = |part: &str| part.split_whitespace().next().and_then(|bytes| bytes.parse().ok());
    parts.map(|part| number(part).unwrap_or_else(|| panic!("no number in: {part}"))).collect()
}

#[test]
fn spills_are_read_from_the_report_of_ptxas() {
    let of = |stores: u32, loads: u32| {
        format!("ptxas info    : x\n    16 bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n")
    };
    assert_eq!(spills(&of(0, 0)), [0, 0]);
    assert_eq!(spills(&of(40, 0)), [40, 0]);
    assert_eq!(spills(&(of(0, 0) + &of(0, 120))), [0, 0, 0, 120]);
}

impl Kernels {
    fn new() -> Self {
        let built: Vec<u32> = functions::all()[0].images().map(|image| image.arch).collect();
        assert!(!built.is_empty(), "functions were built");
        Self { tools: Toolchain::find().expect("the tools of the build"), built, failures: Vec::new() }
    }

    /// Assembles a kernel for these architectures. `check` returns whether its text is right.
    fn kernel(&mut self, name: &str, text: impl Fn(u32) -> Result<String>, check: impl Fn(&str) -> bool) -> Result<()> {
        for &arch in &self.built {
            let text = text(arch)?;
            // Tables of device functions never change.
            let body = text.split_once(".entry").expect("an entry").1;
            let waits = arch >= 90 && !body.contains("global.nc");
            assert_eq!(text.contains("griddepcontrol.wait;"), waits, "{name} for sm_{arch}");
            // Another run of this test has files of its own. Those of a failure stay.
            let base = format!("{}.expression.{name}.sm_{arch}", std::process::id());
            let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(base);
            let (input, cubin) = (base.with_added_extension("ptx"), base.with_added_extension("cubin"));
            std::fs::write(&input, &text).unwrap();
            let output = Command::new(self.tools.ptxas().expect("ptxas"))
                .args([&format!("-arch=sm_{arch}"), "-v"])
                .arg(&input)
                .arg("-o")
                .arg(&cubin)
                .output()
                .expect("ptxas runs");
            let report = String::from_utf8_lossy(&output.stderr).into_owned();
            let spills = spills(&report);
            if !output.status.success() || spills.is_empty() || spills.iter().any(|&bytes| bytes > 0) || !check(&text) {
                self.failures.push(format!("{}: {report}", input.display()));
            } else {
                [input, cubin].iter().for_each(|file| std::fs::remove_file(file).unwrap());
            }
        }
        Ok(())
    }

    fn finish(self) {
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n"));
    }
}

fn stream() -> Stream {
    Device::emulator().stream().expect("a stream of the emulator")
}

/// Returns whether the text has accesses of 16 bytes, for this number of operands.
fn wide(text: &str, loads: usize) -> bool {
    let vectors = |space: &str| {
        text.matches(&format!("{space}.v4.b32")).count()
            + text.matches(&format!("{space}.v2.b64")).count()
            + text.matches(&format!("{space}.v4.f32")).count()
            + text.matches(&format!("{space}.v2.f64")).count()
    };
    vectors("ld.global") >= loads && vectors("st.global") >= 1
}

#[test]
fn rows_of_every_type_are_read_by_16_bytes() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    macro_rules! types {
        ($($t:ty),*) => {$({
            let [a, b, c] = [0; 3].map(|_| Tensor::<$t>::zeros(&stream, [64, 1024]).unwrap());
            let name = |what: &str| format!("{what}.{}", <$t as Scalar>::DTYPE);
            kernels.kernel(&name("add"), |arch| a.ptx(&b + &c, arch), |text| wide(text, 2))?;
            kernels.kernel(&name("row"), |arch| a.ptx(&b + c.slice(0)?, arch), |text| wide(text, 2))?;
            kernels.kernel(&name("column"), |arch| a.ptx(&b * c.slice((.., 0..1))?, arch), |text| wide(text, 1))?;
            // A thread takes eight bytes at once, because divisions take many registers.
            let bytes = size_of::<$t>() == 1;
            kernels.kernel(
                &name("rest"),
                |arch| a.ptx(floor_rem(&b, maximum(&c, &b)), arch),
                |text| if bytes { text.contains("ld.global.v2.b32") } else { wide(text, 2) },
            )?;
            let compared = Tensor::<bool>::zeros(&stream, [64, 1024])?;
            kernels.kernel(&name("less"), |arch| compared.ptx(b.lt(&c), arch), |_| true)?;
            for axes in [&[][..], &[0], &[1]] {
                kernels.kernel(&name(&format!("sum{axes:?}")), |arch| b.sum().axes(axes).ptx(arch), |_| true)?;
            }
            kernels.kernel(&name("sum"), |arch| b.sum().ptx(arch), |text| text.contains("ld.global.v"))?;
            kernels.kernel(&name("arg_max"), |arch| b.arg_max().ptx(arch), |_| true)?;
            kernels.kernel(&name("arg_min0"), |arch| b.arg_min().axes(&[0]).ptx(arch), |_| true)?;
        })*};
    }
    types!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
    kernels.finish();
    Ok(())
}

#[test]
fn conversions_between_all_types_assemble() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    macro_rules! from {
        ($a:ty: $($b:ty),*) => {$({
            let (a, b) = (Tensor::<$a>::zeros(&stream, 4096)?, Tensor::<$b>::zeros(&stream, 4096)?);
            let name = format!("{}.to.{}", <$a as Scalar>::DTYPE, <$b as Scalar>::DTYPE);
            kernels.kernel(&name, |arch| b.ptx(a.cast::<$b>(), arch), |_| true)?;
        })*};
    }
    macro_rules! all {
        ($($a:ty),*) => { $(from!($a: bool, i8, i32, i64, u16, u32, u64, f16, bf16, f32, f64);)* };
    }
    all!(bool, i8, i32, u16, i64, u64, f16, bf16, f32, f64);
    kernels.finish();
    Ok(())
}

#[test]
fn fused_and_turned_kernels_spill_nothing() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    let [a, b, c, d, e, f] = [0; 6].map(|_| Tensor::<f32>::zeros(&stream, [256, 256]).unwrap());
    kernels.kernel("fused5", |arch| a.ptx(&b + &c * &d + sin(&e) * &f + 10.0, arch), |text| wide(text, 5))?;
    kernels.kernel(
        "functions",
        |arch| a.ptx(pow(exp(&b), tanh(&c)) + erf(&d) * atan2(&e, &f) + ln(abs(&b)) + normal::<f32>(1), arch),
        |text| wide(text, 5),
    )?;
    // The transpose goes through shared memory, with rows on both sides.
    kernels.kernel(
        "transpose",
        |arch| a.ptx(b.t(), arch),
        |text| text.contains("bar.sync") && text.contains("st.shared"),
    )?;
    kernels.kernel(
        "normal",
        |arch| a.ptx(normal::<f32>(1), arch),
        // This is in place, with fused multiplications. The one call is for the elements after the last vector.
        |text| text.matches("call (").count() == 1 && text.contains("fma.rn.f32") && wide(text, 0),
    )?;
    kernels.kernel("symmetric", |arch| a.ptx(&b * b.t() + &c, arch), |text| text.contains("bar.sync"))?;
    // Before sm_80, this uses `f64`.
    let [x, y, z] = [0; 3].map(|_| Tensor::<bf16>::zeros(&stream, 4096).unwrap());
    kernels.kernel("mul_add.bf16", |arch| x.ptx(mul_add(&x, &y, &z), arch), |text| wide(text, 3))?;
    let table = Tensor::<f32>::zeros(&stream, 100)?;
    let index = Tensor::<i32>::zeros(&stream, [256, 256])?;
    kernels.kernel(
        "gather",
        |arch| a.ptx(gather(&table, &index / 3), arch),
        |text| text.contains("kp_control") && text.contains("division_by_zero"),
    )?;
    kernels.kernel(
        "strided",
        |arch| a.slice((.., ..128))?.ptx(b.slice((.., AxisSlice::from(..).by(-2)))?, arch),
        |_| true,
    )?;
    let views = [a.slice((1.., 3..))?, b.slice((1.., 3..))?];
    // No access is wider than the alignment of its address.
    kernels.kernel("unaligned", |arch| views[0].ptx(&views[1] + 1.0, arch), |text| !text.contains("global.v"))?;
    kernels.finish();
    Ok(())
}

#[test]
fn stencils_of_every_type_and_boundary_spill_nothing() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    macro_rules! types {
        ($($t:ty: $outside:expr),*) => {$({
            let [y, x] = [0; 2].map(|_| Tensor::<$t>::zeros(&stream, [64, 1024]).unwrap());
            // Rows are not multiples of a vector, and do not begin at the memory's beginning.
            let odd = |x: &Tensor<$t>| x.slice((1.., 3..)).unwrap();
            for (name, boundary) in [
                ("clamp", Boundary::Clamp),
                ("periodic", Boundary::Periodic),
                ("mirror", Boundary::Mirror),
                ("symmetric", Boundary::Symmetric),
                ("constant", Boundary::Constant($outside)),
            ] {
                let most = |x: &Tensor<$t>| {
                    stencil(x, boundary, |n| {
                        let (across, along) = (maximum(n.at(-1), n.at(1)), maximum(n.at([-1, 0]), n.at([1, 0])));
                        maximum(maximum(across, along), n.at(0))
                    })
                };
                let name = |what: &str| format!("stencil.{what}.{name}.{}", <$t as Scalar>::DTYPE);
                // A thread reads the row itself and the rows beside it.
                kernels.kernel(&name("five"), |arch| y.ptx(most(&x), arch), |text| wide(text, 3))?;
                kernels.kernel(
                    &name("odd"),
                    |arch| odd(&y).ptx(most(&odd(&x)), arch),
                    |text| !text.contains("global.v"),
                )?;
                for axes in [&[][..], &[0], &[1]] {
                    kernels.kernel(&name(&format!("max{axes:?}")), |arch| most(&x).max().axes(axes).ptx(arch), |_| true)?;
                }
            }
        })*};
    }
    types!(bool: true, i8: -3, u16: 3, i32: -9, u64: 9, f16: f16::ONE, bf16: bf16::ONE, f32: 2.5, f64: 2.5);
    kernels.finish();
    Ok(())
}

/// Several steps are one kernel, whose warps keep rows in registers.
#[test]
fn steps_of_every_type_and_boundary_spill_nothing() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    macro_rules! types {
        ($($t:ty: $outside:expr),*) => {$({
            let [y, x] = [0; 2].map(|_| Tensor::<$t>::zeros(&stream, [2048, 1024]).unwrap());
            // A lane has four elements, or two elements of 8 bytes.
            let in_vectors = |text: &str| match size_of::<$t>() {
                1 => text.contains("ld.global.b32") && text.contains("st.global.b32"),
                2 => text.contains("ld.global.v2.b32") && text.contains("st.global.v2.b32"),
                _ => wide(text, 1),
            };
            for (name, boundary) in [
                ("clamp", Boundary::Clamp),
                ("periodic", Boundary::Periodic),
                ("mirror", Boundary::Mirror),
                ("symmetric", Boundary::Symmetric),
                ("constant", Boundary::Constant($outside)),
                ("interior", Boundary::Interior),
            ] {
                let most = || {
                    stencil(&x, boundary, |n| {
                        let (across, along) = (maximum(n.at(-1), n.at(1)), maximum(n.at([-1, 0]), n.at([1, 0])));
                        maximum(maximum(across, along), n.at(0))
                    })
                };
                kernels.kernel(
                    &format!("steps.five.{name}.{}", <$t as Scalar>::DTYPE),
                    |arch| y.ptx(most().steps(8), arch),
                    |text| text.contains("shfl.sync") && in_vectors(text),
                )?;
            }
        })*};
    }
    types!(bool: true, i8: -3, u16: 3, i32: -9, u64: 9, f16: f16::ONE, bf16: bf16::ONE, f32: 2.5, f64: 2.5);
    kernels.finish();
    Ok(())
}

/// Neighbours are along rows only, another tensor is read, or rows have no vectors.
#[test]
fn steps_of_other_forms_spill_nothing() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    let [y, x, f] = [0; 3].map(|_| Tensor::<f32>::zeros(&stream, [2048, 1024]).unwrap());
    // Rows are not multiples of a vector, and do not begin at the memory's beginning.
    let odd = |x: &Tensor<f32>| x.slice((1.., 3..)).unwrap();
    let shuffles = |text: &str| text.contains("shfl.sync");
    for (name, boundary) in
        [("mirror", Boundary::Mirror), ("constant", Boundary::Constant(2.5)), ("interior", Boundary::Interior)]
    {
        let name = |what: &str| format!("steps.{what}.{name}");
        let five =
            |x: &Tensor<f32>| stencil(x, boundary, |n| 0.25 * (n.at(-1) + n.at(1) + n.at([-1, 0]) + n.at([1, 0])));
        kernels.kernel(
            &name("odd"),
            |arch| odd(&y).ptx(five(&odd(&x)).steps(8), arch),
            |text| shuffles(text) && !text.contains("global.v"),
        )?;
        let row = || stencil(&x, boundary, |n| n.at(-3) + n.at(0) + n.at(3));
        kernels.kernel(&name("row"), |arch| y.ptx(row().steps(4), arch), shuffles)?;
        if boundary != Boundary::Interior {
            kernels.kernel(&name("other"), |arch| y.ptx((five(&x) + &f).steps(3), arch), shuffles)?;
        }
    }
    kernels.finish();
    Ok(())
}

/// Returns the number of loads of four elements, and of one element.
fn loads(text: &str) -> (usize, usize) {
    let text = text.replace("global.nc", "global");
    (text.matches("ld.global.v4").count(), text.matches("ld.global.f32").count())
}

/// If there are many rows, a thread has a vector in several rows. It reads the rows that these have in common once.
#[test]
fn rows_of_stencils_share_what_is_around_them() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    for (name, boundary) in [
        ("clamp", Boundary::Clamp),
        ("periodic", Boundary::Periodic),
        ("mirror", Boundary::Mirror),
        ("symmetric", Boundary::Symmetric),
        ("constant", Boundary::Constant(2.5)),
    ] {
        let [y, x] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [2048, 1024]).unwrap());
        let five = || stencil(&x, boundary, |n| n.at([-1, 0]) + n.at([1, 0]) + n.at(-1) + n.at(1) - 4.0 * n.at(0));
        // A thread reads four rows, one row above and one below. For each of the four rows, it reads one element on each side.
        kernels.kernel(&format!("rows.five.{name}"), |arch| y.ptx(five(), arch), |text| loads(text) == (6, 8))?;
        let [y, x] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [64, 128, 256]).unwrap());
        let seven = || {
            let axes = |n: &Neighbours<f32>, by| n.at([by, 0, 0]) + n.at([0, by, 0]) + n.at(by);
            stencil(&x, boundary, |n| axes(n, -1) + axes(n, 1) - 6.0 * n.at(0))
        };
        // A thread reads four rows, one above, one below, and four before and behind. It reads the neighbours of each row after the stores
        // of the rows before it.
        kernels.kernel(
            &format!("rows.seven.{name}"),
            |arch| y.ptx(seven(), arch),
            |text| {
                let (first, rest) = text.split_once("st.global").unwrap_or_default();
                loads(first) == (5, 2) && loads(rest) == (9, 6)
            },
        )?;
    }
    kernels.finish();
    Ok(())
}

/// Each element around a vector is read once. It is read by a vector, unless it is the only element of its 16 bytes.
#[test]
fn what_neighbours_have_in_common_is_read_once() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    let [y, x] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, 1 << 16).unwrap());
    // A thread reads the vector itself and one element on each side, or vectors of a tile. At the ends of rows, it reads single elements.
    for (width, vector, vectors, single) in [(3, 4, 1, 2), (9, 2, 4, 4), (33, 2, 6, 4)] {
        let weights = vec![0.5f32; width];
        let sums = || convolve(&x, &weights, width as isize / 2, Boundary::Clamp).contract();
        kernels.kernel(
            &format!("convolve.{width}"),
            |arch| y.ptx(sums(), arch),
            |text| (text.matches(&format!("ld.global.v{vector}")).count(), loads(text).1) == (vectors, single),
        )?;
    }
    // There are more elements than 31 bits count.
    let many = x.slice(..1)?.broadcast_to(1 << 31)?;
    for (name, boundary, place) in
        [("constant", Boundary::Constant(1.0), "setp.lt.s64"), ("mirror", Boundary::Mirror, "max.s64")]
    {
        let sum = || stencil(&many, boundary, |n| n.at(-1) + n.at(1)).sum();
        kernels.kernel(&format!("many.{name}"), |arch| sum().ptx(arch), |text| text.contains(place))?;
    }
    for reach in [1isize, 2, 3] {
        let [y, x] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, [32, 64, 128]).unwrap());
        let along = move || -reach..=reach;
        let cube = |n: &Neighbours<f32>| {
            let all = along().flat_map(|z| along().flat_map(move |y| along().map(move |x| [z, y, x])));
            all.map(|by| n.at(by)).reduce(|a, b| a + b).unwrap()
        };
        let sums = || stencil(&x, Boundary::Mirror, cube);
        kernels.kernel(&format!("cube.{reach}"), |arch| y.ptx(sums(), arch), |_| true)?;
    }
    kernels.finish();
    Ok(())
}

/// Many neighbours in a row are read through shared memory, by vectors or by elements of 8 bytes.
#[test]
fn wide_rows_of_every_type_and_boundary_spill_nothing() -> Result<()> {
    let (stream, mut kernels) = (stream(), Kernels::new());
    macro_rules! types {
        ($($t:ty: $outside:expr),*) => {$({
            let [y, x] = [0; 2].map(|_| Tensor::<$t>::zeros(&stream, [4, 6144]).unwrap());
            // Rows are not multiples of a vector, and do not begin at the memory's beginning.
            let odd = |x: &Tensor<$t>| x.slice((1.., 3..)).unwrap();
            // Accesses of 8 bytes or more: these are vectors, or elements. Elements of f64 are copied as words; the ends of rows are not.
            let is_wide = |text: &str, access: &str, width: usize| {
                let elements = size_of::<$t>() == 8 && width < 64;
                let name = if !elements { ".v" } else if access == "ld.shared" { ".f64" } else { ".b64" };
                text.contains(&format!("{access}{name}"))
            };
            for (name, boundary) in [
                ("clamp", Boundary::Clamp),
                ("periodic", Boundary::Periodic),
                ("mirror", Boundary::Mirror),
                ("symmetric", Boundary::Symmetric),
                ("constant", Boundary::Constant($outside)),
            ] {
                for width in [9, 33, 64, 66] {
                    let weights = vec![$outside; width];
                    let sums = |x: &Tensor<$t>| convolve(x, &weights, width as isize / 3, boundary);
                    let name = |what: &str| format!("row.{what}.{width}.{name}.{}", <$t as Scalar>::DTYPE);
                    kernels.kernel(
                        &name("whole"),
                        |arch| y.ptx(sums(&x), arch),
                        |text| ["ld.shared", "st.shared", "ld.global"].iter().all(|access| is_wide(text, access, width)),
                    )?;
                    if width > 9 {
                        kernels.kernel(
                            &name("odd"),
                            |arch| odd(&y).ptx(sums(&odd(&x)) + &odd(&x), arch),
                            |text| {
                                let wide = ["ld.shared", "st.shared"].iter().all(|access| is_wide(text, access, width));
                                wide && !text.contains("global.v")
                            },
                        )?;
                    }
                }
            }
        })*};
    }
    types!(u8: 3, i32: -9, f16: f16::ONE, bf16: bf16::ONE, f32: 2.5, f64: 2.5);
    let [y, x] = [0; 2].map(|_| Tensor::<f32>::zeros(&stream, 1 << 16).unwrap());
    let widest = || convolve(&x, &[0.5; 2048], 1024, Boundary::Clamp);
    kernels.kernel("row.widest", |arch| y.ptx(widest(), arch), |text| text.contains("ld.shared.v4"))?;
    kernels.kernel("row.widest.contracted", |arch| y.ptx(widest().contract(), arch), |text| text.contains("fma.rn"))?;
    kernels.finish();
    Ok(())
}

/// The test counts how often an instruction is in the text.
#[test]
fn equal_parts_are_computed_once() -> Result<()> {
    let stream = stream();
    let [a, b, c, d] = [0; 4].map(|_| Tensor::<f64>::zeros(&stream, [7, 33]).unwrap());
    // Rows are not multiples of a vector, so a thread has one element.
    let view = |x: &Tensor<f64>| x.slice((.., ..32)).unwrap();
    let [a, b, c, d] = [a, b, c, d].map(|x| view(&x));
    let count = |expr: Expr<f64>, what: &str| -> Result<usize> {
        let text = a.ptx(expr, 90)?;
        assert_eq!(text.matches("st.global").count(), 1);
        Ok(text.matches(what).count())
    };
    let product = || &b * &c;
    assert_eq!(count(product() + product() / (product() - &d), "mul.rn.f64")?, 1);
    assert_eq!(count(product() + product() / (product() - &d), "ld.global")?, 3);
    assert_eq!(count(sin(product()) * sin(product()) + square(sin(&b * &c)), "call ")?, 1);
    let shared = product();
    assert_eq!(count(shared.clone() * &shared, "mul.rn.f64")?, 2);
    // If a sum takes its products, they are not computed alone.
    assert_eq!(count((product() + &d).contract(), "mul.rn.f64")?, 0);
    assert_eq!(count((product() + &d).contract(), "fma.rn.f64")?, 1);
    Ok(())
}

/// The test counts the addresses.
#[test]
fn what_is_computed_in_place_has_one_address() -> Result<()> {
    let stream = stream();
    let [a, b, c] = [0; 3].map(|_| Tensor::<f32>::zeros(&stream, 1000).unwrap());
    let addresses = |expr: Expr<f32>| -> Result<usize> { Ok(a.ptx(expr, 90)?.matches("cvta.to.global.u64").count()) };
    assert_eq!(addresses(&b + &c)?, 3);
    assert_eq!(addresses(&a + &c)?, 2);
    assert_eq!(addresses(&a * &a + 1.0)?, 1);
    Ok(())
}
