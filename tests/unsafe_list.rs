//! `UNSAFE.md` lists every `unsafe` of the published crates with its contract. This test makes the list from the sources. It fails if an
//! `unsafe` has no contract, or if the list differs.
//!
//! To write the list: `UPDATE_UNSAFE_LIST=1 cargo test --test unsafe_list`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders that the list covers, without the tests in them.
const FOLDERS: [&str; 7] = [
    "src",
    "primitives-gpu/src",
    "primitives-host/src",
    "primitives-build/src",
    "primitives-macros/src",
    "cuda-driver/src",
    "nccl/src",
];

const HEAD: &str = "\
# Unsafe code

Every `unsafe` of the published crates: what it is, where it is, and its contract: of a block, an implementation or an
attribute, why it is sound; of a function or a trait, what its user must see to.

A test makes this list from the sources, and fails if an `unsafe` has no contract or this list is another. To write it:
`UPDATE_UNSAFE_LIST=1 cargo test --test unsafe_list`
";

#[test]
fn every_unsafe_is_listed_with_its_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut list = HEAD.to_owned();
    let mut without_contract = Vec::new();
    for folder in FOLDERS {
        for path in sources(&root.join(folder)) {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            let uses = uses(&fs::read_to_string(&path).unwrap());
            if !uses.is_empty() {
                write!(list, "\n## {name}\n\n").unwrap();
            }
            for Use { what, line, contract } in uses {
                match contract {
                    Some(contract) => list.push_str(&wrap(&format!("- {what}: {contract}"))),
                    None => without_contract.push(format!("{name}:{line}: {what}")),
                }
            }
        }
    }
    let missing = without_contract.join("\n");
    assert!(missing.is_empty(), "without a `SAFETY:` comment or a `# Safety` section:\n{missing}");

    let file = root.join("UNSAFE.md");
    if std::env::var_os("UPDATE_UNSAFE_LIST").is_some() {
        fs::write(&file, &list).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap_or_default();
    if let Some((line, (new, old))) = (1..).zip(padded(&list).zip(padded(&listed))).find(|(_, (new, old))| new != old) {
        panic!(
            "UNSAFE.md is out of date from line {line}: it has\n{}\nand should have\n{}\n\
             Look at the change, and run `UPDATE_UNSAFE_LIST=1 cargo test --test unsafe_list`",
            old.unwrap_or("its end"),
            new.unwrap_or("its end"),
        );
    }
}

/// Returns the lines, and then `None`, to compare with what follows.
fn padded(text: &str) -> impl Iterator<Item = Option<&str>> {
    text.lines().map(Some).chain([None])
}

/// The sentence in the docs of a kernel of algorithms that is right for any arguments. Other kernels rely on the preparation by their
/// algorithm, and only the algorithm launches them. These have `launch(pub(crate))`.
const FOR_ANYBODY: &str = "/// Anyone may launch it: its result is right for any arguments.";

#[test]
fn kernels_that_rely_on_their_algorithm_are_launched_by_it_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut public, mut wrong) = (0, Vec::new());
    for path in ["src/algorithms", "src/kernels/device"].iter().flat_map(|folder| sources(&root.join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let parts: Vec<&str> = text.split("\n#[kernel").collect();
        for pair in parts.windows(2) {
            let docs = pair[0].rsplit("\n\n").next().unwrap_or_default();
            let (attributes, function) = pair[1].split_once("\npub fn ").expect("a function below its attributes");
            let (is_public, says_so) = (!attributes.contains("launch(pub(crate))"), docs.contains(FOR_ANYBODY));
            public += usize::from(is_public && says_so);
            if is_public != says_so {
                wrong.push(function.split(['<', '(']).next().unwrap().to_owned());
            }
        }
    }
    assert_eq!(wrong, [""; 0], "have either `launch(pub(crate))` or the line `{FOR_ANYBODY}`");
    assert!(public > 0, "no kernel has the line");
}

/// Returns the Rust files in a folder, in order, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let files = entries.into_iter().flat_map(|path| match path.is_dir() {
        true if path.ends_with("tests") => Vec::new(),
        false if path.ends_with("tests.rs") => Vec::new(),
        true => sources(&path),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Wraps an entry of the list into paragraphs of up to 120 columns.
