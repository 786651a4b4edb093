//! Cuts a crate's LLVM IR into one module per kernel, as text.
//!
//! A module of its own makes a kernel's code independent of the other kernels, lets all cores work, and is the content by which
//! an earlier build's result is found again. So its text must not tell where it was: attributes and metadata, which have running
//! numbers in the crate, are numbered anew, and names of functions lose what stands in them for the folder of their crate.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Write;

/// A module taken apart.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    /// Layout, target, types, flags: what every part has.
    head: Vec<&'a str>,
    /// Functions, variables, attributes and metadata, in the module's order.
    items: Vec<&'a str>,
    /// Items by their names, sigil included: `@name`, `#1`, `!2`, `$name`.
    by_name: HashMap<&'a str, usize>,
    /// New names of symbols, by the old ones.
    renamed: HashMap<&'a str, String>,
}

impl<'a> Module<'a> {
    /// Takes apart what `llvm-dis` wrote.
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut module = Self { head: Vec::new(), items: Vec::new(), by_name: HashMap::new(), renamed: HashMap::new() };
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            // A body ends where a line begins with a brace.
            if rest.starts_with("define ") {
                end = rest.find("\n}").map_or(rest.len(), |at| at + 2);
            }
            let (item, tail) = rest.split_at(end);
            rest = tail;
            let item = item.trim_end();
            match item.as_bytes().first() {
                None | Some(b';') => {}
                Some(b'@' | b'$') => module.push(item),
                Some(b'd') => module.push(item),
                Some(b'a') => module.push(item),
                Some(b'!') if item[1..].starts_with(|c: char| c.is_ascii_digit()) => module.push(item),
                // The name of the file that the module was, which no code depends on.
                Some(b's') => {}
                // Of named metadata, what the code generator reads.
                Some(b'!') if !["!llvm.module.flags ", "!llvm.dbg.cu "].iter().any(|name| item.starts_with(name)) => {}
                _ => module.head.push(item),
            }
        }
        module.rename();
        module
    }

    /// Gives symbols names that are the same in each folder, if all of them stay different.
    fn rename(&mut self) {
        let symbols = || self.by_name.keys().filter(|name| name.starts_with('@'));
        let renamed: HashMap<&str, String> =
            symbols().filter_map(|&name| Some((name, without_folders(name)?))).collect();
        let names: HashSet<&str> = symbols().map(|&name| renamed.get(name).map_or(name, String::as_str)).collect();
        if names.len() == symbols().count() {
            self.renamed = renamed;
        }
    }

    fn push(&mut self, item: &'a str) {
        // The first name is the item's own: `define void @f(`, `attributes #1 = `.
        if let Some(name) = References(item).next() {
            self.by_name.insert(name, self.items.len());
        }
        self.items.push(item);
    }

    /// The module of these functions and of all that they reach.
    pub(crate) fn cut(&self, symbols: &[&str]) -> String {
        let mut keep = BTreeSet::new();
        let mut open: Vec<usize> = Vec::new();
        let roots = symbols.iter().filter_map(|symbol| self.by_name.get(format!("@{symbol}").as_str()));
        open.extend(roots);
        while let Some(item) = open.pop() {
            if keep.insert(item) {
                let named = References(self.items[item]).filter(|name| name.starts_with(['@', '$']));
                open.extend(named.filter_map(|name| self.by_name.get(name)));
            }
        }

        // The compiler has inlined what is worth it. A function that it left, most of all the one that reports faults, must not be
        // adapted to its only call here: with constants in it, it takes more registers than the kernel. What is used in a way that
        // nobody sees stays as it is.
        let hidden = keep.iter().filter_map(|&item| {
            let text = self.items[item].strip_prefix("define internal ")?;
            let name = References(text).next()?;
            Some(format!("ptr {}", self.renamed.get(name).map_or(name, String::as_str)))
        });
        let hidden: Vec<String> = hidden.collect();
        let used = format!(
            "@llvm.compiler.used = appending global [{} x ptr] [{}], section \"llvm.metadata\"\n",
            hidden.len(),
            hidden.join(", ")
        );

        let mut out = Renumbered { module: self, text: String::new(), numbers: HashMap::new(), open: VecDeque::new() };
        for &line in &self.head {
            out.write(line);
        }
        for &item in &keep {
            out.write(self.items[item]);
        }
        if !hidden.is_empty() {
            out.text.push_str(&used);
        }
        while let Some(item) = out.open.pop_front() {
            out.write(self.items[item]);
        }
        out.text
    }
}

/// A part as it is written.
struct Renumbered<'m, 'a> {
    module: &'m Module<'a>,
    text: String,
    /// New numbers of attributes and metadata.
    numbers: HashMap<&'a str, usize>,
    /// Of those, the items that are to be written still.
    open: VecDeque<usize>,
}

