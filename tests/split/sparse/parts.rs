//! Tests the rows of matrices on each device, and the numbers of their columns.

use kernel_primitives::split::{self, SplitCsr};
use kernel_primitives::{Buffer, Devices, Result, Split, SplitBuffer, Stream};

use super::matrices;
use crate::all_splits;

#[test]
fn a_matrix_of_one_device_is_split() -> Result<()> {
    for devices in all_splits()? {
        let stream = devices.streams()[devices.streams().len() - 1].device().stream()?;
        for host in matrices() {
            let of_entries = host.values(f64::from);
            let one = host.one(&stream, &of_entries)?;
            let (a, same) = (SplitCsr::from_csr(&devices, &one)?, host.split(&devices, &of_entries)?);
            assert_eq!(format!("{a:?}"), format!("{same:?}"));
            for device in 0..devices.streams().len() {
                let arrays = |a: &SplitCsr<f64>| -> Result<_> {
                    let part = a.part(device);
                    Ok((part.offsets().to_vec()?, part.indices().to_vec()?, part.values().to_vec()?))
                };
                assert_eq!(arrays(&a)?, arrays(&same)?, "{} {devices:?}", host.name);
                assert_eq!((a.halo(device), a.part(device).method()), (same.halo(device), same.part(device).method()));
            }
            // The copy has values of its own.
            assert_eq!(one.values().to_vec()?, of_entries);
        }
    }
    Ok(())
}

#[test]
fn parts_number_their_own_columns_first_and_then_those_of_others() -> Result<()> {
    let devices = Split::weighted(&Devices::emulated(3)?, &[2.0, 1.0, 2.0])?;
    let (offsets, columns) = ([0u32, 2, 2, 5, 7, 8], [4, 0, 2, 0, 4, 3, 1, 2]);
    let a = SplitCsr::new(&devices, (5, 5), &offsets, &columns, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])?;
    assert_eq!([0, 1, 2].map(|device| a.range(device)), [0..2, 2..3, 3..5]);
    assert_eq!([0, 1, 2].map(|device| a.column_range(device)), [0..2, 2..3, 3..5]);
    assert_eq!([0, 1, 2].map(|device| a.halo(device)), [&[4][..], &[0, 4], &[1, 2]]);
    assert_eq!([0, 1, 2].map(|device| a.part(device).columns()), [3, 3, 4]);
    assert_eq!(a.part(0).indices().to_vec()?, [2, 0]);
    assert_eq!(a.part(1).indices().to_vec()?, [0, 1, 2]);
    assert_eq!(a.part(2).indices().to_vec()?, [0, 2, 3]);
    assert_eq!(a.part(2).offsets().to_vec()?, [0, 2, 3]);
    assert_eq!(a.part(2).values().to_vec()?, [6.0, 7.0, 8.0]);
    assert_eq!(
        format!("{a:?}"),
        "SplitCsr<f32, u32>(rows 0..2 on device 0 of the emulator, 2..3 on device 1 of the emulator, 3..5 on device 2 of the \
         emulator; columns 0..2 on device 0 of the emulator, 2..3 on device 1 of the emulator, 3..5 on device 2 of the \
         emulator; 8 entries)"
    );
    for device in 0..3 {
        let entries = columns[offsets[a.range(device).start] as usize..offsets[a.range(device).end] as usize].iter();
        let found = a.part(device).indices().to_vec()?.into_iter().map(|local| a.column(device, local as usize));
        assert!(found.eq(entries.map(|&column| column as usize)), "{device}");
    }
    Ok(())
}

#[test]
fn values_are_changed_in_place() -> Result<()> {
    let devices = Split::even(&Devices::emulated(2)?)?;
    let mut a = SplitCsr::new(&devices, (2, 2), &[0u32, 1, 2], &[1, 0], &[2.0f32, 3.0])?;
    a.values_mut(1).copy_from(&[7.0])?;
    let (x, mut y) = (SplitBuffer::from_slice(&devices, &[1.0f32, 10.0])?, SplitBuffer::uninit(&devices, 2)?);
    split::spmv(&a, &x, &mut y)?;
    assert_eq!(y.to_vec()?, [20.0, 7.0]);
    Ok(())
}

#[test]
fn parts_are_on_their_devices() -> Result<()> {
    let devices = Split::even(&Devices::emulated(3)?)?;
    let host = &matrices()[1];
    let a = host.split(&devices, &host.values(f64::from))?;
    let on = |buffer: &Buffer<f64>, stream: &Stream| buffer.device().same_as(stream.device());
    assert!(devices.streams().iter().enumerate().all(|(device, stream)| on(a.part(device).values(), stream)));
    Ok(())
}
