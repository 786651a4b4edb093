//! The kernels and device functions of a crate, each of which is compiled by itself.

use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::arch::Arch;
use crate::ir::{self, Bounds, Entry, Exports, Function};
use crate::process;
use crate::split;
use crate::store::Key;
use crate::toolchain::Toolchain;

/// What a unit is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Export {
    Kernel(Entry),
    Function(Function),
}

/// A kernel or a device function of a crate, with all that it reaches.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) crate_name: String,
    pub(crate) export: Export,
    pub(crate) archs: Vec<Arch>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// The crate's LLVM IR as rustc wrote it, of which a part's PTX is to be made.
    Ir(Arc<split::Module>),
    /// The PTX that an earlier build made, of each architecture: a kernel's own module, or as `llc` wrote it, of a function.
    Ptx(Vec<String>),
}

/// Where the store keeps a unit's PTX.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) crate_name: String,
    pub(crate) export: Export,
    /// For each architecture.
    pub(crate) keys: Vec<(Arch, Key)>,
}

/// Names the kernels and device functions in a crate's bitcode, and cuts it into their units.
pub(crate) fn units(tools: &Toolchain, crate_name: &str, archs: &[Arch], bitcode: &Path) -> Result<Vec<Unit>, Error> {
    let dis =
        process::run("reading the compiler's bitcode", tools.llvm_tool("llvm-dis").arg(bitcode).args(["-o", "-"]))?;
    let (text, Exports { entries, functions }) = ir::prepare(&String::from_utf8_lossy(&dis.stdout), crate_name)?;
    drop(dis);
    let module = Arc::new(split::Module::parse(text));
    let exports = entries.into_iter().map(Export::Kernel).chain(functions.into_iter().map(Export::Function));
    let unit = |export| Unit {
        crate_name: crate_name.to_owned(),
        export,
        archs: archs.to_vec(),
        body: Body::Ir(Arc::clone(&module)),
    };
    Ok(exports.map(unit).collect())
}

impl Export {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Kernel(entry) => &entry.path,
            Self::Function(function) => &function.path,
        }
    }

    pub(crate) fn symbol(&self) -> &str {
        match self {
            Self::Kernel(entry) => &entry.symbol,
            Self::Function(function) => &function.symbol,
        }
    }

    /// The functions that its module is made for.
    pub(crate) fn roots(&self) -> Vec<&str> {
        match self {
            Self::Kernel(entry) => vec![&entry.symbol],
            Self::Function(function) => vec![&function.symbol, ir::CONTROL_SETTER],
        }
    }

    /// A line of a plan: what it is, and where its PTX lies.
    pub(crate) fn to_line(&self, ptx: Key) -> String {
        let (ptx, path) = (ptx.name(), self.path());
        match self {
            Self::Kernel(Entry { layout, bounds, .. }) => format!("kernel {ptx} {layout} {} {path}\n", bounds.digits()),
            Self::Function(_) => format!("function {ptx} {path}\n"),
        }
    }

    pub(crate) fn from_line(line: &str) -> Option<(Self, Key)> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["kernel", ptx, layout, bounds, path] => {
                let entry = Entry::new(path, layout, Bounds::parse(bounds)?).ok()?;
                Some((Self::Kernel(entry), Key::parse(ptx)?))
            }
            ["function", ptx, path] => Some((Self::Function(Function::new(path).ok()?), Key::parse(ptx)?)),
            _ => None,
        }
    }
}

impl Unit {
    pub(crate) fn path(&self) -> &str {
        self.export.path()
    }

    pub(crate) fn symbol(&self) -> &str {
        self.export.symbol()
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.path())
    }
}
