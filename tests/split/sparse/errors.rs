//! Tests bad input. The error names the mistake.

use kernel_primitives::algorithms::{Csr, SpmvMethod};
use kernel_primitives::functor::{Axpby, PlusTimes};
use kernel_primitives::split::{self, SplitCsr};
use kernel_primitives::{Devices, EmulatorOptions, Error, Result, Split, SplitBuffer};

use crate::devices;

#[track_caller]
fn refused<T>(result: Result<T>, expected: &str) {
    let Err(error) = result else { panic!("no error: {expected}") };
    assert_eq!(error.to_string(), expected);
}

#[test]
fn arrays_that_are_no_matrix_are_errors_that_name_the_place() -> Result<()> {
    let cases: [(_, &[u32], &[u32], &[f32], _); 9] = [
        ((2, 2), &[0, 1], &[0], &[1.0], "a matrix of 2 rows has one offset more, but there are 2"),
        ((0, 2), &[], &[], &[], "a matrix of 0 rows has one offset more, but there are 0"),
        ((1, 2), &[0, 1], &[0, 1], &[1.0], "there are 2 column indices, but 1 values"),
        ((2, 2), &[1, 1, 2], &[0, 1], &[1.0; 2], "the first offset is 1, not 0"),
        ((0, 2), &[5], &[], &[], "the first offset is 5, not 0"),
        ((4, 2), &[0, 2, 1, 0, 2], &[0, 1], &[1.0; 2], "the offsets decrease from 2 at 1 to 1 at 2"),
        ((2, 2), &[0, 1, 3], &[0, 1], &[1.0; 2], "the last offset is 3, but there are 2 values"),
        ((2, 2), &[0, 1, 1], &[0, 1], &[1.0; 2], "the last offset is 1, but there are 2 values"),
        ((2, 3), &[0, 2, 4], &[0, 2, 3, 9], &[1.0; 4], "entry 2 is in column 3 of 3"),
    ];
    for count in [1, 3] {
        let devices = Split::even(&Devices::emulated(count)?)?;
        for (shape, offsets, indices, of_entries, expected) in cases {
            let made = SplitCsr::new(&devices, shape, offsets, indices, of_entries);
            refused(made, &format!("SplitCsr::new: {expected}"));
            // The message is that of one device.
            let made = Csr::new(&devices.streams()[0], shape, offsets, indices, of_entries);
            refused(made, &format!("Csr::new: {expected}"));
        }
    }
    Ok(())
}

#[test]
fn a_device_whose_items_have_no_numbers_is_an_error() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let made = SplitCsr::new(&devices, (1, 1 << 34), &[0u32, 1], &[7], &[1.0f32]);
    // The last device has the row and half of the columns. None of these columns is read.
    let expected =
        "SplitCsr::new: indices of 32 bits cannot number the 8589934593 items that device 1 of the split reads";
    refused(made, expected);
    Ok(())
}

#[test]
fn a_method_that_there_is_not_is_an_error_of_this_call() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let mut a = SplitCsr::new(&devices, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    a.set_method(SpmvMethod::Rows { lanes: 4 })?;
    let expected = "SplitCsr::set_method: 3 lanes cannot share a row: 1, 2, 4, 8, 16 or 32 can";
    refused(a.set_method(SpmvMethod::Rows { lanes: 3 }), expected);
    assert!((0..2).all(|device| a.part(device).method() == SpmvMethod::Rows { lanes: 4 }));
    Ok(())
}

#[test]
fn a_matrix_that_finds_no_memory_keeps_nothing() -> Result<()> {
    let mut options = EmulatorOptions::default();
    options.memory_bytes = Some(100_000);
    let devices = Split::even(&Devices::emulated_with(2, options)?)?;
    let made = |entries: [u32; 2]| {
        let offsets = [0, entries[0], entries[0] + entries[1]];
        let indices: Vec<u32> = (0..offsets[2]).map(|entry| entry % 4).collect();
        SplitCsr::new(&devices, (2, 4), &offsets, &indices, &vec![1.0f64; indices.len()])
    };
    for _ in 0..10 {
        // The values of the second device's entries alone take 80000 bytes, after the columns.
        let error = made([1000, 10_000]).expect_err("no memory");
        let is_of_second = |device: &str| device == "device 1 of the emulator";
        assert!(matches!(&error, Error::Allocation { bytes: 80_000, device, .. } if is_of_second(device)), "{error}");
    }
    assert_eq!(made([5000, 5000])?.entries(), 10_000);
    Ok(())
}

#[test]
fn a_matrix_is_made_in_no_graph() -> Result<()> {
    let streams = Devices::emulated(2)?.streams()?;
    let captured = streams[0].capture(|stream| {
        let split = Split::of_streams([stream.clone(), streams[1].clone()], &[1.0, 1.0])?;
        SplitCsr::new(&split, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0]).map(drop)
    });
    assert!(matches!(captured, Err(Error::Capture { .. })), "{:?}", captured.err());
    Ok(())
}

