//! What ptxas says about each kernel.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::arch::Limits;

pub(crate) mod dump;
pub(crate) mod progress;

/// Resources of one kernel on one architecture, as ptxas reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The kernel: `crate::module::kernel`.
    pub kernel: String,
    /// Compute capability times ten.
    pub arch: u32,
    /// The architecture of the PTX that was assembled.
    pub ptx: u32,
    /// The most threads of a block, 0 if the kernel does not say.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes.
    pub shared: u32,
    /// Dynamic shared memory per block for the kernel's `Shared` parameters, in bytes. That of a `SharedSlice` is the
    /// launch's.
    pub dynamic: u32,
    /// Stack per thread, in bytes, calls included.
    pub stack: u32,
    /// Bytes stored by register spills, in the kernel and what it calls.
    pub spill_stores: u32,
    /// Bytes loaded by register spills, in the kernel and what it calls.
    pub spill_loads: u32,
    /// Constant memory in bytes, all banks; ptxas leaves it out for newer architectures.
    pub constant: u32,
}

impl Usage {
    /// Adds to `self`, of a kernel and an architecture, what `ptxas -v` wrote about a module with one entry; `None` if that says
    /// nothing of an entry, or has a number that is none.
    pub(crate) fn with(self, text: &str) -> Option<Self> {
        let mut usage = self;
        let mut frame = 0;
        let mut found = false;
        for line in text.lines() {
            let line = line.trim();
            if line.ends_with("bytes spill loads") {
                for part in line.split(", ") {
                    if part.ends_with("stack frame") {
                        frame = frame.max(leading_number(part)?);
                    } else if part.ends_with("spill stores") {
                        usage.spill_stores = usage.spill_stores.checked_add(leading_number(part)?)?;
                    } else if part.ends_with("spill loads") {
                        usage.spill_loads = usage.spill_loads.checked_add(leading_number(part)?)?;
                    }
                }
            } else if let Some((_, used)) = line.split_once(": Used ") {
                // Functions that are called rather than inlined have no line of their own.
                found = true;
                for part in used.split(", ") {
                    if part.ends_with("registers") {
                        usage.registers = usage.registers.max(leading_number(part)?);
                    } else if part.ends_with("cumulative stack size") {
                        usage.stack = leading_number(part)?;
                    } else if part.ends_with("smem") {
                        usage.shared = leading_number(part)?;
                    } else if part.contains("bytes cmem[") {
                        usage.constant = usage.constant.checked_add(leading_number(part)?)?;
                    }
                }
            }
        }
        usage.stack = usage.stack.max(frame);
        found.then_some(usage)
    }

    /// What keeps blocks of the kernel from starting on its architecture, for people to read: too much shared memory, too
    /// many threads, too many registers for so many threads. Nothing if they can start.
    pub fn misfit(&self) -> Option<String> {
        let limits = Limits::of(self.arch);
        // The launch puts dynamic memory behind the static one, aligned.
        let shared = (self.shared as u128).next_multiple_of(16) + self.dynamic as u128;
        // A warp gets registers in units of 256, and the warps are spread over four parts of a multiprocessor.
        let warps = (self.threads as u128).div_ceil(32).next_multiple_of(4);
        let registers = warps * (32 * self.registers as u128).next_multiple_of(256);
        [("bytes of shared memory", shared, limits.shared), ("threads", self.threads as u128, limits.threads)]
            .into_iter()
            .chain([("registers", registers, limits.registers)])
            .find(|&(_, used, limit)| used > limit as u128)
            .map(|(what, used, limit)| format!("{used} {what} a block, of {limit}"))
    }

    /// The columns of `report.tsv` between the kernel's name and [what keeps it from starting](Self::misfit).
    fn numbers(&mut self) -> [(&'static str, &mut u32); 10] {
        [
            ("arch", &mut self.arch),
            ("ptx", &mut self.ptx),
            ("threads", &mut self.threads),
            ("registers", &mut self.registers),
            ("shared", &mut self.shared),
            ("dynamic", &mut self.dynamic),
            ("stack", &mut self.stack),
            ("spill_stores", &mut self.spill_stores),
            ("spill_loads", &mut self.spill_loads),
            ("constant", &mut self.constant),
        ]
    }

    fn head() -> String {
        let columns = Self::default().numbers().map(|(name, _)| name);
        format!("kernel\t{}\tmisfit", columns.join("\t"))
    }

    /// The line of `report.tsv`.
    pub(crate) fn to_line(&self) -> String {
        let numbers = self.clone().numbers().map(|(_, number)| number.to_string());
        format!("{}\t{}\t{}", self.kernel, numbers.join("\t"), self.misfit().unwrap_or_default())
    }

    /// Reads back what [`Usage::to_line`] wrote.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut usage = Self { kernel: fields.next()?.to_owned(), ..Self::default() };
        for (_, number) in usage.numbers() {
            *number = fields.next()?.parse().ok()?;
        }
        Some(usage)
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

/// The result of a build: the kernels, and what ptxas says about them.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) directory: PathBuf,
    pub(crate) kernels: Vec<String>,
    pub(crate) usage: Vec<Usage>,
}

impl Report {
    /// The folder with the PTX, the value of `KERNEL_PRIMITIVES_PTX`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Every kernel as `crate::module::kernel`, sorted.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// Resources per kernel and architecture; empty where no cubins were made.
    pub fn usage(&self) -> &[Usage] {
        &self.usage
    }

