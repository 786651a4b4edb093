//! The pages of `docs/`: that they name everything they promise to. That their code runs, and that their links lead somewhere,
//! is rustdoc's to test. And that figures are those of the recorded results.

use std::collections::BTreeSet;

use kernel_primitives::{Device, EmulatorOptions, Error, Result};

#[path = "../docs/first_collective/ranks.rs"]
#[allow(unreachable_pub, reason = "a user's file")]
mod ranks;

/// The names of the published Kernel Primitive API, its helpers and macros included; of overloads, each signature.
const SEED: &str = "
    ElementwiseAdd ElementwiseAddImpl ReduceHigherDimKernel HigherDimImpl
    KPStream KPDevice _ptr_ __simd__ HOSTDEVICE THREAD_ID_X THREAD_ID_Y THREAD_ID_Z BLOCK_NUM_X BLOCK_NUM_Y BLOCK_NUM_Z
    BLOCK_ID_X BLOCK_ID_Y BLOCK_ID_Z GRID_NUM_X GRID_NUM_Y GRID_NUM_Z VecSizeL VecSizeM VecSizeS IndexType DimConfig SetRem
    VectorType FastDivMod Div Divmod DivModT BroadcastConfig IndexCal IsBoundary
    details::ReadData(dst,src,num) details::WriteData(dst,src,num)
    Init(dst,init_data) Init(dst,init_data,read_lens) Init<T,ArgsT,Index,NX> InitWithDataIndex
    ReadData<T,NX,NY,IsBoundary>(dst,src,num)
    ReadData<Tx,Ty,NX,NY,IsBoundary>(dst,src,size_nx,size_ny,stride_nx,stride_ny)
    ReadData<T,NX,NY,ArgsT,Index,IsBoundary>(dst,src,num,read_lens)
    ReadDataBc<T,NX,NY,IsBoundary>(dst,src,block_offset,config,total_num_output,read_lens)
    ReadDataBc<T,NX,NY,IsBoundary>(dst,src,block_offset,config,total_num_output,stride_nx,stride_ny)
    ReadDataReduce WriteData<T,NX,NY,IsBoundary>(dst,src,num)
    WriteData<Tx,Ty,NX,NY,IsBoundary>(dst,src,size_nx,size_ny,stride_nx,stride_ny)
    OpFunc TransformOp ReduceOp ReduceFunctor initial() details::Exp details::Log MPTypeTrait MPType PADDLE_ENFORCE_NE
    ExpFunctor IdentityFunctor DivideFunctor InverseFunctor SquareFunctor MinFunctor MaxFunctor AddFunctor MulFunctor
    LogicalOrFunctor LogicalAndFunctor SubFunctor DivFunctor FloorDivFunctor
    kReduceMaxThread kWarpSize ReduceMode kGlobalMode kLocalMode reduce_last_dim SharedMemoryIndex FULL_MASK FULL_WARP_MASK
    CREATE_SHFL_MASK CudaShuffleDownSync WarpReduce BlockXReduce BlockYReduce Swap Comparator ComparatorWithIndex
    GetLastPow2 hight_bit ElementwiseUnary ElementwiseBinary ElementwiseTernary ElementwiseAny Arity CycleBinary
    ElementwiseConstant ElementwiseRandom ReturnsCount StateType curandStatePhilox4_32_10_t hiprandStatePhilox4_32_10_t
    Reduce Cumsum SHARED_SIZE_LIMIT CONFLICT_FREE_OFFSET NUM_BANKS LOG_NUM_BANKS
    Sort(out,in,num,monotonic_type) Sort(out,out_index,in,in_index,num,monotonic_type) monotonic_type
";

/// The cells of the page's tables, row by row, without heads.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let mut body = false;
    for line in page.lines() {
        if !line.starts_with('|') {
            body = false;
        } else if line.starts_with("|---") {
            body = true;
        } else if body {
            rows.push(line.trim_matches('|').split(" | ").map(str::trim).collect());
        }
    }
    rows
}

/// What stands between backquotes, without spaces.
fn quoted(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(|name| name.replace(' ', ""))
}

#[test]
fn every_name_of_the_published_api_has_its_row() {
    let rows = rows(include_str!("../docs/seed_map.md"));
    let mapped: BTreeSet<String> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    let published: BTreeSet<String> = SEED.split_whitespace().map(str::to_owned).collect();
    assert_eq!(published.difference(&mapped).collect::<Vec<_>>(), [""; 0], "are not on the page");
    assert_eq!(mapped.difference(&published).collect::<Vec<_>>(), [""; 0], "are no names of the published API");
}

#[test]
fn every_row_of_the_map_is_full_and_links_what_it_names() {
    for row in rows(include_str!("../docs/seed_map.md")) {
        assert!(row.len() == 3 && row.iter().all(|cell| !cell.is_empty()), "{row:?} has an empty cell");
        assert!(row[1..].iter().any(|cell| cell.contains("[`")) || row[1].ends_with("below"), "{row:?} links nothing");
    }
}

/// To write the report into the page: `UPDATE_PAGES=1 cargo test --test pages`.
#[test]
fn the_first_collective_has_the_race_that_its_page_shows() -> Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/first_collective.md");
    let (page, source) =
        (include_str!("../docs/first_collective.md"), include_str!("../docs/first_collective/ranks.rs"));
    assert!(page.contains(source), "the page has another ranks.rs");
    let mended = include_str!("../docs/first_collective/ranks_mended.rs").replacen("    shared.enter();\n", "", 1);
    assert_eq!(mended, source, "what is mended differs in more than the line that the page says");

    let mut options = EmulatorOptions::default();
    (options.checked, options.seed) = (true, None);
    let stream = Device::emulator_with(options).stream()?;
    let (x, mut out) = (stream.buffer_zeroed(101)?, stream.buffer_zeroed(101)?);
    ranks::ranks::launch(&stream, (1, 100), x.slice(..100)?, out.slice_mut(..100)?)?;
    let Err(Error::Fault(fault)) = ranks::ranks::launch(&stream, (1, 100), &x, &mut out) else { panic!("no race") };
    let report = format!("{fault:?}")
        .trim()
        .replace("pages::ranks::", "my_crate::ranks::")
        .replace("tests/../docs/first_collective/", "src/");
    let begin = page.find("```text\n").expect("a report") + "```text\n".len();
    let end = begin + page[begin..].find("\n```").expect("its end");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(path, [&page[..begin], &report, &page[end..]].concat()).expect("the page is written");
    } else {
        assert_eq!(page[begin..end], report, "the test tells how to update the page");
    }
    Ok(())
}

/// To write them, and the plots: `python3 benches/report.py`.
#[test]
fn the_figures_are_those_of_the_recorded_results() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/report.py");
    let output = std::process::Command::new("python3").args([script, "--check"]).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
