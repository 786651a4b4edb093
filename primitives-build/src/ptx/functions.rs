//! Cuts out device functions, with names that do not depend on the module they are of.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Cut, Item, Module, PROVIDED, renumber_labels, tokens};
use crate::files;

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