    /// One kernel's resources on one architecture.
    pub fn usage_of(&self, kernel: &str, arch: u32) -> Option<&Usage> {
        self.usage.iter().find(|usage| usage.kernel == kernel && usage.arch == arch)
    }
}

/// The text of `report.tsv`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Usage::head())?;
        self.usage.iter().try_for_each(|usage| writeln!(f, "{}", usage.to_line()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    #[test]
    fn report_of_a_kernel_with_a_called_function() {
        let text = "\
ptxas info    : 464 bytes gmem, 40 bytes cmem[4]
ptxas info    : Compiling entry function 'a__trig' for 'sm_75'
ptxas info    : Function properties for a__trig
    40 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 28 registers, used 1 barriers, 48 bytes cumulative stack size, 4096 bytes smem, 384 bytes cmem[0], 32 bytes cmem[2]
ptxas info    : Compile time = 30.795 ms
ptxas info    : Function properties for slow
    0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
";
        let usage =
            Usage { kernel: "a::trig".into(), arch: 86, ptx: 80, threads: 256, dynamic: 64, ..Usage::default() };
        let expected = Usage {
            registers: 28,
            shared: 4096,
            stack: 48,
            spill_stores: 12,
            spill_loads: 16,
            constant: 416,
            ..usage.clone()
        };
        let usage = usage.with(text).unwrap();
        assert_eq!(usage, expected);
        assert_eq!(Usage::from_line(&usage.to_line()), Some(expected));
        assert_eq!(Usage::head().split('\t').count(), usage.to_line().split('\t').count());
    }

    #[test]
    fn blocks_that_cannot_start_are_told() {
        let usage = |arch, threads, registers, dynamic| Usage { arch, threads, registers, dynamic, ..Usage::default() };
        for (arch, kib) in [(75, 64), (80, 163), (86, 99), (87, 163), (89, 99), (90, 227), (100, 227), (120, 99)] {
            assert_eq!(usage(arch, 1024, 64, kib * 1024).misfit(), None);
            let misfit = usage(arch, 1024, 64, kib * 1024 + 1).misfit().unwrap();
            assert!(misfit.ends_with(&format!("bytes of shared memory a block, of {}", kib * 1024)), "{misfit}");
            // Static memory counts too.
            assert!(Usage { shared: 1, ..usage(arch, 32, 16, kib * 1024) }.misfit().is_some());
            assert!(usage(arch, 1025, 16, 0).misfit().is_some());
        }
        for (threads, registers, fits) in [
            (0, 255, true),
            (256, 255, true),
            (257, 255, false),
            (512, 128, true),
            (512, 129, false),
            (1024, 64, true),
            (1024, 65, false),
            // 25 warps are counted as 28.
            (768, 80, true),
            (800, 80, false),
            (800, 72, true),
        ] {
            assert_eq!(usage(90, threads, registers, 0).misfit().is_none(), fits, "{threads} of {registers}");
        }
    }

    #[test]
    fn report_of_older_and_newer_toolkits() {
        let newer = "ptxas info    : Used 16 registers, used 0 barriers\n";
        assert_eq!(Usage::default().with(newer).unwrap().registers, 16);
        let older = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 10 registers, 360 bytes cmem[0]\n";
        let usage = Usage::default().with(older).unwrap();
        assert_eq!((usage.registers, usage.constant, usage.shared), (10, 360, 0));
        assert_eq!(Usage::default().with("ptxas info    : 0 bytes gmem\n"), None);
    }

    #[test]
    fn numbers_that_are_none_are_no_report() {
        let spills = "    0 bytes stack frame, 4000000000 bytes spill stores, 0 bytes spill loads\n";
        let used = |registers: &str| format!("ptxas info    : Used {registers} registers\n");
        assert!(Usage::default().with(&(spills.to_owned() + &used("16"))).is_some());
        // Functions that are called add theirs.
        assert_eq!(Usage::default().with(&(spills.repeat(2) + &used("16"))), None);
        assert_eq!(Usage::default().with(&used("4294967296")), None);
        assert_eq!(Usage::default().with(&used("many")), None);
    }

    #[test]
    fn damaged_reports_are_none_or_can_be_written() {
        let report = "ptxas info    : 464 bytes gmem, 40 bytes cmem[4]\n\
            ptxas info    : Function properties for a__trig\n    \
            40 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Used 28 registers, used 1 barriers, 48 bytes cumulative stack size, 4096 bytes smem, 384 bytes \
            cmem[0], 32 bytes cmem[2]\n";
        let line = "a::trig\t75\t28\t4096\t48\t12\t16\t416";
        let words = ["\t", ", ", ": Used ", " registers", " bytes smem", " bytes spill loads", " bytes cmem[0]"];
        try_all(
            3000,
            |damage| Shown(damage.damaged(&[report.as_bytes(), line.as_bytes()], &words)),
            |Shown(bytes)| {
                let text = String::from_utf8_lossy(bytes);
                let lines = text.lines().filter_map(Usage::from_line);
                let kernel = Usage { kernel: "a::trig".to_owned(), arch: 75, ..Usage::default() };
                for usage in kernel.with(&text).into_iter().chain(lines) {
                    if Usage::from_line(&usage.to_line()) != Some(usage) {
                        return Err("another report is read back".into());
                    }
                }
                Ok(())
            },
        );
    }
}