#[test]
fn a_matrix_of_a_gpu_is_not_split_over_the_emulator_nor_the_other_way_round() -> Result<()> {
    let (near, emulated) = (Split::even(&devices(2)?)?, Split::even(&Devices::emulated(2)?)?);
    if !near.streams()[0].device().is_gpu() {
        return Ok(());
    }
    for (split, other) in [(&near, &emulated), (&emulated, &near)] {
        // The matrix has one entry, or none.
        for offsets in [[0u32, 1, 1], [0, 0, 0]] {
            let entries = offsets[2] as usize;
            let a = Csr::new(&other.streams()[0], (2, 2), &offsets, &[1][..entries], &[2.0f32][..entries])?;
            let error = SplitCsr::from_csr(split, &a).expect_err("devices of two kinds");
            let names = |kernel: &str, argument: &str| kernel == "SplitCsr::from_csr" && argument == "the matrix";
            let is_named = matches!(&error, Error::WrongDevice { kernel, argument, .. } if names(kernel, argument));
            assert!(is_named, "{error}");
        }
    }
    Ok(())
}

#[test]
fn vectors_that_are_split_in_other_ways() -> Result<()> {
    let devices = Devices::emulated(2)?;
    let (even, odd) = (Split::even(&devices)?, Split::weighted(&devices, &[3.0, 1.0])?);
    let a = SplitCsr::new(&even, (4, 2), &[0u32, 1, 1, 2, 3], &[0, 1, 0], &[1.0f32, 2.0, 3.0])?;
    let vector = |split: &Split, len: usize| SplitBuffer::<f32>::zeroed(split, len);
    let (x, y) = (|| vector(&even, 2), || vector(&even, 4));
    refused(
        split::spmv(&a, &vector(&even, 4)?, &mut y()?),
        "`split::spmv`: `x` is split in another way than the columns of the matrix: SplitBuffer<f32>(0..2 on device 0 of the \
         emulator, 2..4 on device 1 of the emulator) and 0..1 on device 0 of the emulator, 1..2 on device 1 of the emulator",
    );
    refused(
        split::spmv_by(&a, &x()?, PlusTimes, Axpby::OVERWRITE, &mut vector(&odd, 4)?),
        "`split::spmv_by`: `y` is split in another way than the rows of the matrix: SplitBuffer<f32>(0..3 on device 0 of the \
         emulator, 3..4 on device 1 of the emulator) and 0..2 on device 0 of the emulator, 2..4 on device 1 of the emulator",
    );
    refused(
        split::spmv_with(&a, &x()?, PlusTimes, Axpby { alpha: 1.0, beta: 1.0 }, &vector(&even, 5)?, &mut y()?),
        "`split::spmv_with`: `z` is split in another way than the rows of the matrix: SplitBuffer<f32>(0..2 on device 0 of \
         the emulator, 2..5 on device 1 of the emulator) and 0..2 on device 0 of the emulator, 2..4 on device 1 of the \
         emulator",
    );
    // This has the same bounds on other devices, or fewer devices.
    let turned = Split::even(&Devices::new([devices[1].clone(), devices[0].clone()])?)?;
    assert!(matches!(split::spmv(&a, &vector(&turned, 2)?, &mut y()?), Err(Error::Split { .. })));
    refused(
        split::spmv(&a, &x()?, &mut vector(&turned, 4)?),
        "`split::spmv`: `y` is split in another way than the rows of the matrix: SplitBuffer<f32>(0..2 on device 1 of the \
         emulator, 2..4 on device 0 of the emulator) and 0..2 on device 0 of the emulator, 2..4 on device 1 of the emulator",
    );
    let first = Split::even(&Devices::new([devices[0].clone()])?)?;
    assert!(matches!(split::spmv(&a, &vector(&first, 2)?, &mut y()?), Err(Error::Split { .. })));
    // Another split with the same ranges is the same.
    let again = Split::weighted(&devices, &[2.0, 2.0])?;
    let mut sums = vector(&again, 4)?;
    split::spmv(&a, &SplitBuffer::from_slice(&again, &[10.0f32, 100.0])?, &mut sums)?;
    assert_eq!(sums.to_vec()?, [10.0, 0.0, 200.0, 30.0]);
    Ok(())
}

#[test]
fn an_item_that_nothing_has_written_is_a_fault_and_the_next_product_is_right() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let a = SplitCsr::new(&devices, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    let (x, mut y) = (SplitBuffer::<f32>::uninit(&devices, 2)?, SplitBuffer::uninit(&devices, 2)?);
    assert!(matches!(split::spmv(&a, &x, &mut y), Err(Error::Fault(_))));
    split::spmv(&a, &SplitBuffer::from_slice(&devices, &[1.0f32, 10.0])?, &mut y)?;
    assert_eq!(y.to_vec()?, [20.0, 3.0]);
    Ok(())
}