fn wrap(entry: &str) -> String {
    let mut wrapped = String::new();
    let mut column = 0;
    for word in entry.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 120 {
            wrapped.push_str("\n ");
            column = 1;
        }
        if column > 0 {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += width;
    }
    wrapped + "\n"
}

/// An `unsafe` in a source.
struct Use {
    what: String,
    line: usize,
    contract: Option<String>,
}

/// A line of a source, in rustfmt's format.
#[derive(Default)]
struct Line {
    /// The code, without the inside of literals.
    code: String,
    /// The text of the comment that begins in the line, or that the line is a part of.
    comment: Option<String>,
}

impl Line {
    fn indent(&self) -> usize {
        self.code.len() - self.code.trim_start().len()
    }

    fn is_code(&self) -> bool {
        !self.code.trim().is_empty()
    }
}

/// Returns every `unsafe` before the tests of a source. Tests in a file of their own do not end the search.
fn uses(source: &str) -> Vec<Use> {
    let lines = lines(source);
    let is_of_tests = |code: &str| code.starts_with("mod ") && code.ends_with('{');
    let tests = lines.windows(2).position(|pair| pair[0].code == "#[cfg(test)]" && is_of_tests(&pair[1].code));
    let mut uses = Vec::new();
    for number in 0..tests.unwrap_or(lines.len()) {
        let code = &lines[number].code;
        for (at, _) in code.match_indices("unsafe") {
            let of_word = |c: char| c.is_alphanumeric() || c == '_';
            if code[..at].ends_with(of_word) || code[at + 6..].starts_with(of_word) {
                continue;
            }
            // A header may be several lines long.
            let following = lines[number + 1..].iter().take(8).map(|line| line.code.trim());
            let rest = following.fold(code[at + 6..].trim().to_owned(), |rest, line| rest + " " + line);
            if let Some((kind, is_promise)) = kind_of(&rest) {
                let owners = owners(&lines, number);
                let inside = owners.iter().map(|owner| format!("`{owner}`")).collect::<Vec<_>>().join(", ");
                let what = if inside.is_empty() { kind } else { format!("{kind} in {inside}") };
                let contract = if !is_promise {
                    reason(&lines, number)
                } else if owners.last().is_some_and(|owner| owner.starts_with("impl") && owner.contains(" for ")) {
                    Some("the trait's".to_owned())
                } else {
                    section(&comment_above(&lines, number))
                };
                uses.push(Use { what, line: number + 1, contract });
            }
        }
    }
    uses
}

/// Returns the kind of an `unsafe` that is followed by `rest`, and whether its user makes the promise. Returns `None` for a type.
fn kind_of(rest: &str) -> Option<(String, bool)> {
    let header = |end: &[char]| rest[..rest.find(end).unwrap_or(rest.len())].trim().to_owned();
    let after_abi =
        rest.strip_prefix("extern").map_or(rest, |rest| rest.trim_start().trim_start_matches('"').trim_start());
    if rest.starts_with('{') {
        Some(("block".to_owned(), false))
    } else if rest.starts_with('(') {
        Some((format!("attribute `{}`", header(&[' ', ')']).trim_matches('(')), false))
    } else if rest.starts_with("impl") {
        Some((format!("`unsafe {}`", header(&['{']).split(" where").next().unwrap_or_default()), false))
    } else if rest.starts_with("trait") {
        Some((format!("`unsafe {}`", header(&['{', ':'])), true))
    } else if after_abi.starts_with('{') {
        Some(("`unsafe extern` block".to_owned(), false))
    } else if let Some(name) = after_abi.strip_prefix("fn ") {
        let name = name.split(['(', '<']).next().unwrap_or_default();
        Some((format!("`unsafe fn {name}`"), true))
    } else if after_abi.starts_with("fn(") {
        None
    } else {
        panic!("an unknown use of `unsafe`, before `{rest}`");
    }
}

