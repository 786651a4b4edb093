//! Cuts a crate's LLVM IR into one module per kernel, as text.
//!
//! A module of its own makes a kernel's code independent of the other kernels, lets all cores work, and is the content by which
//! an earlier build's result is found again. So its text must not tell where it was: attributes, metadata and constants without names,
//! which have running numbers in the crate, are numbered anew, names of functions lose what stands in them for the folder of their
//! crate, and the order is that in which they are named.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::ops::Range;

/// What is said of the functions of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// As rustc wrote them: all are inlined whatever their size, as a call costs registers and puts arrays into memory. `core`'s are as LLVM
    /// decides. What must not be inlined is protected from being specialised for its only caller. But for `core`'s, again: they panic, and
    /// once they are known to end the kernel, the messages that they would format are not needed.
    Raw,
    /// Simplified: what is worth it has been inlined, and all others are protected.
    Simplified,
}

/// A module taken apart.
#[derive(Debug)]
pub(crate) struct Module {
    /// What `llvm-dis` wrote.
    text: String,
    /// Layout, target, flags: what every part has.
    head: Vec<Range<usize>>,
    /// Functions, variables, types, attributes and metadata, in the module's order.
    items: Vec<Item>,
    /// Items by their names, sigil included: `@name`, `#1`, `!2`, `$name`, `%"a name"`.
    by_name: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
struct Item {
    text: Range<usize>,
    /// The functions, variables and types that it names, itself included, in the order of their first places.
    reached: Vec<usize>,
}

impl Module {
    /// Takes apart what `llvm-dis` wrote.
    pub(crate) fn parse(text: String) -> Self {
        let mut module = Self { text, head: Vec::new(), items: Vec::new(), by_name: HashMap::new() };
        let mut start = 0;
        while start < module.text.len() {
            let rest = &module.text[start..];
            let mut len = rest.find('\n').map_or(rest.len(), |at| at + 1);
            // A body ends where a line begins with a brace.
            if rest.starts_with("define ") {
                len = rest.find("\n}").map_or(rest.len(), |at| at + 2);
            }
            let item = rest[..len].trim_end();
            let range = start..start + item.len();
            start += len;
            match item.as_bytes().first() {
                None | Some(b';') => {}
                Some(b'@' | b'$' | b'd' | b'a') => module.push(range),
                Some(b'%') if item[1..].starts_with('"') => module.push(range),
                Some(b'!') if item[1..].starts_with(|c: char| c.is_ascii_digit()) => module.push(range),
                // The name of the file that the module was, which no code depends on.
                Some(b's') => {}
                // Of named metadata, what the code generator reads.
                Some(b'!') if !["!llvm.module.flags ", "!llvm.dbg.cu "].iter().any(|name| item.starts_with(name)) => {}
                _ => module.head.push(range),
            }
        }
        for i in 0..module.items.len() {
            let named = References(module.item(i)).filter(|name| name.starts_with(['@', '$', '%']));
            let mut seen = HashSet::new();
            let named = named.filter_map(|name| module.by_name.get(name).copied());
            module.items[i].reached = named.filter(|&item| seen.insert(item)).collect();
        }
        module
    }

    fn push(&mut self, text: Range<usize>) {
        // The first name is the item's own, `attributes #1 = `, and of functions the first that is theirs: `define %"a type" @f(`.
        let item = &self.text[text.clone()];
        let name = References(item).find(|name| !item.starts_with('d') || name.starts_with('@'));
        if let Some(name) = name {
            self.by_name.insert(name.into(), self.items.len());
        }
        self.items.push(Item { text, reached: Vec::new() });
    }

    fn item(&self, i: usize) -> &str {
        &self.text[self.items[i].text.clone()]
    }

    /// Whether the attributes of a definition, or of the group that its first line names, have this word.
    fn has(&self, attribute: &str, definition: &str) -> bool {
        let head = definition.lines().next().unwrap_or_default();
        let group = References(head).filter(|name| name.starts_with('#')).find_map(|name| self.by_name.get(name));
        let texts = [Some(head), group.map(|&at| self.item(at))];
        texts.into_iter().flatten().any(|text| text.split(' ').any(|word| word == attribute))
    }

