//! The textual IR between rustc and `llvm-link`: which functions are kernels, and names that PTX can hold.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::Error;

/// A kernel entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// `crate::module::kernel`, as `#[kernel]` exported it.
    pub(crate) path: String,
    /// The PTX symbol: the path with `__` for `::`.
    pub(crate) symbol: String,
    /// The hash of the parameters' layout, in hexadecimal.
    pub(crate) layout: String,
    pub(crate) bounds: Bounds,
}

impl Entry {
    pub(crate) fn new(path: &str, layout: &str, bounds: Bounds) -> Result<Self, Error> {
        Ok(Self { path: path.to_owned(), symbol: symbol_of(path)?, layout: layout.to_owned(), bounds })
    }

    /// Module path and kernel name.
    pub(crate) fn split(&self) -> (&str, &str) {
        self.path.rsplit_once("::").expect("checked by `new`")
    }
}

/// A device function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    /// `crate::module::function`, as `#[device_function]` exported it.
    pub(crate) path: String,
    /// The PTX symbol: the path with `__` for `::`.
    pub(crate) symbol: String,
}

impl Function {
    pub(crate) fn new(path: &str) -> Result<Self, Error> {
        Ok(Self { path: path.to_owned(), symbol: symbol_of(path)? })
    }

    /// Module path and function name.
    pub(crate) fn split(&self) -> (&str, &str) {
        self.path.rsplit_once("::").expect("checked by `new`")
    }
}

/// The PTX symbol of a path.
fn symbol_of(path: &str) -> Result<String, Error> {
    let error = |reason: &str| Error::KernelName { name: path.to_owned(), reason: reason.to_owned() };
    if !path.contains("::") {
        return Err(error("an entry is named by its crate, module and function; write kernels with `#[kernel]`"));
    }
    let symbol = path.replace("::", "__");
    // rustc would take `é` in a name; PTX knows ASCII only.
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if !symbol.chars().all(legal) || symbol.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(error("a PTX symbol has ASCII letters, digits, `_` and `$` only"));
    }
    Ok(symbol)
}

/// A function that stays beside device functions, where nothing calls it.
pub(crate) const CONTROL_SETTER: &str = "kp_control_setter";

/// Shows the optimiser that the launch's control has a value in device functions, which the kernel that calls them has
/// stored. In a module without kernels it would take a panic for undefined behaviour.
fn control_setter(ir: &str) -> String {
    const SET: &str = "void @__kp_set_control(ptr";
    let declaration = match ir.lines().any(|line| line.starts_with("declare ") && line.contains(SET)) {
        true => String::new(),
        false => format!("declare {SET})\n"),
    };
    format!("{declaration}define void @{CONTROL_SETTER}(ptr %control) {{\n  call {SET} %control)\n  ret void\n}}\n")
}

/// What the host uses of a module.
#[derive(Debug)]
pub(crate) struct Exports {
    pub(crate) entries: Vec<Entry>,
    pub(crate) functions: Vec<Function>,
}

/// What `#[kernel]` says of the launches of an entry: the extents of every block, the most threads of one and the fewest
/// blocks of a multiprocessor, each 0 if it says nothing, and the bytes of shared memory of its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bounds {
    threads: [u32; 3],
    max_threads: u32,
    min_blocks: u32,
    pub(crate) shared: u32,
}

impl Bounds {
    /// Reads eight hexadecimal digits for each.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        let number = |i: usize| u32::from_str_radix(digits.get(8 * i..8 * i + 8)?, 16).ok();
        Some(Self {
            threads: [number(0)?, number(1)?, number(2)?],
            max_threads: number(3)?,
            min_blocks: number(4)?,
            shared: number(5)?,
        })
    }

    /// What [`parse`](Self::parse) reads.
    pub(crate) fn digits(self) -> String {
        let [x, y, z] = self.threads;
        [x, y, z, self.max_threads, self.min_blocks, self.shared].iter().map(|number| format!("{number:08x}")).collect()
    }

    /// The most threads of a block, 0 if nothing says.
    pub(crate) fn block_threads(self) -> u32 {
        let [x, y, z] = self.threads;
        if x == 0 { self.max_threads } else { x * y * z }
    }

    /// LLVM's attributes for them, each followed by a space.
    fn attributes(self) -> String {
        let attribute = |name, number| match number {
            0 => String::new(),
            number => format!("\"nvvm.{name}\"=\"{number}\" "),
        };
        let [x, y, z] = self.threads;
        let threads = if x == 0 { String::new() } else { format!("\"nvvm.reqntid\"=\"{x},{y},{z}\" ") };
        threads + &attribute("maxntid", self.max_threads) + &attribute("minctasm", self.min_blocks)
    }
}