impl<'a> Renumbered<'_, 'a> {
    fn write(&mut self, item: &'a str) {
        let mut copied = 0;
        for name in References(item) {
            let start = name.as_ptr().addr() - item.as_ptr().addr();
            if let Some(new) = self.module.renamed.get(name) {
                self.text.extend([&item[copied..start], new]);
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
        self.text.push('\n');
    }
}

/// A mangled name without the numbers of crates, which a crate gets by its folder: `C`, `s`, digits in base 62 and `_`.
fn without_folders(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("@_R")?;
    let mut new = String::from("@_R");
    while let Some(at) = rest.find("Cs") {
        let (before, number) = rest.split_at(at + 2);
        let digits = number.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(number.len());
        let is_number = number[digits..].starts_with('_');
        new.push_str(&before[..if is_number { at + 1 } else { at + 2 }]);
        rest = if is_number { &number[digits + 1..] } else { number };
    }
    new.push_str(rest);
    Some(new)
}

/// The names in a text of IR, with their sigils: `@name`, `@"a name"`, `#1`, `!2`, `$name`. Strings are passed over.
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
                b'@' | b'$' if bytes.get(i) == Some(&b'"') => {
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
mod tests {
    use super::*;
    use crate::damage::{Shown, try_all};

    const IR: &str = r##"; ModuleID = 'app'
source_filename = "app.3f1"
target datalayout = "e-i64:64"
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, i32 }

@text = private constant [9 x i8] c"@two #7 !", align 1
@table = internal constant [1 x ptr] [ptr @"a name"]
@unused = private constant i8 0

; Function Attrs: nounwind
define ptx_kernel void @one(ptr %x) #7 !dbg !9 {
start:
  call void @deep(ptr @text), !range !12
  ret void
}

define ptx_kernel void @two(ptr %x) #4 {
  %f = load ptr, ptr @table
  ret void
}

define internal void @deep(ptr %x) #4 !dbg !11 {
  ret void
}

define internal void @"a name"() #5 {
  ret void
}

declare void @llvm.assume(i1)

attributes #4 = { nounwind "key"="#7" }
attributes #5 = { cold }
attributes #7 = { convergent }

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
!9 = distinct !{!9, !11}
!11 = !{i8 0}
!12 = !{i32 0, i32 1024}
"##;

    #[test]
    fn a_part_has_what_the_kernel_reaches_and_nothing_else() {
        let one = Module::parse(IR).cut(&["one"]);
        for part in
            ["target triple", "%pair = type", "@text = ", "define internal void @deep(", "c\"@two #7 !\"", "PIC Level"]
        {
            assert!(one.contains(part), "{part} is not in\n{one}");
        }
        for part in ["@two(", "@table", "a name", "unused", "cold", "llvm.assume", "Function Attrs", "source_filename"]
        {
            assert!(!one.contains(part), "{part} is in\n{one}");
        }
        let two = Module::parse(IR).cut(&["two"]);
        assert!(two.contains("@table = ") && two.contains("define internal void @\"a name\"()"), "{two}");
        assert!(!two.contains("@deep") && !two.contains("1024"), "{two}");
    }

    #[test]
    fn numbers_are_those_of_the_part() {
        let one = Module::parse(IR).cut(&["one"]);
        assert!(one.contains("@one(ptr %x) #1 !dbg !2 {"), "{one}");
        assert!(one.contains("@deep(ptr @text), !range !3"), "{one}");
        assert!(one.contains("@deep(ptr %x) #4 !dbg !5 {"), "{one}");
        assert!(one.contains("\nattributes #4 = { nounwind \"key\"=\"#7\" }\n"), "{one}");
        assert!(one.contains("\n!2 = distinct !{!2, !5}\n") && one.contains("\n!3 = !{i32 0, i32 1024}\n"), "{one}");
        // What other kernels do to the numbers is not seen.
        let others = IR.replace("#7", "#70").replace("#4", "#40").replace("!11", "!31").replace("!9", "!8");
        assert_eq!(Module::parse(&others).cut(&["one"]).replace("#70", "#7").replace("#40", "#4"), one);
    }

    #[test]
    fn names_are_the_same_in_each_folder_unless_two_would_be_one() {
        let text = |one: &str, two: &str| {
            let ir = IR
                .replace("@deep", &format!("@_RNvCs{one}_3app4deepCs"))
                .replace("@two(", &format!("@_RNvCs{two}_3app4deepCs("));
            Module::parse(&ir).cut(&["one"])
        };
        let part = text("6LTCTBsjTLr", "3dDb9nXiKUR_3one");
        assert!(part.contains("call void @_RNvC3app4deepCs(ptr @text)"), "{part}");
        assert!(part.contains("[ptr @_RNvC3app4deepCs]"), "{part}");
        assert_eq!(part, text("9", "10_3one"));
        let both = text("6LTCTBsjTLr", "3dDb9nXiKUR");
        assert!(both.contains("call void @_RNvCs6LTCTBsjTLr_3app4deepCs(ptr @text)"), "{both}");
    }

    #[test]
    fn functions_that_the_compiler_left_are_not_adapted_to_their_calls() {
        let two = Module::parse(IR).cut(&["two"]);
        let used = "@llvm.compiler.used = appending global [1 x ptr] [ptr @\"a name\"], section \"llvm.metadata\"\n";
        assert!(two.contains(used), "{two}");
    }

    #[test]
    fn damaged_modules_have_parts_that_have_nothing_more_to_lose() {
        let words = ["define ", "@", "\"", "#7", "!9", "\n}", "{", "c\"", "\\22", "\n", "attributes #"];
        try_all(
            2000,
            |damage| Shown(damage.damaged(&[IR.as_bytes()], &words)),
            |Shown(bytes)| {
                let text = String::from_utf8_lossy(bytes);
                let part = Module::parse(&text).cut(&["one", "two", "none"]);
                // A number has two digits here at most, and none becomes longer by so much.
                if part.len() > 2 * text.len() + 64 { Err(part) } else { Ok(()) }
            },
        );
    }
}