/// Returns the items around a line, the outermost first.
fn owners(lines: &[Line], number: usize) -> Vec<String> {
    let mut owners = Vec::new();
    let mut indent = lines[number].indent();
    let mut in_header = false;
    for line in lines[..number].iter().rev().filter(|line| line.is_code()) {
        if line.indent() < indent || in_header && line.indent() == indent {
            indent = line.indent();
            let code = line.code.trim();
            in_header = code.starts_with([')', '{', '>']) || code.starts_with("where");
            owners.extend(item(code));
        }
    }
    owners.reverse();
    owners
}

/// Returns the item that a line begins, in short.
fn item(code: &str) -> Option<String> {
    let mut rest = code;
    loop {
        let (word, after) = rest.split_once([' ', '<', '(']).unwrap_or((rest, ""));
        match word {
            "pub" if rest.starts_with("pub(") => rest = after.split_once(") ")?.1,
            "pub" | "async" | "default" | "unsafe" => rest = after,
            "const" if after.starts_with("fn ") || after.starts_with("unsafe ") => rest = after,
            "extern" => rest = after.trim_start_matches(['"', ' ']),
            "impl" => return Some(rest.split([';', '{']).next()?.split(" where").next()?.trim().to_owned()),
            "fn" | "mod" | "trait" | "const" | "static" | "macro_rules!" => {
                let name = after.split(|c: char| !(c.is_alphanumeric() || "_#$".contains(c))).next()?;
                return (!name.is_empty()).then(|| format!("{word} {name}"));
            }
            _ => return None,
        }
    }
}

/// Returns the comment directly above a line, without attributes.
fn comment_above(lines: &[Line], number: usize) -> Vec<&str> {
    let mut comment = Vec::new();
    let mut in_attribute = false;
    for line in lines[..number].iter().rev() {
        let code = line.code.trim();
        match &line.comment {
            Some(text) if code.is_empty() => comment.push(text.trim()),
            _ if code.starts_with("#[") => in_attribute = false,
            _ if code == ")]" => in_attribute = true,
            _ if in_attribute => {}
            _ => break,
        }
    }
    comment.reverse();
    comment
}

/// Returns the `SAFETY:` comment above the statement that a line belongs to.
fn reason(lines: &[Line], mut number: usize) -> Option<String> {
    loop {
        let comment = comment_above(lines, number).join(" ");
        if let Some((_, reason)) = comment.split_once("SAFETY:") {
            return Some(reason.trim().to_owned());
        }
        let above = number.checked_sub(1).map(|above| lines[above].code.trim())?;
        if above.is_empty() || above.ends_with([';', '{', '}']) || above.contains("unsafe") {
            return None;
        }
        number -= 1;
    }
}

/// Returns the text of the section `# Safety`.
fn section(comment: &[&str]) -> Option<String> {
    let text = comment.iter().skip_while(|line| **line != "# Safety").skip(1);
    let text: Vec<&str> = text.take_while(|line| !line.starts_with("# ")).copied().collect();
    let text = text.join(" ").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the lines of a source, with comments and the inside of literals apart.
fn lines(source: &str) -> Vec<Line> {
    enum State {
        Code,
        Comment,
        Block,
        Text,
        Raw(String),
    }
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let line = lines.last_mut().expect("there is a first line");
        let mut taken = c.len_utf8();
        match &state {
            _ if c == '\n' => {
                lines.push(Line::default());
                if matches!(state, State::Comment) {
                    state = State::Code;
                }
            }
            State::Comment => line.comment.get_or_insert_default().push(c),
            State::Block if rest.starts_with("*/") => (state, taken) = (State::Code, 2),
            State::Block => line.comment.get_or_insert_default().push(c),
            State::Text if c == '\\' => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
            State::Text if c == '"' => state = State::Code,
            State::Raw(end) if rest.starts_with(end.as_str()) => (taken, state) = (end.len(), State::Code),
            State::Text | State::Raw(_) => {}
            State::Code if rest.starts_with("//") => {
                taken = rest.len() - rest.trim_start_matches('/').len();
                taken += rest[taken..].starts_with('!') as usize;
                line.comment = Some(String::new());
                state = State::Comment;
            }
            State::Code if rest.starts_with("/*") => (state, taken) = (State::Block, 2),
            State::Code
                if rest.starts_with("r\"") || rest.starts_with("r#") && !line.code.ends_with(char::is_alphanumeric) =>
            {
                let hashes = rest[1..].len() - rest[1..].trim_start_matches('#').len();
                if rest[1 + hashes..].starts_with('"') {
                    (state, taken) = (State::Raw(format!("\"{}", &rest[1..1 + hashes])), hashes + 2);
                }
                line.code.push('"');
            }
            State::Code if c == '"' => {
                line.code.push('"');
                state = State::Text;
            }
            State::Code if c == '\'' => {
                let inside = rest[1..].chars().next().map_or(0, char::len_utf8);
                match rest[1..].strip_prefix('\\') {
                    Some(escape) => taken = 2 + escape[1..].find('\'').map_or(0, |end| end + 2),
                    None if rest[1 + inside..].starts_with('\'') => taken = inside + 2,
                    // This is a lifetime.
                    None => line.code.push(c),
                }
            }
            State::Code => line.code.push(c),
        }
        // The end of a line that a backslash hides still ends the line.
        if c != '\n' && rest[..taken].contains('\n') {
            lines.push(Line::default());
        }
        rest = &rest[taken..];
    }
    lines
}