/// Finds the kernels and device functions of `crate_name` in the output of `llvm-dis` and gives them their PTX names.
///
/// Entries of other crates are left as they are: nothing keeps them alive when the module is internalised.
pub(crate) fn prepare(ir: &str, crate_name: &str) -> Result<(String, Exports), Error> {
    let (mut paths, mut entries, mut functions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut renames = HashMap::new();
    let beside = |what| ir.lines().filter_map(move |line| constant_beside_entry(line, what));
    let layouts: HashMap<&str, &str> = beside("::__layout").collect();
    let bounds: HashMap<&str, Bounds> =
        beside("::__bounds").filter_map(|(name, digits)| Some((name, Bounds::parse(digits)?))).collect();
    let foreign = |name: &str| name.split_once("::").is_some_and(|(owner, _)| owner != crate_name);
    let mut add = |path: &str, symbol: &str| match paths.insert(symbol.to_owned(), path.to_owned()) {
        None => Ok(()),
        Some(first) => Err(Error::KernelName {
            name: path.to_owned(),
            reason: format!("has the same PTX symbol as `{first}`; rename one of them"),
        }),
    };
    for name in ir.lines().filter_map(kernel_name).filter(|name| !foreign(name)) {
        let layout = layouts.get(name).ok_or_else(|| Error::KernelName {
            name: name.to_owned(),
            reason: "has no layout of its parameters beside it; write kernels with `#[kernel]`".to_owned(),
        })?;
        let entry = Entry::new(name, layout, bounds.get(name).copied().unwrap_or_default())?;
        add(name, &entry.symbol)?;
        renames.insert(name, entry.symbol.clone());
        entries.insert(entry.symbol.clone(), entry);
    }
    for name in ir.lines().filter_map(function_name).filter(|name| !foreign(name)) {
        let function = Function::new(name)?;
        add(name, &function.symbol)?;
        renames.insert(name, function.symbol.clone());
        functions.insert(function.symbol.clone(), function);
    }
    let exports = Exports { entries: entries.into_values().collect(), functions: functions.into_values().collect() };
    let mut text = rewrite(ir, &renames, &bounds);
    if !exports.functions.is_empty() {
        text.push_str(&control_setter(ir));
    }
    Ok((text, exports))
}

/// The name of the kernel that a line defines.
fn kernel_name(line: &str) -> Option<&str> {
    let (head, tail) = line.strip_prefix("define ")?.split_once('@')?;
    head.split(' ').any(|word| word == "ptx_kernel").then_some(())?;
    match tail.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => tail.split('(').next(),
    }
}

/// The name of the device function that a line defines: it is exported, and no other name than a path has `::`.
fn function_name(line: &str) -> Option<&str> {
    let (head, tail) = line.strip_prefix("define ")?.split_once("@\"")?;
    let hidden = head.split(' ').any(|word| ["internal", "private", "ptx_kernel"].contains(&word));
    let name = tail.split('"').next()?;
    (!hidden && name.contains("::")).then_some(name)
}

/// The kernel of which a line defines such a constant, and its text: `#[kernel]` exports digits beside the entry.
fn constant_beside_entry<'a>(line: &'a str, suffix: &str) -> Option<(&'a str, &'a str)> {
    let (name, definition) = line.strip_prefix("@\"")?.split_once('"')?;
    let (_, text) = definition.split_once(" c\"")?;
    Some((name.strip_suffix(suffix)?, text.split('"').next()?))
}