    /// Where a definition takes the attribute `alwaysinline`, if it is to be inlined: before the group of attributes that rustc gives all.
    fn place_of_inline(&self, definition: &str) -> Option<usize> {
        let head = definition.strip_prefix("define ")?.lines().next()?;
        let name = References(head).find(|name| name.starts_with('@'))?;
        let is_called = !head.starts_with("ptx_kernel ") && !head.contains(" ptx_kernel ");
        let is_open = !["noinline", "cold", "optnone", "alwaysinline"].iter().any(|word| self.has(word, definition));
        (is_called && is_open && !is_of_core(name)).then(|| head.rfind(" #").map(|at| "define ".len() + at + 1))?
    }

    /// The module of these functions and of all that they reach.
    pub(crate) fn cut(&self, symbols: &[&str], stage: Stage) -> String {
        // Each item comes after the first that names it: an order that no name and no other part of the module has a say in.
        let mut seen = HashSet::new();
        let roots = symbols.iter().filter_map(|symbol| self.by_name.get(format!("@{symbol}").as_str()));
        let mut keep: Vec<usize> = roots.copied().filter(|&item| seen.insert(item)).collect();
        let mut next = 0;
        while let Some(&item) = keep.get(next) {
            keep.extend(self.items[item].reached.iter().filter(|&&item| seen.insert(item)));
            next += 1;
        }

        // A function that is not inlined, most of all the one that reports faults, must not be adapted to its only call here: with
        // constants in it, it takes more registers than the kernel. What is used in a way that nobody sees stays as it is.
        let hidden = keep.iter().filter_map(|&item| {
            let text = self.item(item).strip_prefix("define internal ")?;
            let name = References(text).find(|name| name.starts_with('@'))?;
            let stays = stage == Stage::Simplified || (self.has("noinline", text) && !is_of_core(name));
            stays.then(|| format!("ptr {name}"))
        });
        let hidden: Vec<String> = hidden.collect();
        let used = format!(
            "@llvm.compiler.used = appending global [{} x ptr] [{}], section \"llvm.metadata\"",
            hidden.len(),
            hidden.join(", ")
        );

        let mut out = Renumbered {
            module: self,
            text: String::new(),
            crates: HashMap::new(),
            nameless: HashMap::new(),
            numbers: HashMap::new(),
            open: VecDeque::new(),
        };
        for line in &self.head {
            out.write(&self.text[line.clone()]);
        }
        // A type has its size before it is used.
        let (types, rest): (Vec<usize>, Vec<usize>) = keep.iter().partition(|&&item| self.item(item).starts_with('%'));
        for item in types.into_iter().chain(rest) {
            let text = self.item(item);
            let inline = (stage == Stage::Raw).then(|| self.place_of_inline(text)).flatten();
            let (head, tail) = text.split_at(inline.unwrap_or_default());
            out.write_part(head);
            if inline.is_some() {
                out.text.push_str("alwaysinline ");
            }
            out.write(tail);
        }
        if !hidden.is_empty() {
            out.write(&used);
        }
        while let Some(item) = out.open.pop_front() {
            out.write(self.item(item));
        }
        out.text
    }
}

/// Whether a function is one of `core`, by its mangled name, in which the first crate is its own.
fn is_of_core(name: &str) -> bool {
    let crate_of = |name: &str| Some(name.split_once("Cs")?.1.split_once('_')?.1.starts_with("4core"));
    crate_of(name).unwrap_or_default()
}

/// Whether a constant has no name but what LLVM gave it, with a module's hash and a running number, or rustc, with a hash.
fn is_nameless(name: &str) -> bool {
    let is_hash = |rest: &str| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit());
    name.starts_with("@anon.") || name.strip_prefix("@alloc_").is_some_and(is_hash)
}