/// Returns the entries of a source: the item and its contract.
fn listed(source: &str) -> Vec<(String, Option<String>)> {
    uses(source).into_iter().map(|found| (found.what, found.contract)).collect()
}

#[test]
fn finds_every_kind() {
    let source = r##"
        //! unsafe in words, "unsafe" in a literal and unsafe_code as a lint are none.
        const TEXT: &str = "unsafe { 1 } \" unsafe";
        const RAW: &str = r#"unsafe " "#;
        const QUOTE: char = '"';
        type Pointer = unsafe extern "C" fn(u32);

        #[cfg(test)]
        mod apart;

        /// Reads.
        ///
        /// # Safety
        /// There is
        /// something.
        ///
        /// # Panics
        /// Never.
        #[inline]
        pub(crate) const unsafe fn read<'a>(
            value: &'a u32,
        ) -> u32
        where
            u32: Sized,
        {
            // SAFETY: the
            // caller's.
            let (a, b) = (
                1,
                unsafe { value.read() },
            );
            a + b
        }

        // SAFETY: it is one.
        unsafe impl<T: Copy> Element for Pair<T> where T: Element {
            unsafe fn zero() -> Self {
                unsafe { zeroed() }
            }
        }

        /// # Safety
        /// Plain data.
        pub unsafe trait Element: Sized {}

        mod entry {
            // SAFETY: a name of its own.
            #[unsafe(no_mangle)]
            extern "C" fn entry() {}
        }

        #[cfg(test)]
        mod tests {
            fn free() { unsafe { free() } }
        }
    "##;
    // As in a file.
    let source = source.replace("\n        ", "\n");
    let expected = [
        ("`unsafe fn read`", Some("There is something.")),
        ("block in `fn read`", Some("the caller's.")),
        ("`unsafe impl<T: Copy> Element for Pair<T>`", Some("it is one.")),
        ("`unsafe fn zero` in `impl<T: Copy> Element for Pair<T>`", Some("the trait's")),
        ("block in `impl<T: Copy> Element for Pair<T>`, `fn zero`", None),
        ("`unsafe trait Element`", Some("Plain data.")),
        ("attribute `no_mangle` in `mod entry`", Some("a name of its own.")),
    ];
    let expected = expected.map(|(what, contract)| (what.to_owned(), contract.map(str::to_owned)));
    assert_eq!(listed(&source), expected);
}

#[test]
fn a_contract_is_right_above() {
    let one = |source: &str| listed(source).pop().unwrap().1;
    assert_eq!(one("fn f() {\n    // SAFETY: yes.\n    g(unsafe { h() });\n}"), Some("yes.".to_owned()));
    assert_eq!(one("fn f() {\n    // SAFETY: yes.\n    g();\n    unsafe { h() };\n}"), None);
    assert_eq!(one("fn f() {\n    // Safe.\n    unsafe { h() };\n}"), None);
    assert_eq!(one("/// Does.\nunsafe fn f() {}"), None);
    assert_eq!(one("/// # Safety\nunsafe fn f() {}"), None);
}
