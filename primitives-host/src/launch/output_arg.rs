//! Arguments for a kernel's `Output<O>` parameter.

use primitives_gpu::Element;
use primitives_gpu::element::Integer;
use primitives_gpu::input::Source;
use primitives_gpu::output::{Discard, Permutation, Reversed, Sink, SpanMut, Strided, Zip};

use crate::Result;
use crate::launch::input_arg::Enter;
use crate::launch::kernel::Launch;
use crate::memory::buffer::Buffer;
use crate::memory::slice::{Argument, BufferSliceMut};

mod sealed {
    use crate::Result;
    use crate::launch::kernel::Launch;

    /// How a launch takes an output.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait EnterMut {
        type Sink;
        /// Makes the sink that the kernel receives, and notes its buffers in the launch.
        fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Sink>;
        /// The number of places.
        fn count_mut(&self) -> usize;
        /// The address of the first place, if the places are those of a buffer.
        fn place_mut(&self) -> Option<usize> {
            None
        }
    }
}
pub(crate) use sealed::EnterMut;

/// An argument for a kernel's `Output<O>` parameter: a `&mut Buffer<T>`, a mutable slice of one, or an output that
/// [`output`](primitives_gpu::output) builds from these.
#[diagnostic::on_unimplemented(
    message = "an `Output<{O}>` parameter does not take `{Self}`",
    label = "not an output of the kernel's type",
    note = "the kernel is instantiated for the sink `{O}`, where a mutable buffer is a `SpanMut<T>`"
)]
pub trait OutputArg<O: Sink>: EnterMut<Sink = O> {
    /// The number of places.
    fn places(&self) -> usize {
        self.count_mut()
    }

    /// The address of the places, if they are those of a buffer.
    #[doc(hidden)]
    fn buffer_address(&self) -> Option<usize> {
        self.place_mut()
    }
}

impl<O: Sink, A: EnterMut<Sink = O>> OutputArg<O> for A {}

/// An output that several launches receive.
#[doc(hidden)]
#[derive(Debug)]
pub struct AgainMut<'a, A>(pub &'a mut A);

impl<A: EnterMut> EnterMut for AgainMut<'_, A> {
    type Sink = A::Sink;
    fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<A::Sink> {
        self.0.enter_mut(launch, name)
    }
    fn count_mut(&self) -> usize {
        self.0.count_mut()
    }
    fn place_mut(&self) -> Option<usize> {
        self.0.place_mut()
    }
}

macro_rules! spans {
    ($($t:ty, |$this:ident| $argument:expr;)*) => {$(
        impl<T: Element> EnterMut for $t {
            type Sink = SpanMut<T>;
            fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<SpanMut<T>> {
                let $this = self;
                launch.write(name, $argument).map(SpanMut::new)
            }
            fn count_mut(&self) -> usize {
                self.len()
            }
            fn place_mut(&self) -> Option<usize> {
                Some(self.parts().1.address().addr())
            }
        }
    )*};
}
spans! {
    &mut Buffer<T>, |this| &mut **this;
    BufferSliceMut<'_, T>, |this| this;
    &mut BufferSliceMut<'_, T>, |this| &mut **this;
}

impl<A: EnterMut, B: EnterMut> EnterMut for Zip<A, B> {
    type Sink = Zip<A::Sink, B::Sink>;
    fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Sink> {
        Ok(Zip { first: self.first.enter_mut(launch, name)?, second: self.second.enter_mut(launch, name)? })
    }
    fn count_mut(&self) -> usize {
        self.first.count_mut().min(self.second.count_mut())
    }
}

impl<A: EnterMut, J: Enter<Source: Source<Item: Integer>>> EnterMut for Permutation<A, J> {
    type Sink = Permutation<A::Sink, J::Source>;
    fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Sink> {
        Ok(Permutation { source: self.source.enter_mut(launch, name)?, at: self.at.enter(launch, name)? })
    }
    fn count_mut(&self) -> usize {
        self.at.count()
    }
}

impl<A: EnterMut<Sink: Sink>> EnterMut for Strided<A> {
    type Sink = Strided<A::Sink>;
    fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Sink> {
        let source = self.source.enter_mut(launch, name)?;
        // As `strided` has it; the fields can be written too.
        let step = self.step.max(1);
        Ok(Strided { source, step, len: source.len().div_ceil(step) })
    }
    fn count_mut(&self) -> usize {
        self.source.count_mut().div_ceil(self.step.max(1))
    }
}

impl<A: EnterMut> EnterMut for Reversed<A> {
    type Sink = Reversed<A::Sink>;
    fn enter_mut(&mut self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Sink> {
        Ok(Reversed { source: self.source.enter_mut(launch, name)? })
    }
    fn count_mut(&self) -> usize {
        self.source.count_mut()
    }
}

impl<T: Copy + 'static> EnterMut for Discard<T> {
    type Sink = Self;
    fn enter_mut(&mut self, _: &mut Launch<'_>, _: &'static str) -> Result<Self> {
        Ok(*self)
    }
    fn count_mut(&self) -> usize {
        self.len()
    }
}