/// A part as it is written.
struct Renumbered<'m> {
    module: &'m Module,
    text: String,
    /// New numbers of crates, which have them by their folders.
    crates: HashMap<&'m str, usize>,
    /// New numbers of constants without names.
    nameless: HashMap<&'m str, usize>,
    /// New numbers of attributes and metadata.
    numbers: HashMap<&'m str, usize>,
    /// Of those, the items that are to be written still.
    open: VecDeque<usize>,
}

impl<'m> Renumbered<'m> {
    fn write(&mut self, item: &'m str) {
        self.write_part(item);
        self.text.push('\n');
    }

    fn write_part(&mut self, item: &'m str) {
        let mut copied = 0;
        for name in References(item) {
            let start = name.as_ptr().addr() - item.as_ptr().addr();
            if name.starts_with("@_R") {
                self.text.push_str(&item[copied..start]);
                self.write_symbol(name);
                copied = start + name.len();
            } else if is_nameless(name) {
                let next = self.nameless.len();
                let number = *self.nameless.entry(name).or_insert(next);
                self.text.push_str(&item[copied..start]);
                write!(self.text, "@nameless.{number}").expect("writing to a string");
                copied = start + name.len();
            } else if name.starts_with(['#', '!'])
                && let Some(&at) = self.module.by_name.get(name)
            {
                let next = self.numbers.len();
                let number = *self.numbers.entry(name).or_insert_with(|| {
                    self.open.push_back(at);
                    next
                });
                self.text.push_str(&item[copied..=start]);
                write!(self.text, "{number}").expect("writing to a string");
                copied = start + name.len();
            }
        }
        self.text.push_str(&item[copied..]);
    }

    /// Writes a mangled name with new numbers of crates: `Cs`, digits in base 62 and `_` in it. Different names stay different.
    fn write_symbol(&mut self, name: &'m str) {
        let mut rest = name;
        while let Some(at) = rest.find("Cs") {
            let (before, number) = rest.split_at(at + 2);
            self.text.push_str(before);
            rest = number;
            let digits = number.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(number.len());
            if number[digits..].starts_with('_') {
                let next = self.crates.len();
                let new = *self.crates.entry(&number[..digits]).or_insert(next);
                write!(self.text, "{new}").expect("writing to a string");
                rest = &number[digits..];
            }
        }
        self.text.push_str(rest);
    }
}

/// The names in a text of IR, with their sigils: `@name`, `@"a name"`, `#1`, `!2`, `$name`, and of types `%"a name"` alone, since values
/// have names as well. Strings are passed over.
#[derive(Clone)]
struct References<'a>(&'a str);

impl<'a> Iterator for References<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            let start = i;
            i += 1;
            match bytes[start] {
                b'"' => i = after_string(bytes, i),
                b'@' | b'$' | b'%' if bytes.get(i) == Some(&b'"') => {
                    i = after_string(bytes, i + 1);
                    return Some(self.take(start, i));
                }
                b'@' | b'$' => {
                    while bytes.get(i).is_some_and(|&b| b.is_ascii_alphanumeric() || b"._$-".contains(&b)) {
                        i += 1;
                    }
                    if i > start + 1 {
                        return Some(self.take(start, i));
                    }
                }
                b'#' | b'!' => {
                    while bytes.get(i).is_some_and(u8::is_ascii_digit) {
                        i += 1;
                    }
                    if i > start + 1 {
                        return Some(self.take(start, i));
                    }
                }
                _ => {}
            }
        }
        self.0 = "";
        None
    }
}

impl<'a> References<'a> {
    fn take(&mut self, start: usize, end: usize) -> &'a str {
        let (name, rest) = (&self.0[start..end], &self.0[end..]);
        self.0 = rest;
        name
    }
}

/// The index after the string that begins at `i`, behind its quote. IR writes a quote inside as `\22`.
fn after_string(bytes: &[u8], i: usize) -> usize {
    bytes[i..].iter().position(|&b| b == b'"').map_or(bytes.len(), |at| i + at + 1)
}

#[cfg(test)]
mod tests;
