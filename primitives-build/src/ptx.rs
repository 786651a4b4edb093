//! Cuts the PTX of a whole module into one module per kernel, and into the items of each device function.
//!
//! The driver compiles what it is given: a module with every kernel of a crate would be compiled whole when
//! the first of them is launched. Each kernel gets the functions and variables that it reaches, and nothing else.
//!
//! The items of a device function go into modules that are written at run time, beside those of other functions and of other
//! crates. So every name that is not exported gets a hash of what it names: equal names have equal texts.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::files;

/// Functions that the driver itself provides; everything else must be in the module.
const PROVIDED: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// A module taken apart.
#[derive(Debug)]
pub(crate) struct Module {
    header: Vec<String>,
    items: Vec<Item>,
    files: Vec<String>,
    by_name: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Item {
    name: Option<String>,
    text: String,
    is_function: bool,
    is_external: bool,
    has_body: bool,
    references: Vec<String>,
}

/// A kernel's own module could not be cut out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// There is no entry of that name.
    NoEntry,
    /// The entry reaches a function that nothing defines.
    Unresolved(String),
}

/// Respells what ptxas of CUDA 13.0 takes for something else.
///
/// - Of −32768, `neg.s16` and `abs.s16` leave 32768 in the 32-bit register behind, and a conversion to a wider type then finds no sign.
/// - A store of the low bits of a register that holds a float converts the number: `add.rn.f32 %r1, …; st.shared.b8 […], %r1` stores 255
///   where the sum is 284. LLVM writes such stores for what is not aligned, such as the fields of packed structures.
pub(crate) fn respell(text: &str) -> String {
    let floats = Floats::of(text);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let operands = |instruction: &str| {
            let (to, from) = line.trim_start().strip_prefix(instruction)?.trim().strip_suffix(';')?.split_once(',')?;
            Some((to.trim(), from.trim()))
        };
        if let Some((to, from)) = operands("neg.s16") {
            out.push_str(&format!("\tnot.b16 \t{to}, {from};\n\tadd.s16 \t{to}, {to}, 1;"));
        } else if let Some((to, from)) = operands("abs.s16") {
            out.push_str(&format!(
                "\t{{ .reg .b16 negated; not.b16 \tnegated, {from}; add.s16 \tnegated, negated, 1; \
                 max.s16 \t{to}, {from}, negated; }}"
            ));
        } else if let Some(store) = floats.narrowing_store(line) {
            out.push_str(&store);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// Sizes of registers in bits that may hold floats: those of a text's instructions.
struct Floats(Vec<u32>);

impl Floats {
    fn of(text: &str) -> Self {
        let types: [(u32, &[&str]); 3] =
            [(16, &[".f16", ".bf16"]), (32, &[".f32", ".f16x2", ".bf16x2"]), (64, &[".f64"])];
        let has = |name: &&str| text.contains(*name);
        Self(types.into_iter().filter(|(_, names)| names.iter().any(has)).map(|(bits, _)| bits).collect())
    }

    /// A store of a register's low bits, as one of a register that an instruction for integers made; nothing for another line.
    fn narrowing_store(&self, line: &str) -> Option<String> {
        let instruction = line.trim().strip_suffix(';')?;
        let (store, value) = instruction.rsplit_once(',')?;
        let bits: u32 = store.split_whitespace().next()?.strip_prefix("st")?.rsplit_once(".b")?.1.parse().ok()?;
        let value = value.trim();
        // The registers' names tell their sizes.
        let has = |prefix: &str| value.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
        let sizes = [("%rs", 16), ("%r", 32), ("%rd", 64)];
        let from = sizes.into_iter().find_map(|(prefix, bits)| has(prefix).then_some(bits))?;
        if bits >= from || !self.0.contains(&from) {
            return None;
        }
        // There are no registers of 8 bits.
        let size = bits.max(16);
        let low = match from {
            16 => format!("and.b16 \tlow, {value}, 255"),
            _ => format!("cvt.u{size}.u{from} \tlow, {value}"),
        };
        Some(format!("\t{{ .reg .b{size} low; {low}; {store}, low; }}"))
    }
}

impl Module {
    /// Parses the text that `llc` wrote; the error says what was met, and on which line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = strip_comments(text)?;
        let mut module = Self { header: Vec::new(), items: Vec::new(), files: Vec::new(), by_name: HashMap::new() };
        let mut rest = text.as_str();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let word = rest.split_whitespace().next().unwrap_or_default();
            let shown = || word.chars().take(60).collect::<String>();
            let line = || text[..text.len() - rest.len()].lines().count();
            let length = match word {
                ".version" | ".target" | ".address_size" | ".file" => rest.find('\n').unwrap_or(rest.len()),
                _ => {
                    item_length(rest).ok_or_else(|| format!("the item at line {} does not end: {}", line(), shown()))?
                }
            };
            let item = tidy(&rest[..length]);
            match word {
                ".version" | ".target" | ".address_size" => module.header.push(item),
                ".file" => module.files.push(item),
                // DWARF sections name labels in every function; the line table needs only `.loc` and `.file`.
                ".section" => {}
                _ if word.starts_with('.') => {
                    let item = Item::new(item);
                    if item.is_function && item.name.is_none() {
                        return Err(format!("the function at line {} has no name", line()));
                    }
                    module.push(item);
                }
                _ => return Err(format!("expected a directive at module level, found `{}`", shown())),
            }
            rest = &rest[length..];
        }
        if module.header.len() != 3 {
            return Err("no .version, .target and .address_size at its head".to_owned());
        }
        Ok(module)
    }

    fn push(&mut self, item: Item) {
        if let Some(name) = &item.name {
            self.by_name.entry(name.clone()).or_default().push(self.items.len());
        }
        self.items.push(item);
    }

    /// The module of one entry.
    pub(crate) fn cut(&self, entry: &str) -> Result<String, Cut> {
        let mut keep = BTreeSet::new();
        let mut seen = HashSet::new();
        let mut open = vec![entry];
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let Some(items) = self.by_name.get(name) else { continue };
            let defined = items.iter().any(|&i| self.items[i].has_body);
            for &i in items {
                let item = &self.items[i];
                // `.extern .func` without a definition is left for the driver to resolve, which it cannot.
                if item.is_function && item.is_external && !defined && !PROVIDED.contains(&name) {
                    return Err(Cut::Unresolved(name.to_owned()));
                }
                keep.insert(i);
                open.extend(item.references.iter().map(String::as_str));
            }
        }
        if keep.is_empty() {
            return Err(Cut::NoEntry);
        }

        let mut text = self.header.join("\n");
        text.push('\n');
        let mut lines = false;
        for (i, item) in self.items.iter().enumerate() {
            // Nameless items are module-wide directives such as `.pragma`.
            if item.name.is_none() || keep.contains(&i) {
                text.push('\n');
                text.push_str(&item.text);
                text.push('\n');
                lines |= item.text.contains("\t.loc\t") || item.text.contains("\t.loc ");
            }
        }
        if lines {
            text.push('\n');
            for file in &self.files {
                text.push_str(file);
                text.push('\n');
            }
        }
        Ok(renumber_labels(&without_unread_control(&text)))
    }
}

