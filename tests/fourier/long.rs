//! Tests transforms of long rows, which take kernels that copy ahead if the GPU has these. On the emulator, the rows are short.

use kernel_primitives::algorithms::{FftPlan, Run, Workspace, fft};
use kernel_primitives::{Complex, Result, Stream};

use crate::paths::assert_same;
use crate::reference::numbers;
use crate::support::stream;
use crate::transforms::Calls;

/// The length of a row, of which a GPU has this logarithm.
fn length(stream: &Stream, log2: u32) -> usize {
    1 << if stream.device().is_gpu() { log2 } else { 10 }
}

/// Transforms a row alone, in graphs, in several streams, and as the last of `rows` rows. The results are the same.
fn check<T: Calls>(log2: u32, rows: usize) -> Result<()> {
    let stream = stream()?;
    let n = length(&stream, log2);
    let plan = FftPlan::<T>::new(&stream, &[1, n], &[1])?;
    let x = numbers::<T>(n, 4);
    let (input, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed(n)?);
    T::forward(&stream, &plan, &input, &mut out)?;
    let expected = out.to_vec()?;

    let mut workspace = Workspace::new();
    T::forward_in(Run::on(&stream).with(&mut workspace), &plan, &input, &mut out)?;
    let graph =
        stream.capture(|stream| T::forward_in(Run::on(stream).with(&mut workspace), &plan, &input, &mut out))?;
    for _ in 0..2 {
        out.copy_from(&x)?;
        graph.launch(&stream)?;
        assert!(out.to_vec()? == expected, "a graph of {n} numbers");
    }
    drop(graph);

    let call = || -> Result<Vec<Complex<T>>> {
        let stream = stream.device().stream()?;
        let (input, mut out) = (stream.buffer_from(&x)?, stream.buffer_zeroed(n)?);
        T::forward(&stream, &plan, &input, &mut out)?;
        T::forward(&stream, &plan, &input, &mut out)?;
        out.to_vec()
    };
    std::thread::scope(|scope| -> Result<()> {
        for thread in [(); 2].map(|()| scope.spawn(call)) {
            assert!(thread.join().expect("a thread")? == expected, "a stream beside another");
        }
        Ok(())
    })?;
    drop((input, out));

    // The last row may be more than 2^32 bytes after the first one.
    let plan = FftPlan::<T>::new(&stream, &[rows, n], &[1])?;
    let last = (rows - 1) * n;
    let (mut input, mut out) = (stream.buffer_zeroed(rows * n)?, stream.buffer_zeroed(rows * n)?);
    input.slice_mut(last..)?.copy_from(&x)?;
    T::forward(&stream, &plan, &input, &mut out)?;
    assert!(out.slice(last..)?.to_vec()? == expected, "the last of {rows} rows");
    let zeros = out.slice(last - n..last)?.to_vec()?;
    assert!(zeros.iter().all(|x| *x == Complex { re: T::ZERO, im: T::ZERO }), "the row before");
    Ok(())
}

#[test]
fn long_rows_of_f32_are_transformed_wherever_they_are() -> Result<()> {
    check::<f32>(24, 34)?;
    check::<f32>(26, 10)
}

#[test]
fn long_rows_of_f64_are_transformed_wherever_they_are() -> Result<()> {
    check::<f64>(24, 18)?;
    check::<f64>(26, 2)
}

#[test]
fn long_rows_need_not_be_aligned() -> Result<()> {
    let stream = stream()?;
    let n = length(&stream, 24);
    let plan = FftPlan::<f32>::new(&stream, &[1, n], &[1])?;
    let x = numbers::<f32>(n, 4);
    let [mut input, mut out] = [stream.buffer_zeroed(n + 1)?, stream.buffer_zeroed(n + 1)?];
    let mut results = Vec::new();
    for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        input.slice_mut(from..from + n)?.copy_from(&x)?;
        fft(&stream, &plan, input.slice(from..from + n)?, out.slice_mut(to..to + n)?)?;
        results.push(out.slice(to..to + n)?.to_vec()?);
    }
    for result in &results {
        assert_same(result, &results[0], &"a row that is not aligned");
    }
    Ok(())
}
