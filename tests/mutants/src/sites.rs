//! Finds the places of a file that can be mutated, and writes the file's text with some of them.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Item, Lit, Macro, ReturnType, Signature, Stmt, Token, Type};

use crate::Result;
use crate::text::field;

/// The way in which a place is rewritten.
#[derive(Clone, Debug)]
pub enum Rewrite {
    /// An expression that becomes this text.
    Expression(String),
    /// A condition that is negated.
    Negated,
    /// A condition that always holds.
    Always,
    /// A statement that is left out.
    Removed,
    /// The beginning of a function's body. The function returns the default.
    Returns,
}

/// A place that can be mutated.
#[derive(Clone, Debug)]
pub struct Site {
    pub file: String,
    pub function: String,
    pub line: usize,
    /// The bytes of the file.
    pub range: Range<usize>,
    pub operator: &'static str,
    pub original: String,
    pub rewrite: Rewrite,
}

impl Site {
    /// Returns the new text, for a reader.
    pub fn mutated(&self) -> String {
        match &self.rewrite {
            Rewrite::Expression(text) => field(text),
            Rewrite::Negated => format!("!({})", self.original),
            Rewrite::Always => "true".to_owned(),
            Rewrite::Removed => "removed".to_owned(),
            Rewrite::Returns => "return Default::default()".to_owned(),
        }
    }
}

/// Returns all places of a file.
pub fn sites(file: &str, source: &str) -> Result<Vec<Site>> {
    let parsed = syn::parse_file(source).map_err(|error| format!("{file}: {error}"))?;
    let mut finder = Finder { file, source, base: 0, functions: Vec::new(), sites: Vec::new() };
    finder.visit_file(&parsed);
    finder.sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(finder.sites)
}

/// Returns the text of a file with these places rewritten, which have the given numbers. Also returns the range of each.
pub fn rewritten(source: &str, sites: &[(u32, &Site)]) -> (String, Vec<(u32, Range<usize>)>) {
    let mut text = String::with_capacity(source.len() * 2);
    let mut ranges = Vec::new();
    write(source, 0..source.len(), sites, &mut text, &mut ranges);
    (text, ranges)
}

fn write(
    source: &str,
    within: Range<usize>,
    mut sites: &[(u32, &Site)],
    text: &mut String,
    ranges: &mut Vec<(u32, Range<usize>)>,
) {
    let mut at = within.start;
    while let [(number, site), rest @ ..] = sites {
        let inner = rest.iter().take_while(|(_, inner)| inner.range.end <= site.range.end).count();
        text.push_str(&source[at..site.range.start]);
        let start = text.len();
        let is_on = format!("::primitives_gpu::mutant({number})");
        let (before, after) = match &site.rewrite {
            Rewrite::Expression(mutated) => (format!("(if {is_on} {{ {mutated} }} else {{ "), " })"),
            Rewrite::Negated => (format!("({is_on} != ("), "))"),
            Rewrite::Always => (format!("({is_on} || ("), "))"),
            Rewrite::Removed => (format!("if !{is_on} {{ "), " }"),
            Rewrite::Returns => (format!(" if {is_on} {{ return Default::default(); }} "), ""),
        };
        text.push_str(&before);
        write(source, site.range.clone(), &rest[..inner], text, ranges);
        text.push_str(after);
        ranges.push((*number, start..text.len()));
        at = site.range.end;
        sites = &rest[inner..];
    }
    text.push_str(&source[at..within.end]);
}

