//! Owners that can be taken back.

use std::sync::{Arc, Mutex, PoisonError};

/// Makes an owner for something that is lent to this library, and the claim to get it back.
///
/// [`Buffer::from_raw_owned`](crate::Buffer::from_raw_owned) and [`Stream::from_raw_owned`](crate::Stream::from_raw_owned) take an owner,
/// and drop it when the work is over. An owner that is [`Lent`] then comes back, even if the buffer has become a tensor with views, or a
/// part of a graph, in the meantime.
///
/// ```
/// use kernel_primitives::expr::Tensor;
/// use kernel_primitives::interop::lend;
/// use kernel_primitives::{Buffer, Device};
///
/// # fn main() -> kernel_primitives::Result<()> {
/// let stream = Device::emulator().stream()?;
/// let mut values = vec![1u32, 2, 3, 4];
/// let (address, len) = (values.as_mut_ptr().expose_provenance() as u64, values.len());
/// let (owner, loan) = lend(values);
/// // SAFETY: the memory is that of the vector, which goes with the buffer and which nobody else has.
/// let x = unsafe { Buffer::<u32>::from_raw_owned(&stream, address, len, owner)? };
/// let x = Tensor::from_buffer(&stream, [2, 2], x)?;
/// x.assign(&x * &x)?;
/// let loan = loan.take_back().expect_err("the tensor has it");
/// drop(x);
/// assert_eq!(loan.take_back().expect("it is over"), [1, 4, 9, 16]);
/// # Ok(())
/// # }
/// ```
pub fn lend<O: Send + 'static>(owner: O) -> (Lent<O>, Loan<O>) {
    let home = Arc::new(Mutex::new(None));
    (Lent { owner: Some(owner), home: home.clone() }, Loan { home })
}

/// The owner that [`lend`] makes. When it is dropped, it goes back to its [`Loan`].
#[derive(Debug)]
pub struct Lent<O> {
    /// `None` only during the drop.
    owner: Option<O>,
    home: Arc<Mutex<Option<O>>>,
}

impl<O> Drop for Lent<O> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.owner.take();
    }
}

/// The claim to a value that was [lent](lend). If the claim is dropped, the value is dropped in the end.
#[derive(Debug)]
pub struct Loan<O> {
    home: Arc<Mutex<Option<O>>>,
}

impl<O> Loan<O> {
    /// Returns the value that was lent. It is back when the last buffer, view or graph with the memory has been dropped, and such a drop
    /// waits for the work.
    ///
    /// # Errors
    ///
    /// Returns the loan if the value is not back yet.
    pub fn take_back(self) -> Result<O, Self> {
        let back = self.home.lock().unwrap_or_else(PoisonError::into_inner).take();
        back.ok_or(self)
    }
}
