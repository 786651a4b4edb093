//! Arguments for a kernel's `Input<S>` parameter.

use std::any::Any;

use primitives_gpu::element::{Arithmetic, ConvertTo, Integer};
use primitives_gpu::functor::UnaryFn;
use primitives_gpu::input::{
    Constant, Counting, Map, Permutation, Reversed, Segments, Source, Span, Strided, Zip, segments,
};
use primitives_gpu::{Element, KernelParam};

use crate::Result;
use crate::launch::kernel::Launch;
use crate::memory::buffer::Buffer;
use crate::memory::slice::{Argument, BufferSlice, BufferSliceMut};

mod sealed {
    use std::any::Any;

    use crate::Result;
    use crate::launch::kernel::Launch;
    use crate::memory::slice::BufferSlice;

    /// How a launch takes an input.
    #[allow(unreachable_pub, reason = "sealed")]
    pub trait Enter {
        type Source;
        /// Makes the source that the kernel receives, and notes its buffers in the launch.
        fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source>;
        /// The number of items.
        fn count(&self) -> usize;
        /// The address of the items, if they are the items of a buffer.
        fn place(&self) -> Option<usize> {
            None
        }
        /// The bytes of the items, if they are the items of a buffer.
        fn bytes(&self) -> Option<BufferSlice<'_, u8>> {
            None
        }
        /// The input itself, if the items are consecutive numbers.
        fn numbers(&self) -> Option<&dyn Any> {
            None
        }
    }
}
pub(crate) use sealed::Enter;

/// An argument for a kernel's `Input<S>` parameter: a `&Buffer<T>`, a slice of one, or an input that [`input`](primitives_gpu::input)
/// builds from these.
#[diagnostic::on_unimplemented(
    message = "an `Input<{S}>` parameter does not take `{Self}`",
    label = "not an input of the kernel's type",
    note = "the kernel is instantiated for the source `{S}`, where a buffer is a `Span<T>`"
)]
pub trait InputArg<S: Source>: Enter<Source = S> {
    /// The number of items.
    fn items(&self) -> usize {
        self.count()
    }

    /// The address of the items, if they are the items of a buffer, and not computed.
    #[doc(hidden)]
    fn buffer_address(&self) -> Option<usize> {
        self.place()
    }

    /// The bytes of the items, if they are the items of a buffer, and not computed.
    #[doc(hidden)]
    fn buffer_bytes(&self) -> Option<BufferSlice<'_, u8>> {
        self.bytes()
    }

    /// The input itself, which is a [`Counting`], if the items are consecutive numbers.
    #[doc(hidden)]
    fn consecutive(&self) -> Option<&dyn Any> {
        self.numbers()
    }
}

impl<S: Source, I: Enter<Source = S>> InputArg<S> for I {}

/// An input that several launches receive.
#[doc(hidden)]
#[derive(Debug)]
pub struct Again<'a, I>(pub &'a I);

impl<I: Enter> Enter for Again<'_, I> {
    type Source = I::Source;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<I::Source> {
        self.0.enter(launch, name)
    }
    fn count(&self) -> usize {
        self.0.count()
    }
    fn place(&self) -> Option<usize> {
        self.0.place()
    }
    fn bytes(&self) -> Option<BufferSlice<'_, u8>> {
        self.0.bytes()
    }
    fn numbers(&self) -> Option<&dyn Any> {
        self.0.numbers()
    }
}

macro_rules! spans {
    ($($t:ty, |$this:ident| $slice:expr;)*) => {$(
        impl<T: Element> Enter for $t {
            type Source = Span<T>;
            fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Span<T>> {
                launch.read(name, *self).map(Span::new)
            }
            fn count(&self) -> usize {
                self.len()
            }
            fn place(&self) -> Option<usize> {
                Some(self.parts().1.address().addr())
            }
            fn bytes(&self) -> Option<BufferSlice<'_, u8>> {
                let $this = self;
                $slice.reinterpret().ok()
            }
        }
    )*};
}
spans! {
    &Buffer<T>, |this| this.as_slice();
    BufferSlice<'_, T>, |this| (*this);
    &BufferSlice<'_, T>, |this| (**this);
    &BufferSliceMut<'_, T>, |this| this.as_slice();
}

impl<T: KernelParam> Enter for Constant<T> {
    type Source = Self;
    fn enter(&self, _: &mut Launch<'_>, _: &'static str) -> Result<Self> {
        Ok(*self)
    }
    fn count(&self) -> usize {
        self.items()
    }
}

impl<T: Arithmetic + KernelParam> Enter for Counting<T>
where
    usize: ConvertTo<T>,
{
    type Source = Self;
    fn enter(&self, _: &mut Launch<'_>, _: &'static str) -> Result<Self> {
        Ok(*self)
    }
    fn count(&self) -> usize {
        self.items()
    }
    fn numbers(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl<I, F> Enter for Map<I, F>
where
    I: Enter<Source: Source>,
    F: UnaryFn<<I::Source as Source>::Item> + KernelParam,
{
    type Source = Map<I::Source, F>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        Ok(Map { source: self.source.enter(launch, name)?, f: self.f })
    }
    fn count(&self) -> usize {
        self.source.count()
    }
}

impl<I: Enter, J: Enter> Enter for Zip<I, J> {
    type Source = Zip<I::Source, J::Source>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        Ok(Zip { first: self.first.enter(launch, name)?, second: self.second.enter(launch, name)? })
    }
    fn count(&self) -> usize {
        self.first.count().min(self.second.count())
    }
}

impl<I: Enter, J: Enter<Source: Source<Item: Integer>>> Enter for Permutation<I, J> {
    type Source = Permutation<I::Source, J::Source>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        Ok(Permutation { source: self.source.enter(launch, name)?, at: self.at.enter(launch, name)? })
    }
    fn count(&self) -> usize {
        self.at.count()
    }
}

impl<I: Enter<Source: Source>> Enter for Strided<I> {
    type Source = Strided<I::Source>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        let source = self.source.enter(launch, name)?;
        // As `strided` has it; the fields can be written too.
        let step = self.step.max(1);
        Ok(Strided { source, step, len: source.len().div_ceil(step) })
    }
    fn count(&self) -> usize {
        self.source.count().div_ceil(self.step.max(1))
    }
}

impl<I: Enter<Source: Source<Item: Integer>>> Enter for Segments<I> {
    type Source = Segments<I::Source>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        Ok(segments(self.offsets.enter(launch, name)?, self.items()))
    }
    fn count(&self) -> usize {
        self.items()
    }
}

impl<I: Enter> Enter for Reversed<I> {
    type Source = Reversed<I::Source>;
    fn enter(&self, launch: &mut Launch<'_>, name: &'static str) -> Result<Self::Source> {
        Ok(Reversed { source: self.source.enter(launch, name)? })
    }
    fn count(&self) -> usize {
        self.source.count()
    }
}