struct Finder<'a> {
    file: &'a str,
    source: &'a str,
    /// The byte of the file at which the text under examination begins.
    base: usize,
    functions: Vec<String>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn range(&self, node: &impl Spanned) -> Range<usize> {
        let range = node.span().byte_range();
        range.start + self.base..range.end + self.base
    }

    fn text(&self, node: &impl Spanned) -> &str {
        &self.source[self.range(node)]
    }

    fn add(&mut self, range: Range<usize>, operator: &'static str, rewrite: Rewrite) {
        let Some(function) = self.functions.last() else { return };
        let shown = if range.is_empty() { "fn body" } else { &self.source[range.clone()] };
        // This is only for the GPU, although no attribute says so: it is in a macro, or beside one.
        if shown.contains("nvptx") {
            return;
        }
        self.sites.push(Site {
            file: self.file.to_owned(),
            function: function.clone(),
            line: self.source[..range.start].matches('\n').count() + 1,
            original: field(shown),
            range,
            operator,
            rewrite,
        });
    }

    /// Returns the text of a node with a part of it replaced.
    fn replaced(&self, node: &impl Spanned, part: &impl Spanned, by: &str) -> String {
        let (node, part) = (self.range(node), self.range(part));
        format!("{}{by}{}", &self.source[node.start..part.start], &self.source[part.end..node.end])
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() {
            return;
        }
        self.functions.push(signature.ident.to_string());
        let plain = |ty: &Type| matches!(ty, Type::Path(path) if ["bool", "u32", "u64", "usize", "i32", "i64"].iter().any(|name| path.path.is_ident(name)));
        let is_default = matches!(&block.stmts[..], [Stmt::Expr(Expr::Lit(lit), None)]
            if matches!(&lit.lit, Lit::Bool(lit) if !lit.value) || matches!(&lit.lit, Lit::Int(lit) if lit.base10_digits() == "0"));
        if !is_default && matches!(&signature.output, ReturnType::Type(_, ty) if plain(ty)) {
            let start = self.range(&block.brace_token.span.open()).end;
            self.add(start..start, "default returned", Rewrite::Returns);
        }
        self.visit_block(block);
        self.functions.pop();
    }

    /// Visits the bodies of `macro_rules!`, if they read as code.
    fn rules(&mut self, name: String, tokens: &TokenStream) {
        self.functions.push(name);
        let trees: Vec<_> = tokens.clone().into_iter().collect();
        for pair in trees.windows(2) {
            let [TokenTree::Punct(arrow), TokenTree::Group(body)] = pair else { continue };
            if arrow.as_char() != '>' {
                continue;
            }
            let open = self.range(&body.span_open()).end;
            let close = self.range(&body.span_close()).start;
            let text = without_dollars(&self.source[open..close]);
            let base = std::mem::replace(&mut self.base, open);
            if let Ok(file) = syn::parse_file(&text) {
                self.visit_file(&file);
            } else if let Ok(statements) = Block::parse_within.parse_str(&text) {
                statements.iter().for_each(|statement| self.visit_stmt(statement));
            }
            self.base = base;
        }
        self.functions.pop();
    }
}

