//! Tests assignments of random trees: single ones, several at once, and prepared ones that run again.

use kernel_primitives::expr::*;
use kernel_primitives::{Error, Result};
use proptest::prelude::*;

use super::layout::{Data, Layout, Lie, layout};
use super::tree::{Builder, Interpreter, Operands, Sketch, cast, sketch};
use super::{check, dtype, hash, shape, with};
use crate::stream;

#[derive(Clone, Debug)]
struct Case {
    shape: Vec<usize>,
    /// The value, the type and the target of each assignment.
    roots: Vec<(Sketch, u8, Layout)>,
    operands: Vec<(u8, Layout)>,
    tables: Vec<(u8, usize)>,
    /// The number of runs of prepared assignments, or 0 for assignments that are made at once.
    runs: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let roots = prop_oneof![
        3 => prop::collection::vec((sketch(), any::<u8>(), layout()), 1),
        1 => prop::collection::vec((sketch(), any::<u8>(), layout()), 2..4),
    ];
    let operands = prop::collection::vec((any::<u8>(), layout()), 0..5);
    let tables = prop::collection::vec((any::<u8>(), 1..200usize), 0..2);
    (shape(), roots, operands, tables, prop_oneof![2 => Just(0usize), 1 => 1..3usize], any::<u64>())
        .prop_map(|(shape, roots, operands, tables, runs, seed)| Case { shape, roots, operands, tables, runs, seed })
}

fn holds(case: Case) -> Result<(), TestCaseError> {
    let stream = stream()?;
    let seed = |at: usize| hash(case.seed, at as u64);
    // Targets are operands, too. They are read in their own places.
    let mut leaves = Vec::new();
    for (_, number, layout) in &case.roots {
        let data = (Data::Any, seed(leaves.len()));
        leaves.push(Lie::new(&stream, dtype(*number), &case.shape, layout, true, data)?);
    }
    for (number, layout) in &case.operands {
        let data = (Data::Any, seed(leaves.len()));
        leaves.push(Lie::new(&stream, dtype(*number), &case.shape, layout, false, data)?);
    }
    let mut tables = Vec::new();
    for (number, len) in &case.tables {
        let (layout, data) = (Layout::turned(seed(100 + tables.len())), (Data::Any, seed(200 + tables.len())));
        tables.push(Lie::new(&stream, dtype(*number), &[*len], &layout, true, data)?);
    }
    let mut prepared = None;
    for run in 0..case.runs.max(1) {
        let operands = Operands { stream: &stream, shape: &case.shape, leaves: &leaves, tables: &tables };
        let nodes: Vec<_> =
            case.roots.iter().map(|(sketch, number, _)| cast(operands.typed(sketch), dtype(*number))).collect();
        let mut interpreter = Interpreter::new(&operands);
        let values = nodes.iter().map(|node| interpreter.values(node)).collect::<Result<Vec<_>, TestCaseError>>()?;
        let mut builder = Builder::new(&operands);
        let mut assignments = Vec::new();
        for (node, target) in nodes.iter().zip(&leaves) {
            with!(node.dtype, T => {
                let expr = builder.expr::<T>(node);
                // Any expression is a kernel, except for functions that were not built, and too many operands.
                for arch in [75, 90] {
                    match target.view::<T>().ptx(expr.clone(), arch) {
                        Err(Error::NoImage { .. } | Error::LaunchLimit { .. }) => {}
                        text => prop_assert!(text?.contains(".entry")),
                    }
                }
                assignments.push(target.view::<T>().to(expr));
            });
        }
        match (case.runs, &prepared) {
            (0, _) => assign_all(assignments)?,
            (_, None) => {
                let made = Prepared::new(assignments)?;
                made.run()?;
                prepared = Some(made);
            }
            (_, Some(made)) => made.run()?,
        }
        for (target, values) in leaves.iter_mut().zip(&values) {
            target.store(values);
        }
        for (at, leaf) in leaves.iter().enumerate() {
            let same = leaf.compare();
            prop_assert!(same.is_ok(), "run {run}, operand {at}: {}\n  of {nodes:#?}", same.unwrap_err());
        }
        // Another run has other elements.
        for (at, leaf) in leaves.iter_mut().enumerate().skip(case.roots.len()) {
            leaf.renew((Data::Any, seed(300 + 10 * run + at)))?;
        }
    }
    Ok(())
}

#[test]
fn assignments_of_random_trees() {
    check(case(), holds);
}
