//! Reads the operands of instructions.

use std::collections::HashMap;

pub(super) enum Argument {
    Register(usize),
    Number(u64),
    Parameter(usize),
    /// An address in a register, with an offset that may be negative.
    Memory(usize, u64),
    /// The address of a variable, by its name.
    Variable(String),
    /// Registers whose bits form one value. The low bits come first.
    Several(Vec<usize>),
    Label(String),
    /// The address of a description of an array, and the place of a tile.
    Tile(usize, Vec<usize>),
    Thread,
    Block,
    Blocks,
    /// The block's number in its cluster, the cluster's number, and the number of clusters.
    Rank,
    Cluster,
    Clusters,
}

#[derive(Default)]
pub(super) struct Reader {
    registers: HashMap<String, usize>,
}

impl Reader {
    /// Returns the number of registers.
    pub(super) fn registers(&self) -> usize {
        self.registers.len()
    }

    /// Returns the number of a register.
    pub(super) fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    pub(super) fn argument(&mut self, text: &str) -> Argument {
        if let Some(inner) = text.strip_prefix('{') {
            let names = inner.trim_end_matches('}').split(',');
            return Argument::Several(names.map(|name| self.register(name.trim())).collect());
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.trim_end_matches(']');
            if let Some((map, place)) = inner.split_once(", {") {
                let place = place.trim_end_matches('}').split(',').map(|name| self.register(name.trim())).collect();
                return Argument::Tile(self.register(map), place);
            }
            if let Some(number) = inner.strip_prefix('a') {
                return Argument::Parameter(number.parse().expect("a parameter"));
            }
            let (name, offset) = inner.split_once('+').unwrap_or((inner, "0"));
            return Argument::Memory(self.register(name), offset.parse::<i64>().expect("an offset") as u64);
        }
        match text {
            "%tid.x" => Argument::Thread,
            "%ctaid.x" => Argument::Block,
            "%nctaid.x" => Argument::Blocks,
            "%cluster_ctarank" => Argument::Rank,
            "%clusterid.x" => Argument::Cluster,
            "%nclusterid.x" => Argument::Clusters,
            // The address of a parameter is in its word.
            "a0" => Argument::Parameter(0),
            _ if text.starts_with('%') => Argument::Register(self.register(text)),
            _ if text.starts_with('L') => Argument::Label(text.into()),
            _ => match text.get(..2) {
                Some("0f" | "0d" | "0x") => {
                    Argument::Number(u64::from_str_radix(&text[2..], 16).expect("hexadecimal digits"))
                }
                _ => match text.parse::<i128>() {
                    Ok(number) => Argument::Number(number as u64),
                    Err(_) => Argument::Variable(text.into()),
                },
            },
        }
    }
}

/// Returns the parts between commas that are not in braces or brackets.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Returns the name of a table of constants, and its bytes in words.
pub(super) fn table(line: &str) -> (String, Vec<u64>) {
    let (declared, values) = line.split_once(" = {").expect("values");
    let (declared, name) =
        declared.split_once(".b").map(|(_, rest)| rest.split_once(' ').expect("a name")).expect("a type");
    let size = declared.parse::<usize>().expect("bits") / 8;
    let values = values.trim_end_matches("};").split(", ").map(|value| value.parse::<u64>().expect("a number"));
    let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let name = name.split_once('[').expect("an array").0;
    (name.into(), bytes.chunks(8).map(word).collect())
}