/// Returns the text of a macro's body as code of the same length. Variables get names, and repetitions count once.
fn without_dollars(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len() {
        if bytes[at] != b'$' {
            continue;
        }
        if bytes.get(at + 1) != Some(&b'(') {
            bytes[at] = b'_';
            continue;
        }
        let mut depth = 0;
        let end = (at + 1..bytes.len()).find(|&i| {
            depth += (bytes[i] == b'(') as i32 - (bytes[i] == b')') as i32;
            depth == 0
        });
        let Some(end) = end else { continue };
        let repeats = |i: usize| matches!(bytes.get(i), Some(b'*' | b'+' | b'?'));
        let last = if repeats(end + 1) { end + 1 } else { end + 2 };
        for i in [at, at + 1].into_iter().chain(end..=last) {
            if let Some(byte) = bytes.get_mut(i) {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns whether the code is for tests, or for the GPU only.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg")
            && !condition.contains("not")
            && (condition == "test" || condition.contains("nvptx64"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

fn expression_attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Block(block) => &block.attrs,
        Expr::If(branch) => &branch.attrs,
        Expr::Return(back) => &back.attrs,
        Expr::Lit(literal) => &literal.attrs,
        Expr::Call(call) => &call.attrs,
        Expr::MethodCall(call) => &call.attrs,
        Expr::Unsafe(block) => &block.attrs,
        _ => &[],
    }
}

/// Returns whether a condition binds names.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    // This is not code that runs, or it may run while compiling.
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_left_out(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_left_out(&function.attrs) {
            self.function(&function.sig, &function.block);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let (Some(block), false) = (&function.default, is_left_out(&function.attrs)) {
            self.function(&function.sig, block);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
        match &item.ident {
            Some(name) if !exported => self.rules(format!("{name}!"), &item.mac.tokens),
            _ => {}
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = call.path.segments.last().map(|name| name.ident.to_string()).unwrap_or_default();
        let said =
            ["assert", "print", "write", "format", "panic", "matches", "unreachable", "offset_of", "concat", "cfg"];
        if said.iter().any(|said| name.contains(said)) {
            return;
        }
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = expressions.parse2(call.tokens.clone()) {
            // The first argument of a loop names its variable.
            let first = (name == "unrolled") as usize;
            arguments.iter().skip(first).for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Local(local) if is_left_out(&local.attrs) => return,
            Stmt::Expr(expression, _) if is_left_out(expression_attributes(expression)) => return,
            Stmt::Expr(Expr::MethodCall(call), Some(_)) => {
                let name = call.method.to_string();
                let barrier = name.contains("barrier") || name.contains("fence") || name == "enter" || name == "sync";
                self.add(
                    self.range(statement),
                    if barrier { "barrier removed" } else { "call removed" },
                    Rewrite::Removed,
                );
            }
            Stmt::Expr(Expr::Call(_), Some(_)) => self.add(self.range(statement), "call removed", Rewrite::Removed),
            Stmt::Expr(Expr::Assign(_), Some(_)) => {
                self.add(self.range(statement), "assignment removed", Rewrite::Removed);
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        let condition = &*expression.cond;
        let of_target = self.text(condition).contains("cfg!");
        if !binds(condition) && !of_target {
            let range = self.range(condition);
            self.add(range.clone(), "condition negated", Rewrite::Negated);
            if expression.else_branch.is_none() {
                self.add(range, "guard removed", Rewrite::Always);
            }
        }
        if !of_target {
            visit::visit_expr_if(self, expression);
        } else if let Some((_, otherwise)) = &expression.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_range(&mut self, range: &'ast syn::ExprRange) {
        if let Some(end) = &range.end {
            let text = self.text(end).to_owned();
            self.add(self.range(end), "range cut", Rewrite::Expression(format!("({text}) - 1")));
        }
        visit::visit_expr_range(self, range);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let other = match call.method.to_string().as_str() {
            "min" => "max",
            "max" => "min",
            "wrapping_add" => "wrapping_sub",
            "wrapping_sub" => "wrapping_add",
            "leading_zeros" => "trailing_zeros",
            "trailing_zeros" => "leading_zeros",
            "any" => "all",
            "all" => "any",
            "ballot" => "match_any",
            _ => "",
        };
        if !other.is_empty() {
            self.add(
                self.range(call),
                "function swapped",
                Rewrite::Expression(self.replaced(call, &call.method, other)),
            );
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let (operator, other) = match binary.op {
            BinOp::Lt(_) => ("comparison", "<="),
            BinOp::Le(_) => ("comparison", "<"),
            BinOp::Gt(_) => ("comparison", ">="),
            BinOp::Ge(_) => ("comparison", ">"),
            BinOp::Eq(_) => ("comparison", "!="),
            BinOp::Ne(_) => ("comparison", "=="),
            BinOp::And(_) => ("logic", "||"),
            BinOp::Or(_) => ("logic", "&&"),
            BinOp::Add(_) => ("arithmetic", "-"),
            BinOp::Sub(_) => ("arithmetic", "+"),
            BinOp::Mul(_) => ("arithmetic", "+"),
            BinOp::Div(_) => ("arithmetic", "*"),
            BinOp::Rem(_) => ("arithmetic", "/"),
            BinOp::Shl(_) => ("bits", ">>"),
            BinOp::Shr(_) => ("bits", "<<"),
            BinOp::BitAnd(_) => ("bits", "|"),
            BinOp::BitOr(_) => ("bits", "&"),
            BinOp::BitXor(_) => ("bits", "|"),
            BinOp::AddAssign(_) => ("arithmetic", "-="),
            BinOp::SubAssign(_) => ("arithmetic", "+="),
            BinOp::BitAndAssign(_) => ("bits", "|="),
            BinOp::BitOrAssign(_) => ("bits", "&="),
            BinOp::ShlAssign(_) => ("bits", ">>="),
            BinOp::ShrAssign(_) => ("bits", "<<="),
            _ => ("", ""),
        };
        if !other.is_empty() {
            let mutated = self.replaced(binary, &binary.op, other);
            self.add(self.range(binary), operator, Rewrite::Expression(mutated));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        match &literal.lit {
            // There is one for each machine.
            _ if !literal.attrs.is_empty() => {}
            Lit::Int(_) => {
                let text = self.text(literal).to_owned();
                self.add(self.range(literal), "off by one", Rewrite::Expression(format!("{text} + 1")));
            }
            Lit::Bool(lit) => {
                let other = (!lit.value).to_string();
                self.add(self.range(literal), "other boolean", Rewrite::Expression(other));
            }
            _ => {}
        }
    }
}
