//! The runtime module that every kernel module is linked with.

use std::fmt::Write;

/// Scopes, by the numbers of `primitives_gpu::simt::Scope`.
const SCOPES: [&str; 3] = ["syncscope(\"block\") ", "syncscope(\"device\") ", ""];

/// Read-modify-write operations, by the numbers of `primitives_gpu`'s `Update`: in LLVM IR, and in PTX with the operand's
/// type.
const UPDATES: [(&str, &str, char); 10] = [
    ("add", "add", 'u'),
    ("min", "min", 's'),
    ("max", "max", 's'),
    ("umin", "min", 'u'),
    ("umax", "max", 'u'),
    ("and", "and", 'b'),
    ("or", "or", 'b'),
    ("xor", "xor", 'b'),
    ("xchg", "exch", 'b'),
    ("fadd", "add", 'f'),
];

/// The module as LLVM IR: `runtime.ll` and the scoped atomics.
///
/// An atomic takes its operation and scope as numbers, constant at every call, and switches to the one instruction that has
/// them; inlining folds the switch.
pub(crate) fn ir() -> String {
    let mut ir = String::from(include_str!("runtime.ll"));
    for (int, float, align) in [("i32", "float", 4), ("i64", "double", 8)] {
        write_atomics(&mut ir, int, float, align).expect("writing to a string");
    }
    ir
}

fn write_atomics(ir: &mut String, int: &str, float: &str, align: u32) -> std::fmt::Result {
    let begin = |ir: &mut String, head: &str, selector: &str, count: usize| {
        writeln!(ir, "\ndefine {head} alwaysinline nounwind {{\n{selector}")?;
        writeln!(ir, "  switch i32 %selector, label %case0 [")?;
        for case in 1..count {
            writeln!(ir, "    i32 {case}, label %case{case}")?;
        }
        writeln!(ir, "  ]")
    };
    let by_scope = |number: &str| format!("  %row = mul i32 {number}, 3\n  %selector = add i32 %row, %scope");

    let head = format!("{int} @__kp_update_{int}(ptr %p, {int} %v, i32 %op, i32 %scope)");
    begin(ir, &head, &by_scope("%op"), UPDATES.len() * SCOPES.len())?;
    for (number, (update, ptx, kind)) in UPDATES.iter().enumerate() {
        for (scope, syncscope) in SCOPES.iter().enumerate() {
            let case = number * SCOPES.len() + scope;
            let value = if *kind == 'f' { float } else { int };
            writeln!(ir, "case{case}:\n  %v{case} = bitcast {int} %v to {value}")?;
            if syncscope.is_empty() {
                // LLVM drops the scope of `atomicrmw`, and PTX's default is the device.
                let (bits, register) = if int == "i32" { (32, 'r') } else { (64, 'l') };
                let register = match (*kind, bits) {
                    ('f', 32) => 'f',
                    ('f', _) => 'd',
                    _ => register,
                };
                writeln!(
                    ir,
                    "  %u{case} = call {value} asm sideeffect \"atom.relaxed.sys.{ptx}.{kind}{bits} $0, [$1], $2;\", \
                     \"={register},l,{register},~{{memory}}\"(ptr %p, {value} %v{case})"
                )?;
            } else {
                writeln!(
                    ir,
                    "  %u{case} = atomicrmw {update} ptr %p, {value} %v{case} {syncscope}monotonic, align {align}"
                )?;
            }
            writeln!(ir, "  %r{case} = bitcast {value} %u{case} to {int}")?;
            writeln!(ir, "  ret {int} %r{case}")?;
        }
    }
    writeln!(ir, "}}")?;

    let head = format!("{int} @__kp_cas_{int}(ptr %p, {int} %expected, {int} %new, i32 %scope)");
    begin(ir, &head, "  %selector = add i32 %scope, 0", SCOPES.len())?;
    for (case, syncscope) in SCOPES.iter().enumerate() {
        writeln!(ir, "case{case}:")?;
        writeln!(
            ir,
            "  %pair{case} = cmpxchg ptr %p, {int} %expected, {int} %new {syncscope}monotonic monotonic, align {align}"
        )?;
        writeln!(ir, "  %r{case} = extractvalue {{ {int}, i1 }} %pair{case}, 0\n  ret {int} %r{case}")?;
    }
    writeln!(ir, "}}")?;

    let head = format!("{int} @__kp_load_{int}(ptr %p, i32 %acquire, i32 %scope)");
    begin(ir, &head, &by_scope("%acquire"), 2 * SCOPES.len())?;
    for (number, order) in ["monotonic", "acquire"].iter().enumerate() {
        for (scope, syncscope) in SCOPES.iter().enumerate() {
            let case = number * SCOPES.len() + scope;
            writeln!(ir, "case{case}:\n  %r{case} = load atomic {int}, ptr %p {syncscope}{order}, align {align}")?;
            writeln!(ir, "  ret {int} %r{case}")?;
        }
    }
    writeln!(ir, "}}")?;

    let head = format!("void @__kp_store_{int}(ptr %p, {int} %v, i32 %release, i32 %scope)");
    begin(ir, &head, &by_scope("%release"), 2 * SCOPES.len())?;
    for (number, order) in ["monotonic", "release"].iter().enumerate() {
        for (scope, syncscope) in SCOPES.iter().enumerate() {
            let case = number * SCOPES.len() + scope;
            writeln!(ir, "case{case}:\n  store atomic {int} %v, ptr %p {syncscope}{order}, align {align}\n  ret void")?;
        }
    }
    writeln!(ir, "}}")
}