/// Renames, bounds the kernels' blocks, and takes rustc's own target processor off the functions.
fn rewrite(ir: &str, renames: &HashMap<&str, String>, bounds: &HashMap<&str, Bounds>) -> String {
    let mut out = String::with_capacity(ir.len());
    for line in ir.lines() {
        if line.starts_with("attributes #") {
            // rustc's default processor would keep LLVM from inlining the runtime and libdevice, whose
            // functions have none; the processor is a matter of `opt` and `llc`.
            out.push_str(&without_target(line));
        } else {
            let bounds = kernel_name(line).and_then(|name| bounds.get(name)).map(|bounds| bounds.attributes());
            let mut rest = line;
            while let Some(at) = rest.find("@\"") {
                let (before, after) = rest.split_at(at + 2);
                let renamed = after.split_once('"').and_then(|(name, tail)| Some((renames.get(name)?, tail)));
                match renamed {
                    Some((symbol, tail)) => {
                        out.push_str(&before[..at + 1]);
                        out.push_str(symbol);
                        rest = tail;
                    }
                    // A string constant may end in `@`: go on behind the quote, not behind its supposed end.
                    None => {
                        out.push_str(before);
                        rest = after;
                    }
                }
            }
            // Attributes in words stand among those by number.
            match bounds.as_deref().and_then(|attributes| Some((attributes, rest.rfind(" #")? + 1))) {
                Some((attributes, at)) => {
                    let (before, after) = rest.split_at(at);
                    out.extend([before, attributes, after]);
                }
                None => out.push_str(rest),
            }
        }
        out.push('\n');
    }
    out
}

