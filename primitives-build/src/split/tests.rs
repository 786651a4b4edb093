//! Tests of the cut of modules.

use super::*;
use crate::damage::{Shown, try_all};

const IR: &str = r##"; ModuleID = 'app'
source_filename = "app.3f1"
target datalayout = "e-i64:64"
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, i32 }
%"a pair" = type { i32, %"an int" }
%"an int" = type { i32 }
%"no one's" = type { i8 }

@text = private constant [9 x i8] c"@two #7 !", align 1
@anon.3f1.8 = private unnamed_addr constant i8 1
@anon.3f1.9 = private unnamed_addr constant i8 2
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
  %y = alloca %"a pair"
  call void @llvm.assume(ptr @anon.3f1.9)
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
    let one = Module::parse(IR.to_owned()).cut(&["one"], Stage::Simplified);
    for part in [
        "target triple",
        "%pair = type",
        "\n%\"an int\" = type { i32 }\n",
        "@text = ",
        "define internal void @deep(",
        "c\"@two #7 !\"",
        "PIC Level",
    ] {
        assert!(one.contains(part), "{part} is not in\n{one}");
    }
    for part in ["@two(", "@table", "a name", "unused", "cold", "i8 1", "no one's", "Function Attrs", "source_filename"]
    {
        assert!(!one.contains(part), "{part} is in\n{one}");
    }
    let two = Module::parse(IR.to_owned()).cut(&["two"], Stage::Simplified);
    assert!(two.contains("@table = ") && two.contains("define internal void @\"a name\"()"), "{two}");
    assert!(!two.contains("@deep") && !two.contains("1024"), "{two}");
}

#[test]
fn numbers_are_those_of_the_part() {
    let one = Module::parse(IR.to_owned()).cut(&["one"], Stage::Simplified);
    assert!(one.contains("@one(ptr %x) #1 !dbg !2 {"), "{one}");
    assert!(one.contains("@deep(ptr @text), !range !3"), "{one}");
    assert!(one.contains("@deep(ptr %x) #4 !dbg !5 {"), "{one}");
    assert!(one.contains("\nattributes #4 = { nounwind \"key\"=\"#7\" }\n"), "{one}");
    assert!(one.contains("\n!2 = distinct !{!2, !5}\n") && one.contains("\n!3 = !{i32 0, i32 1024}\n"), "{one}");
    assert!(one.contains("\n@nameless.0 = private unnamed_addr constant i8 2\n"), "{one}");
    assert!(one.contains("(ptr @nameless.0)"), "{one}");
    // What other kernels do to the numbers is not seen.
    let others = IR.replace("#7", "#70").replace("#4", "#40").replace("!11", "!31").replace("!9", "!8");
    let others = others.replace("anon.3f1.9", "anon.77.12");
    assert_eq!(Module::parse(others).cut(&["one"], Stage::Simplified).replace("#70", "#7").replace("#40", "#4"), one);
}

#[test]
fn a_part_is_the_same_wherever_its_items_were() {
    let at = IR.find("@text = ").unwrap();
    let (head, items) = IR.split_at(at);
    let mut parts: Vec<&str> = items.split("\n\n").collect();
    let last = parts.pop().unwrap();
    parts.reverse();
    let turned = format!("{head}{}\n\n{last}", parts.join("\n\n"));
    for name in ["one", "two"] {
        let part = |ir: &str| Module::parse(ir.to_owned()).cut(&[name], Stage::Simplified);
        assert_eq!(part(&turned), part(IR));
    }
}

#[test]
fn names_are_the_same_in_each_folder() {
    let text = |one: &str, two: &str| {
        let ir = IR
            .replace("@deep", &format!("@_RNvCs{one}_3app4deepCs"))
            .replace("@text", &format!("@_RNvCs{two}_3app4deepCs"));
        Module::parse(ir).cut(&["one"], Stage::Simplified)
    };
    let part = text("6LTCTBsjTLr", "3dDb9nXiKUR");
    assert!(part.contains("call void @_RNvCs0_3app4deepCs(ptr @_RNvCs1_3app4deepCs)"), "{part}");
    assert!(part.contains("[ptr @_RNvCs0_3app4deepCs]"), "{part}");
    assert_eq!(part, text("9", "10"));
    assert_ne!(part, text("9", "9"));
}

#[test]
fn a_function_is_known_by_its_own_name() {
    let ir = IR
        .replace("define internal void @\"a name\"", "define internal %\"a pair\" @\"a name\"")
        .replace("void @deep(ptr %x)", "void @alloc_deep(ptr %x)")
        .replace("@deep", "@alloc_deep");
    let two = Module::parse(ir.clone()).cut(&["two"], Stage::Simplified);
    assert!(two.contains("define internal %\"a pair\" @\"a name\"()"), "{two}");
    assert!(two.contains("[1 x ptr] [ptr @\"a name\"], section"), "{two}");
    // What a user calls `alloc_deep` is not one of rustc's constants.
    assert!(Module::parse(ir).cut(&["one"], Stage::Simplified).contains("@alloc_deep("));
}

#[test]
fn functions_that_are_not_inlined_are_not_adapted_to_their_calls() {
    let used = |name: &str| {
        let ir = IR.replace("a name", name).replace("attributes #5 = { cold }", "attributes #5 = { cold noinline }");
        let two = Module::parse(ir).cut(&["two"], Stage::Raw);
        two.contains(&format!("@llvm.compiler.used = appending global [1 x ptr] [ptr @\"{name}\"]"))
    };
    assert!(used("report"));
    assert!(!used("_RNvNtNtCs6LTCTBsjTLr_4core9panicking5panic"));
    assert!(!Module::parse(IR.to_owned()).cut(&["two"], Stage::Raw).contains("llvm.compiler.used"));
}

#[test]
fn functions_are_inlined_but_for_kernels_and_what_must_not_be() {
    let head = |name: &str, attributes: &str| {
        let ir = IR.replace("a name", name).replace("{ cold }", attributes);
        let two = Module::parse(ir).cut(&["two"], Stage::Raw);
        two.lines().find(|line| line.starts_with("define internal")).expect("it is called").to_owned()
    };
    assert!(head("a name", "{ nounwind }").contains("() alwaysinline #"));
    assert!(head("_RINvCs9_3app4deepNtCs8_4core6OptionE", "{ nounwind }").contains("alwaysinline"));
    for (name, attributes) in [
        ("a name", "{ cold }"),
        ("a name", "{ noinline nounwind }"),
        ("a name", "{ alwaysinline }"),
        ("_RINvCs8_4core4deepNtCs9_3app6OptionE", "{ nounwind }"),
    ] {
        assert!(!head(name, attributes).contains("alwaysinline"), "{name} {attributes}");
    }
    let one = Module::parse(IR.to_owned()).cut(&["one"], Stage::Raw);
    assert!(one.contains("define ptx_kernel void @one(ptr %x) #1 !dbg"), "{one}");
    assert!(one.contains("@deep(ptr %x) alwaysinline #4 !dbg"), "{one}");
}

#[test]
fn functions_that_the_compiler_left_are_not_adapted_to_their_calls() {
    let two = Module::parse(IR.to_owned()).cut(&["two"], Stage::Simplified);
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
            let part = Module::parse(text.clone().into_owned()).cut(&["one", "two", "none"], Stage::Simplified);
            // A number has two digits here at most, and none becomes longer by so much.
            if part.len() > 2 * text.len() + 64 { Err(part) } else { Ok(()) }
        },
    );
}
