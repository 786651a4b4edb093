//! What ptxas says about each kernel.

use std::fmt;
use std::path::{Path, PathBuf};

/// Resources of one kernel on one architecture, as ptxas reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The kernel: `crate::module::kernel`.
    pub kernel: String,
    /// Compute capability times ten.
    pub arch: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes; dynamic shared memory is the launch's.
    pub shared: u32,
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
    /// Parses what `ptxas -v` wrote about a module with one entry.
    pub(crate) fn parse(kernel: &str, arch: u32, text: &str) -> Option<Self> {
        let mut usage = Self { kernel: kernel.to_owned(), arch, ..Self::default() };
        let mut frame = 0;
        let mut found = false;
        for line in text.lines() {
            let line = line.trim();
            if line.ends_with("bytes spill loads") {
                for part in line.split(", ") {
                    let value = leading_number(part);
                    if part.ends_with("stack frame") {
                        frame = frame.max(value);
                    } else if part.ends_with("spill stores") {
                        usage.spill_stores += value;
                    } else if part.ends_with("spill loads") {
                        usage.spill_loads += value;
                    }
                }
            } else if let Some((_, used)) = line.split_once(": Used ") {
                // Functions that are called rather than inlined have no line of their own.
                found = true;
                for part in used.split(", ") {
                    let value = leading_number(part);
                    if part.ends_with("registers") {
                        usage.registers = usage.registers.max(value);
                    } else if part.ends_with("cumulative stack size") {
                        usage.stack = value;
                    } else if part.ends_with("smem") {
                        usage.shared = value;
                    } else if part.contains("bytes cmem[") {
                        usage.constant += value;
                    }
                }
            }
        }
        usage.stack = usage.stack.max(frame);
        found.then_some(usage)
    }

    fn numbers(&self) -> [u32; 6] {
        [self.registers, self.shared, self.stack, self.spill_stores, self.spill_loads, self.constant]
    }

    /// The line of `report.tsv`.
    pub(crate) fn to_line(&self) -> String {
        let numbers = self.numbers().map(|n| n.to_string());
        format!("{}\t{}\t{}", self.kernel, self.arch, numbers.join("\t"))
    }

    /// Reads back what [`Usage::to_line`] wrote.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let kernel = fields.next()?.to_owned();
        let numbers = fields.map(str::parse).collect::<Result<Vec<u32>, _>>().ok()?;
        let [arch, registers, shared, stack, spill_stores, spill_loads, constant] = numbers[..] else {
            return None;
        };
        Some(Self { kernel, arch, registers, shared, stack, spill_stores, spill_loads, constant })
    }
}

fn leading_number(text: &str) -> u32 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    // "used 1 barriers" and the like are no numbers of ours.
    text[..digits].parse().unwrap_or(0)
}

/// The result of a build: the kernels, and what ptxas says about them.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) directory: PathBuf,
    pub(crate) kernels: Vec<String>,
    pub(crate) usage: Vec<Usage>,
}

impl Report {
    pub(crate) const HEAD: &str = "kernel\tarch\tregisters\tshared\tstack\tspill_stores\tspill_loads\tconstant";

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
        writeln!(f, "{}", Self::HEAD)?;
        self.usage.iter().try_for_each(|usage| writeln!(f, "{}", usage.to_line()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let usage = Usage::parse("a::trig", 75, text).unwrap();
        let expected = Usage {
            kernel: "a::trig".into(),
            arch: 75,
            registers: 28,
            shared: 4096,
            stack: 48,
            spill_stores: 12,
            spill_loads: 16,
            constant: 416,
        };
        assert_eq!(usage, expected);
        assert_eq!(Usage::from_line(&usage.to_line()), Some(expected));
    }

    #[test]
    fn report_of_older_and_newer_toolkits() {
        let newer = "ptxas info    : Used 16 registers, used 0 barriers\n";
        assert_eq!(Usage::parse("k", 90, newer).unwrap().registers, 16);
        let older = "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 10 registers, 360 bytes cmem[0]\n";
        let usage = Usage::parse("k", 80, older).unwrap();
        assert_eq!((usage.registers, usage.constant, usage.shared), (10, 360, 0));
        assert_eq!(Usage::parse("k", 80, "ptxas info    : 0 bytes gmem\n"), None);
    }
}