/// A text without the attributes that name an architecture.
pub(crate) fn without_target(text: &str) -> String {
    let line = |line: &str| {
        let line = without_attribute(&without_attribute(line, "target-cpu"), "target-features");
        // LLVM reads no group without attributes.
        if line.starts_with("attributes #") { line.replace("{ }", "{ \"none\" }") } else { line }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// `line` without ` "key"="value"`.
fn without_attribute(line: &str, key: &str) -> String {
    let mut pattern = String::new();
    write!(pattern, " \"{key}\"=\"").expect("writing to a string");
    let Some(start) = line.find(&pattern) else { return line.to_owned() };
    let value = start + pattern.len();
    let Some(length) = line[value..].find('"') else { return line.to_owned() };
    format!("{}{}", &line[..start], &line[value + length + 1..])
}

/// Variables that the runtime module defines with external linkage: the host finds them by name (the fault
/// record's address, for one), so they must survive internalisation.
pub(crate) fn public_variables(runtime: &str) -> Vec<&str> {
    runtime
        .lines()
        .filter_map(|line| {
            let (name, definition) = line.strip_prefix('@')?.split_once(" = ")?;
            let mut words = definition.split_whitespace();
            let linkage = words.clone().next()?;
            let hidden = ["private", "internal", "external", "available_externally"].contains(&linkage);
            let variable = words.any(|word| word == "global" || word == "constant");
            (variable && !hidden && !name.starts_with("llvm.")).then_some(name.trim_matches('"'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    const IR: &str = r#"@s = private constant [2 x i8] c"a@", align 1
@"app::kernels::saxpy::__layout" = constant [4 x i8] c"01ef", align 1
define dso_local ptx_kernel void @"app::kernels::saxpy"(ptr %x) unnamed_addr #0 !dbg !4 {
  call void @"app::kernels::saxpy"(ptr null)
}
define ptx_kernel void @"other::kernels::saxpy"(ptr %x) #0 {
define internal fastcc void @"app::kernels::no_kernel"() #1 {
define dso_local noundef float @"app::kernels::smooth"(float noundef %x) unnamed_addr #1 {
define float @"other::kernels::smooth"(float %x) #1 {
define void @plain() #1 {
attributes #0 = { convergent nounwind "target-cpu"="sm_30" "target-features"="+ptx60" }
attributes #1 = { nounwind "target-cpu"="sm_30" memory(none) }
"#;

    #[test]
    fn groups_of_attributes_are_never_empty() {
        let text = "attributes #3 = { \"target-cpu\"=\"sm_70\" }\nattributes #4 = { cold \"target-cpu\"=\"sm_70\" }\n";
        assert_eq!(without_target(text), "attributes #3 = { \"none\" }\nattributes #4 = { cold }\n");
    }

    #[test]
    fn kernels_of_the_crate_are_found_and_renamed() {
        let (text, Exports { entries, functions }) = prepare(IR, "app").unwrap();
        assert_eq!(functions, [Function::new("app::kernels::smooth").unwrap()]);
        assert!(text.contains("float @app__kernels__smooth(float"));
        assert_eq!(entries, [Entry::new("app::kernels::saxpy", "01ef", Bounds::default()).unwrap()]);
        assert_eq!(entries[0].symbol, "app__kernels__saxpy");
        assert_eq!(entries[0].split(), ("app::kernels", "saxpy"));
        assert_eq!(text.matches("@app__kernels__saxpy(").count(), 2);
        assert!(text.contains("c\"a@\", align 1"));
        assert!(text.contains("@\"other::kernels::saxpy\"("));
        assert!(text.contains("@\"app::kernels::no_kernel\"("));
    }

    #[test]
    fn bounds_become_attributes_of_the_entry() {
        let with = |digits: &str| {
            let line = format!("@\"app::kernels::saxpy::__bounds\" = constant [48 x i8] c\"{digits}\", align 1\n");
            prepare(&(line + IR), "app").unwrap().0
        };
        let text = with("000000000000000000000000000001000000000200000400");
        let define = text.lines().find(|line| line.starts_with("define dso_local ptx_kernel")).unwrap();
        assert!(
            define.ends_with("unnamed_addr \"nvvm.maxntid\"=\"256\" \"nvvm.minctasm\"=\"2\" #0 !dbg !4 {"),
            "{define}"
        );
        let text = with("000000200000000800000001000000000000000000000000");
        assert!(text.contains("unnamed_addr \"nvvm.reqntid\"=\"32,8,1\" #0"), "{text}");
        assert!(!with(&"0".repeat(48)).contains("nvvm."));
    }

    #[test]
    fn processor_is_taken_off() {
        let (text, _) = prepare(IR, "app").unwrap();
        assert!(text.contains("attributes #0 = { convergent nounwind }"));
        assert!(text.contains("attributes #1 = { nounwind memory(none) }"));
    }

    #[test]
    fn names_that_ptx_cannot_hold_are_refused() {
        for (names, part) in [
            (&["plain"][..], "#[kernel]"),
            (&["app::k\\C3\\A9"], "ASCII"),
            (&["app::a::b", "app::a__b"], "same PTX symbol as `app::a::b`"),
        ] {
            let define = |name| {
                format!("@\"{name}::__layout\" = constant [1 x i8] c\"0\"\ndefine ptx_kernel void @\"{name}\"() {{\n")
            };
            let ir: String = names.iter().map(define).collect();
            let message = prepare(&ir, "app").unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_kernel_without_a_layout_is_refused() {
        let message = prepare("define ptx_kernel void @\"app::k\"() {", "app").unwrap_err().to_string();
        assert!(message.contains("has no layout of its parameters"), "{message}");
    }

    #[test]
    fn public_variables_are_those_defined_and_visible() {
        let runtime = "@a = external addrspace(3) global [0 x i8], align 16\n\
            @b = addrspace(1) global ptr null, align 8\n\
            @c = private unnamed_addr constant [1 x i8] zeroinitializer\n\
            @d = dso_local addrspace(1) externally_initialized global i32 0\n\
            @llvm.used = appending global [0 x ptr] zeroinitializer\n\
            define void @f() {\n";
        assert_eq!(public_variables(runtime), ["b", "d"]);
    }

    #[test]
    fn damaged_modules_are_an_error_or_have_names_that_ptx_can_hold() {
        let bounds =
            "@\"app::kernels::saxpy::__bounds\" = constant [40 x i8] c\"0000002000000008000000010000000000000001\"\n";
        let whole = bounds.to_owned() + IR;
        let words = [
            "@\"",
            "\"",
            "::",
            "define ",
            "ptx_kernel ",
            " c\"",
            "::__layout",
            "::__bounds",
            "attributes #",
            " #0",
            "é",
        ];
        try_all(
            2000,
            |damage| Shown(damage.damaged(&[whole.as_bytes(), IR.as_bytes()], &words)),
            |Shown(bytes)| {
                let text = String::from_utf8_lossy(bytes);
                public_variables(&text);
                let Ok((_, Exports { entries, functions })) = prepare(&text, "app") else { return Ok(()) };
                let symbols: Vec<_> = entries.iter().map(|entry| &entry.symbol).collect();
                let symbols = symbols.into_iter().chain(functions.iter().map(|function| &function.symbol));
                let mut seen = std::collections::HashSet::new();
                for symbol in symbols {
                    if symbol.is_empty()
                        || !symbol.is_ascii()
                        || symbol.contains(char::is_whitespace)
                        || !seen.insert(symbol)
                    {
                        return Err(format!("`{symbol}`"));
                    }
                }
                entries.iter().for_each(|entry| assert!(entry.path.len() > entry.split().0.len()));
                Ok(())
            },
        );
    }
}
