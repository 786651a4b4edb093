//! Cuts the PTX of a whole module into one module per kernel, and into the items of each device function.
//!
//! The driver compiles what it is given: a module with every kernel of a crate would be compiled whole when
//! the first of them is launched. Each kernel gets the functions and variables that it reaches, and nothing else.
//!
//! The items of a device function go into modules that are written at run time, beside those of other functions and of other
//! crates. So every name that is not exported gets a hash of what it names: equal names have equal texts.

use std::collections::{BTreeSet, HashMap, HashSet};

mod functions;
#[cfg(test)]
mod tests;

pub(crate) use functions::FunctionItem;

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

/// What an entry begins with where launches of a stream may overlap: it waits for the launch before. So nothing of a kernel but its start runs
/// beside the one before.
const WAIT: &str = "\n\tgriddepcontrol.wait;";

/// It lets the next launch begin as soon as all of its blocks have begun, unless it says later when.
const LAUNCH_DEPENDENTS: &str = "\n\tgriddepcontrol.launch_dependents;";

/// Has the entry wait for the launch before it by itself. The host reads it from the text, and tells the driver. For sm_90 and later.
///
/// The wait orders no loads of memory that stays as it is during a kernel (`ld.global.nc`), of which the launch before is a part now: such loads
/// become plain ones.
pub(crate) fn with_overlap(text: &str) -> Option<String> {
    let entry = text.find(".entry")?;
    let (head, body) = text.split_at(entry + text[entry..].find('{')? + 1);
    // A function that was not inlined may say it, too.
    let launches = if text.contains(LAUNCH_DEPENDENTS.trim()) { "" } else { LAUNCH_DEPENDENTS };
    let ordered = [head, WAIT, launches, body].concat().replace("ld.global.nc.", "ld.global.");
    // Of other loads that nothing orders, there are forms that no compiler has written here.
    Some(if ordered.contains(".nc.") || ordered.contains("ldu.") { text.to_owned() } else { ordered })
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
