//! Matrices and transforms.

use kernel_primitives::Complex;
use kernel_primitives::element::FftFloat;

use super::*;

#[test]
fn sparse_matrices_are_multiplied() -> Result<()> {
    fn product<T: Small + PartialEq>(
        multiply: impl FnOnce(Stream, &[T], &Buffer<T>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        let s = stream()?;
        let (x, mut out) = (buffer::<T>(&s, &X)?, s.buffer_zeroed::<T>(3)?);
        multiply(s.clone(), &[2, 1, 1, 3, 2].map(T::of), &x, &mut out)?;
        check(&out, [2 * X[1] + X[4], 0, X[0] + 3 * X[7] + 2 * X[19]]);
        Ok(())
    }
    const ROWS: [u32; 4] = [0, 2, 2, 5];
    const COLUMNS: [u32; 5] = [1, 4, 0, 7, 19];
    product::<f32>(|s, values, x, out| spmv(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, out))?;
    product::<f64>(|s, values, x, out| spmv(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, out))?;
    product::<f32>(|s, values, x, out| spmm(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, 1, out))?;
    product::<f64>(|s, values, x, out| spmm(&s, &Csr::new(&s, (3, LEN), &ROWS, &COLUMNS, values)?, x, 1, out))
}

#[test]
fn arrays_are_transformed() -> Result<()> {
    fn sums<T: Small + FftFloat + PartialEq>(
        transform: impl FnOnce(Stream, &FftPlan<T>, &Buffer<T>, &mut Buffer<Complex<T>>, &mut Buffer<T>) -> Result<()>,
    ) -> Result<()> {
        let s = stream()?;
        let plan = FftPlan::<T>::new(&s, &[LEN], &[0])?.scaled(T::of(1), T::from_f64(1.0 / LEN as f64));
        let (x, mut same) = (buffer::<T>(&s, &X)?, s.buffer_zeroed(LEN)?);
        let mut spectrum = s.buffer_zeroed(plan.items())?;
        transform(s.clone(), &plan, &x, &mut spectrum, &mut same)?;
        assert!((spectrum.to_vec()?[0].re.get() - 60.0).abs() < 1e-4);
        assert!(same.to_vec()?.iter().zip(X).all(|(same, x)| (same.get() - x as f64).abs() < 1e-4));
        Ok(())
    }
    macro_rules! transforms {
        ($($t:ty)*) => {$(
            sums::<$t>(|s, plan, x, spectrum, same| {
                let mut half = s.buffer_zeroed(plan.half_items())?;
                rfft(&s, plan, x, &mut half)?;
                irfft(&s, plan, &half, same)?;
                fft(&s, plan, x, &mut *spectrum)?;
                ifft_in_place(&s, plan, &mut *spectrum)?;
                let again = s.buffer_from(&spectrum.to_vec()?)?;
                fft(&s, plan, &again, spectrum)
            })?;
        )*};
    }
    transforms!(f32 f64);
    Ok(())
}