/// What the runtime module defines and the host knows by name.
const RUNTIME: &str = "kp_";

/// A part of a module that device functions need: a function or a variable, or several that need each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionItem {
    pub(crate) text: String,
    /// The symbol of the device function, if it is one's own.
    pub(crate) function: Option<String>,
}

/// Cuts out device functions.
pub(crate) struct Functions<'a> {
    module: &'a Module,
    exported: HashSet<&'a str>,
    /// The finished items, each after what it needs.
    items: Vec<FunctionItem>,
    /// Of a finished name, its item, and the name that it has there.
    finished: HashMap<&'a str, (usize, String)>,
    /// Of each item, those that it names.
    needs: Vec<BTreeSet<usize>>,
    /// Tarjan's algorithm: the names on the stack, and of every name seen its number and the lowest that it reaches.
    stack: Vec<&'a str>,
    numbers: HashMap<&'a str, (usize, usize)>,
}

impl Module {
    /// A cutter for these exported functions.
    pub(crate) fn functions<'a>(&'a self, exported: impl Iterator<Item = &'a str>) -> Functions<'a> {
        Functions {
            module: self,
            exported: exported.collect(),
            items: Vec::new(),
            finished: HashMap::new(),
            needs: Vec::new(),
            stack: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<'a> Functions<'a> {
    /// The items of a function, each after what it needs; the function's own is the last.
    pub(crate) fn cut(&mut self, symbol: &'a str) -> Result<Vec<FunctionItem>, Cut> {
        if !self.module.by_name.contains_key(symbol) {
            return Err(Cut::NoEntry);
        }
        self.visit(symbol)?;
        let mut keep = BTreeSet::new();
        let mut open = vec![self.finished[symbol].0];
        while let Some(item) = open.pop() {
            if keep.insert(item) {
                open.extend(&self.needs[item]);
            }
        }
        Ok(keep.into_iter().map(|item| self.items[item].clone()).collect())
    }

    /// Finishes the items of a name and of all that it reaches. With a list of names instead of recursion: a chain of calls may be
    /// longer than this program's stack is deep.
    fn visit(&mut self, name: &'a str) -> Result<(), Cut> {
        if self.numbers.contains_key(name) {
            return Ok(());
        }
        let mut open = vec![self.enter(name)?];
        while let Some((name, references)) = open.last_mut() {
            let name = *name;
            match references.pop() {
                Some(next) if !self.numbers.contains_key(next) => open.push(self.enter(next)?),
                Some(next) => self.reach(name, next),
                None => {
                    let (number, reached) = self.numbers[name];
                    if number == reached {
                        let start = self.stack.iter().rposition(|&other| other == name).expect("on the stack");
                        let group = self.stack.split_off(start);
                        self.finish(group);
                    }
                    open.pop();
                    if let Some(&(caller, _)) = open.last() {
                        self.reach(caller, name);
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins with a name: the name with those that its items contain, the first one last.
    fn enter(&mut self, name: &'a str) -> Result<(&'a str, Vec<&'a str>), Cut> {
        let mut references = self.references(name).inspect_err(|_| {
            // What was begun on the way here is not finished.
            for name in self.stack.drain(..) {
                self.numbers.remove(name);
            }
        })?;
        references.reverse();
        let number = self.numbers.len();
        self.numbers.insert(name, (number, number));
        self.stack.push(name);
        Ok((name, references))
    }

    /// A name reaches what another one reaches, unless that is finished.
    fn reach(&mut self, name: &'a str, next: &'a str) {
        if !self.finished.contains_key(next) {
            let reached = self.numbers[next].1;
            let own = self.numbers.get_mut(name).expect("seen");
            own.1 = own.1.min(reached);
        }
    }

    /// The names of the module that its items of this name contain.
    fn references(&self, name: &str) -> Result<Vec<&'a str>, Cut> {
        let items: Vec<&Item> = self.module.by_name[name].iter().map(|&i| &self.module.items[i]).collect();
        let defined = items.iter().any(|item| item.has_body);
        if items.iter().any(|item| item.is_function) && !defined && !PROVIDED.contains(&name) {
            return Err(Cut::Unresolved(name.to_owned()));
        }
        let names = items.iter().flat_map(|item| &item.references);
        Ok(names.filter_map(|name| self.module.by_name.get_key_value(name)).map(|(name, _)| name.as_str()).collect())
    }

    /// Makes one item of names that need each other, mostly of one.
    fn finish(&mut self, mut group: Vec<&'a str>) {
        // In the module's order, for the same text whichever of them was met first.
        group.sort_unstable_by_key(|name| self.module.by_name[*name].first());
        let text = renumber_labels(&self.text(&group));
        let needs = tokens(&text).into_iter().filter_map(|name| Some(self.finished.get(name)?.0)).collect();
        let text = rename(&text, |name| Some(self.finished.get(name)?.1.clone()));
        let hash = files::key(&text);
        let mut function = None;
        let mut names = HashMap::new();
        for &name in &group {
            let exported = self.exported.contains(name);
            if exported {
                function.get_or_insert_with(|| name.to_owned());
            }
            let fixed = exported || name.starts_with(RUNTIME) || PROVIDED.contains(&name);
            names.insert(name, if fixed { name.to_owned() } else { format!("{name}_{hash}") });
        }
        let text = rename(&text, |name| names.get(name).cloned());
        let item = self.items.len();
        self.items.push(FunctionItem { text, function });
        self.needs.push(needs);
        self.finished.extend(names.into_iter().map(|(name, new)| (name, (item, new))));
    }

    fn text(&self, group: &[&str]) -> String {
        let items = || group.iter().flat_map(|name| &self.module.by_name[*name]).map(|&i| &self.module.items[i]);
        let mut parts: Vec<String> = Vec::new();
        if group.len() > 1 {
            let heads = items().filter(|item| item.has_body).filter_map(|item| item.text.split_once('{'));
            parts.extend(heads.map(|(head, _)| head.trim_end().to_owned() + ";"));
        }
        parts.extend(items().filter(|item| !item.is_function || item.is_external).map(|item| item.text.clone()));
        parts.extend(items().filter(|item| item.has_body).map(|item| without_module_state(&item.text)));
        parts.join("\n")
    }
}

/// A function's body without line numbers, which refer to the module's files, and with a name for its stack that does not
/// count the module's functions.
fn without_module_state(text: &str) -> String {
    const STACK: &str = "__local_depot";
    let counts = |line: &str| line.split_whitespace().next() == Some(".loc");
    let lines: Vec<&str> = text.lines().filter(|line| !counts(line)).collect();
    rename(&lines.join("\n"), |name| {
        let number = name.strip_prefix(STACK)?;
        number.bytes().all(|b| b.is_ascii_digit()).then(|| STACK.to_owned())
    })
}

/// The text with other names.
fn rename(text: &str, new: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for token in tokens(text) {
        if let Some(new) = new(token) {
            let start = token.as_ptr().addr() - text.as_ptr().addr();
            out.push_str(&text[copied..start]);
            out.push_str(&new);
            copied = start + token.len();
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// The runtime's variable for what has no token: see `runtime.ll`.
const CONTROL: &str = "kp_control";

/// Every entry stores its control in shared memory; one that never reads it, because all its faults have a token, needs
/// neither the store nor the memory. LLVM sees the whole module, in which other kernels read it.
fn without_unread_control(text: &str) -> String {
    let names = |line: &str| line.contains(CONTROL) && tokens(line).contains(&CONTROL);
    // A variable of one function alone is declared in it.
    let is_no_read = |line: &str| ["st.shared", ".shared"].iter().any(|start| line.trim_start().starts_with(start));
    let is_read = |line: &str| names(line) && !is_no_read(line);
    if text.lines().any(is_read) {
        return text.to_owned();
    }
    text.lines().filter(|line| !names(line)).fold(String::with_capacity(text.len()), |kept, line| kept + line + "\n")
}

impl Item {
    fn new(text: String) -> Self {
        let tokens = tokens(&text);
        let directives: Vec<&str> = tokens
            .iter()
            .copied()
            .take_while(|t| t.starts_with('.') || t.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        let is_function = directives.iter().any(|d| matches!(*d, ".func" | ".entry"));
        let is_external = directives.contains(&".extern");
        let name = if is_function { function_name(&text) } else { variable_name(&tokens) };
        let has_body = is_function && text.ends_with('}');
        let references = tokens
            .iter()
            .filter(|t| t.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
            .map(|t| (*t).to_owned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter(|t| Some(t) != name.as_ref())
            .collect();
        Self { name, text, is_function, is_external, has_body, references }
    }
}

/// The identifier after `.func` or `.entry` and the parenthesised result, if there is one.
fn function_name(text: &str) -> Option<String> {
    let start = [".func", ".entry"].iter().filter_map(|word| text.find(word).map(|at| at + word.len())).min()?;
    let mut rest = text[start..].trim_start();
    if rest.starts_with('(') {
        rest = rest[rest.find(')')? + 1..].trim_start();
    }
    let end = rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}

/// The first word that is neither a directive nor the number of an `.align`.
fn variable_name(tokens: &[&str]) -> Option<String> {
    let spaces = [".global", ".shared", ".const", ".local", ".tex", ".alias"];
    if !tokens.iter().any(|t| spaces.contains(t)) {
        return None;
    }
    tokens
        .iter()
        .find(|t| t.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%')))
        .map(|t| (*t).to_owned())
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Words of an item: identifiers, directives with their dot, numbers. Text in quotes is left out.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        let c = bytes[i] as char;
        if c == '"' {
            i = string_end(bytes, i);
        } else if c == '.' || is_identifier(c) {
            let start = i;
            i += 1;
            while i < bytes.len() && is_identifier(bytes[i] as char) {
                i += 1;
            }
            tokens.push(&text[start..i]);
        } else {
            i += 1;
        }
    }
    tokens
}

/// The index behind the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

/// Length of the item at the start of `text`: through the closing brace of a body, otherwise through the
/// semicolon. The braces of an initialiser do not end a variable.
fn item_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let head = &text[..text.find(['{', ';'])?];
    let body = tokens(head).iter().any(|t| matches!(*t, ".func" | ".entry" | ".section"));
    let mut depth = 0usize;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'"' => {
                i = string_end(bytes, i);
                continue;
            }
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && body {
                    return Some(i + 1);
                }
            }
            b';' if depth == 0 => return Some(i + 1),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Comments carry block names and running numbers of the whole module: without them a kernel's text does
/// not change when another kernel does, and it is a third shorter.
fn strip_comments(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut i = 0;
    while i < bytes.len() {
        let skip_to = match &bytes[i..] {
            [b'"', ..] => {
                i = string_end(bytes, i);
                continue;
            }
            [b'/', b'/', ..] => i + text[i..].find('\n').unwrap_or(text.len() - i),
            [b'/', b'*', ..] => i + text[i..].find("*/").ok_or("a comment does not end")? + 2,
            _ => {
                i += 1;
                continue;
            }
        };
        out.push_str(&text[copied..i]);
        copied = skip_to;
        i = skip_to;
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

/// Without blank lines and blanks at the ends of lines.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines.join("\n")
}

/// Block labels are `$L__BB<function>_<block>`, with the function's number in the whole module. Counting
/// the functions anew keeps a kernel's text the same whatever stands beside it. Labels without a jump to
/// them (`$L__tmp`, `$L__func_begin`) only served the debug sections.
fn renumber_labels(text: &str) -> String {
    const PREFIX: &str = "$L__BB";
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let label = line.trim_end();
        if label.ends_with(':') && ["$L__tmp", "$L__func_begin", "$L__func_end"].iter().any(|p| label.starts_with(p)) {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find(PREFIX) {
            let (before, after) = rest.split_at(at + PREFIX.len());
            out.push_str(before);
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            let next = numbers.len();
            let number = *numbers.entry(&after[..digits]).or_insert(next);
            out.push_str(&number.to_string());
            rest = &after[digits..];
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    const PTX: &str = r#"//
// Generated by LLVM NVPTX Back-End
//

.version 8.0
.target sm_90
.address_size 64

	// .globl	a__one
.func deep
()
.noreturn;
.func  (.param .align 16 .b8 func_retval0[16]) slow
(
	.param .b64 slow_param_0
)
;
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.extern .func memcmp
()
;
.extern .shared .align 16 .b8 arena[];
.shared .align 8 .b64 kp_control;
.visible .global .align 8 .u64 fault;
.global .align 4 .b8 table[8] = {0, 0, 0, 0, 0, 0, 192, 63};
.global .align 8 .u64 pointers[1] = {generic(table)};
.const .align 4 .f32 unused = 0f3F800000;
.visible .entry a__one(
	.param .u64 .ptr .align 1 a__one_param_0
)
.reqntid 128
{
$L__func_begin0:
	.reg .pred 	%p<2>;
	.loc	5 7 18
	.pragma "nounroll; { deep }";
// %bb.0:                               // %start  slow
	st.shared.b64 	[kp_control], %rd1;
	@%p1 bra 	$L__BB4_2;
	{ // callseq 12, 0
	call.uni deep, ();
	} // callseq 12
$L__BB4_2:                              // %exit
	mov.b64 	%rd11, arena;
	ret;
$L__tmp1:
}
	// .globl	a__two
.visible .entry a__two(
	.param .u64 a__two_param_0
)                                       // @a__two
{
	st.shared.b64 	[kp_control], %rd1;
	mov.b64 	%rd1, pointers;
	call.uni (retval0), slow, (param0);
	ret;
}
.visible .entry a__three()
{
	call.uni memcmp, ();
	ret;
}
.func deep()
.noreturn                               // -- Begin function deep
{
	ld.global.b64 	%rd1, [fault];
	ld.shared.b64 	%rd2, [kp_control];
	call.uni (retval0), vprintf, (param0, param1);
	bra.uni 	$L__BB7_1;
$L__BB7_1:
	exit;
}
.func  (.param .align 16 .b8 func_retval0[16]) slow(
	.param .b64 slow_param_0
)
{
	ret;
}
	.section	.debug_macinfo	{	}
	.file	1 "src/kernels.rs"
	.file	5 "a {;// b.rs"
"#;

    fn cut(entry: &str) -> String {
        Module::parse(PTX).unwrap().cut(entry).unwrap()
    }

    #[test]
    fn signs_of_16_bits_are_respelled() {
        let text = respell("\tneg.s16 \t%rs2, %rs1;\n\tabs.s16 \t%rs3, %rs1;\n\tneg.s32 \t%r2, %r1;\n");
        assert_eq!(
            text,
            "\tnot.b16 \t%rs2, %rs1;\n\tadd.s16 \t%rs2, %rs2, 1;\n\
             \t{ .reg .b16 negated; not.b16 \tnegated, %rs1; add.s16 \tnegated, negated, 1; max.s16 \t%rs3, %rs1, negated; }\n\
             \tneg.s32 \t%r2, %r1;\n"
        );
    }

    #[test]
    fn stores_of_low_bits_of_floats_are_respelled() {
        let floats =
            "\tadd.rn.f16 \t%rs1, %rs1, %rs1;\n\tadd.rn.f32 \t%r1, %r1, %r1;\n\tadd.rn.f64 \t%rd3, %rd3, %rd3;\n";
        for (store, respelled) in [
            (
                "st.shared.b8 \t[%rd1+4], %r2;",
                "{ .reg .b16 low; cvt.u16.u32 \tlow, %r2; st.shared.b8 \t[%rd1+4], low; }",
            ),
            (
                "st.global.b8 \t[%rd1], %rs2;",
                "{ .reg .b16 low; and.b16 \tlow, %rs2, 255; st.global.b8 \t[%rd1], low; }",
            ),
            ("st.b16 \t[%rd1], %rd2;", "{ .reg .b16 low; cvt.u16.u64 \tlow, %rd2; st.b16 \t[%rd1], low; }"),
            ("st.local.b32 \t[%SP], %rd2;", "{ .reg .b32 low; cvt.u32.u64 \tlow, %rd2; st.local.b32 \t[%SP], low; }"),
        ] {
            assert_eq!(respell(&format!("{floats}\t{store}\n")), format!("{floats}\t{respelled}\n"));
            // Without floats of the register's size, none holds one.
            assert_eq!(respell(&format!("\t{store}\n")), format!("\t{store}\n"));
        }
        for kept in [
            "st.shared.b32 \t[%rd1], %r2;",
            "st.global.v4.b32 \t[%rd1], {%r1, %r2, %r3, %r4};",
            "st.global.b8 \t[%rd1], 0;",
            "ld.shared.b8 \t%r1, [%rd1];",
            "st.param.b64 \t[param0], %rd72;",
        ] {
            assert_eq!(respell(&format!("{floats}\t{kept}\n")), format!("{floats}\t{kept}\n"));
        }
    }

    #[test]
    fn entry_takes_what_it_reaches_and_nothing_else() {
        let one = cut("a__one");
        for part in ["arena[]", "fault;", ".func deep\n()", "vprintf", ".noreturn", ".reqntid 128"] {
            assert!(one.contains(part), "{part:?} is not in\n{one}");
        }
        for part in ["table", "slow", "a__two", "unused", "memcmp", "//"] {
            let code: Vec<_> = one.lines().filter(|l| !l.contains(".file")).collect();
            assert!(!code.join("\n").contains(part), "{part:?} is in\n{one}");
        }
    }

    #[test]
    fn references_through_initialisers_are_followed() {
        let two = cut("a__two");
        assert!(two.contains("table[8] = {") && two.contains("pointers[1]"));
        assert_eq!(two.matches(" slow\n(").count() + two.matches(" slow(").count(), 2, "{two}");
        assert!(!two.contains("deep") && !two.contains("arena"));
    }

    #[test]
    fn the_control_is_kept_where_it_is_read() {
        let (one, two) = (cut("a__one"), cut("a__two"));
        assert!(one.contains(".b64 kp_control;") && one.contains("st.shared.b64 \t[kp_control], %rd1;"), "{one}");
        assert!(!two.contains("kp_control") && two.contains("mov.b64 \t%rd1, pointers;"), "{two}");
    }

    #[test]
    fn order_and_header_are_kept() {
        let two = cut("a__two");
        assert!(two.starts_with(".version 8.0\n.target sm_90\n.address_size 64\n"));
        let places = ["table[8]", "pointers[1]", ".entry a__two", "{\n\tret;\n}"].map(|p| two.find(p).unwrap());
        assert!(places.is_sorted(), "{two}");
    }

    #[test]
    fn files_come_only_with_line_numbers() {
        assert!(cut("a__one").contains(".file\t5 \"a {;// b.rs\""));
        assert!(!cut("a__two").contains(".file"));
        assert!(!cut("a__one").contains(".section"));
    }

    #[test]
    fn labels_are_counted_anew() {
        let one = cut("a__one");
        assert!(one.contains("bra \t$L__BB0_2;") && one.contains("\n$L__BB0_2:"), "{one}");
        assert!(one.contains("$L__BB1_1") && !one.contains("$L__tmp"), "{one}");
    }

    #[test]
    fn undefined_function_is_reported() {
        let module = Module::parse(PTX).unwrap();
        assert_eq!(module.cut("a__three"), Err(Cut::Unresolved("memcmp".into())));
        assert_eq!(module.cut("a__none"), Err(Cut::NoEntry));
    }

    const FUNCTIONS: &str = r#"
.version 8.0
.target sm_90
.address_size 64
.func  (.param .b32 func_retval0) slow
(
	.param .b32 slow_param_0
)
;
.func odd
()
;
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.extern .func memcmp
()
;
.shared .align 8 .b64 kp_control;
.global .align 4 .b8 table[8] = {0, 0, 0, 0, 0, 0, 192, 63};
.visible .func  (.param .b32 func_retval0) a__sin(
	.param .b32 a__sin_param_0
)
{
	.loc	5 7 18
	@%p1 bra 	$L__BB4_2;
	call.uni (retval0), slow, (param0);
$L__BB4_2:
	ret;
}
.visible .func  (.param .b32 func_retval0) a__cos(
	.param .b32 a__cos_param_0
)
{
	call.uni (retval0), slow, (param0);
	ret;
}
.func  (.param .b32 func_retval0) slow(
	.param .b32 slow_param_0
)
{
	.local .align 4 .b8 	__local_depot7[28];
	mov.b64 	%SPL, __local_depot7;
	mov.b64 	%rd3, table;
	ret;
}
.visible .func a__parity()
{
	ld.shared.b64 	%rd2, [kp_control];
	call.uni even, ();
	call.uni vprintf, ();
	ret;
}
.func even()
{
	call.uni odd, ();
	ret;
}
.func odd()
{
	call.uni even, ();
	ret;
}
.visible .func a__compare()
{
	call.uni memcmp, ();
	ret;
}
"#;

    fn functions(text: &str, symbols: &[&'static str]) -> Vec<Vec<FunctionItem>> {
        let module = Module::parse(text).unwrap();
        let mut cutter = module.functions(["a__sin", "a__cos", "a__parity", "a__compare"].into_iter());
        symbols.iter().map(|symbol| cutter.cut(symbol).unwrap()).collect()
    }

    #[test]
    fn what_functions_need_stands_before_them_and_is_shared() {
        let cut = functions(FUNCTIONS, &["a__sin", "a__cos"]);
        let (sin, cos) = (&cut[0], &cut[1]);
        let heads = sin.iter().map(|item| item.text.split('\n').next().unwrap()).collect::<Vec<_>>();
        assert!(heads[0].starts_with(".global .align 4 .b8 table_"), "{heads:?}");
        assert!(heads[1].starts_with(".func  (.param .b32 func_retval0) slow_"), "{heads:?}");
        assert_eq!(heads[2], ".visible .func  (.param .b32 func_retval0) a__sin(");
        assert_eq!((sin.len(), cos.len(), &sin[..2]), (3, 3, &cos[..2]));
        assert_eq!((sin[1].function.as_deref(), sin[2].function.as_deref()), (None, Some("a__sin")));
        // The names of the called function and of the table are those of their items.
        let name = function_name(&sin[1].text).unwrap();
        assert!(sin[2].text.contains(&format!(", {name}, (param0);")), "{}", sin[2].text);
        let table = heads[0].split([' ', '[']).find(|word| word.starts_with("table_")).unwrap();
        assert!(sin[1].text.contains(&format!("%rd3, {table};")) && sin[1].text.contains(" __local_depot;"));
        assert!(sin[1].text.contains(".local .align 4 .b8 \t__local_depot[28];"), "{}", sin[1].text);
        assert!(sin[2].text.contains("bra \t$L__BB0_2;") && !sin[2].text.contains(".loc"), "{}", sin[2].text);
    }

    #[test]
    fn functions_that_call_each_other_are_one_item_with_declarations() {
        let parity = functions(FUNCTIONS, &["a__parity"]).remove(0);
        let group = &parity.iter().find(|item| item.text.contains("even_")).unwrap().text;
        assert_eq!(group.matches(".func").count(), 4, "{group}");
        assert!(group.find("();").unwrap() < group.find('{').unwrap(), "{group}");
        assert!(parity.iter().any(|item| item.text == ".shared .align 8 .b64 kp_control;\n"), "{parity:?}");
        assert!(parity.iter().any(|item| item.text.starts_with(".extern .func  (.param .b32 func_retval0) vprintf\n")));
    }

    #[test]
    fn equal_names_have_equal_texts() {
        // The table differs, and with it what names it, but not the rest.
        let cut = functions(FUNCTIONS, &["a__sin", "a__parity"]);
        let other = functions(&FUNCTIONS.replace("192, 63}", "192, 64}"), &["a__sin", "a__parity"]);
        assert_eq!(cut[1], other[1]);
        for (one, two) in cut[0].iter().zip(&other[0]).take(2) {
            let name = |item: &FunctionItem| Item::new(item.text.clone()).name.unwrap();
            assert_ne!(name(one), name(two));
        }
        // The place in the module does not count.
        assert_eq!(
            cut,
            functions(&FUNCTIONS.replace("BB4", "BB9").replace("depot7", "depot3"), &["a__sin", "a__parity"])
        );
    }

    #[test]
    fn undefined_function_of_a_device_function_is_reported() {
        let module = Module::parse(FUNCTIONS).unwrap();
        let mut cutter = module.functions(["a__compare"].into_iter());
        assert_eq!(cutter.cut("a__compare"), Err(Cut::Unresolved("memcmp".into())));
        assert_eq!(module.functions(["a__none"].into_iter()).cut("a__none"), Err(Cut::NoEntry));
    }

    #[test]
    fn functions_that_do_not_reach_an_undefined_one_are_cut_after_one_that_does() {
        let module = Module::parse(FUNCTIONS).unwrap();
        let mut cutter = module.functions(["a__compare", "a__sin"].into_iter());
        assert_eq!(cutter.cut("a__compare"), Err(Cut::Unresolved("memcmp".into())));
        assert_eq!(cutter.cut("a__compare"), Err(Cut::Unresolved("memcmp".into())));
        assert_eq!(cutter.cut("a__sin").unwrap(), functions(FUNCTIONS, &["a__sin"])[0]);
    }

    #[test]
    fn a_long_chain_of_calls_is_cut() {
        let function = |i: usize| format!(".visible .func f{i}() {{\n\tcall f{}, ();\n}}\n", i + 1);
        let calls: String = (0..20_000).map(function).collect();
        let text =
            format!(".version 8.0\n.target sm_90\n.address_size 64\n{calls}.visible .func f20000() {{ ret; }}\n");
        let module = Module::parse(&text).unwrap();
        let items = module.functions(["f0"].into_iter()).cut("f0").unwrap();
        assert_eq!((items.len(), items.last().unwrap().function.as_deref()), (20_001, Some("f0")));
    }

    #[test]
    fn broken_text_is_an_error() {
        let header = ".version 8.0\n.target sm_90\n.address_size 64\n";
        for (text, part) in [
            ("", "no .version"),
            (&*format!("{header}.visible .entry k() {{ ret;"), "does not end"),
            (&*format!("{header}.global .u32 a"), "does not end"),
            (&*format!("{header}.visible .entry (.param .u64 x) {{ ret; }}"), "the function at line 3 has no name"),
            (&*format!("{header}/* open"), "a comment"),
            (&*format!("{header}stray;"), "found `stray;`"),
        ] {
            let message = Module::parse(text).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn damaged_modules_are_an_error_or_are_cut_into_modules() {
        let words = [
            ".func ",
            ".entry ",
            ".visible ",
            ".extern ",
            ".global ",
            ".version 8.0",
            "call ",
            "slow",
            "a__sin",
            "{",
            "}",
            ";",
            "(",
            ")",
            "//",
            "/*",
            "*/",
            "\"",
            "\\",
            "$L__BB",
            "__local_depot",
            "\t.loc\t",
            ".section",
            "neg.s16 %rs1, %rs2;",
            "\n",
        ];
        let exported = ["a__sin", "a__cos", "a__parity", "a__compare", "a__one"];
        try_all(
            1500,
            |damage| Shown(damage.damaged(&[PTX.as_bytes(), FUNCTIONS.as_bytes()], &words)),
            |Shown(bytes)| {
                let text = respell(&String::from_utf8_lossy(bytes));
                let module = match Module::parse(&text) {
                    Ok(module) => module,
                    Err(error) if error.is_empty() || error.len() > 300 => return Err(format!("no message: {error}")),
                    Err(_) => return Ok(()),
                };
                let mut cutter = module.functions(exported.into_iter());
                for name in exported {
                    if let Ok(ptx) = module.cut(name) {
                        Module::parse(&ptx).map_err(|error| format!("{error}, in the module of {name}: {ptx}"))?;
                    }
                    let items = cutter.cut(name);
                    if items.as_ref().is_ok_and(|items| items.is_empty()) || items != cutter.cut(name) {
                        return Err(format!("the items of {name}: {items:?}"));
                    }
                }
                Ok(())
            },
        );
    }
}
