//! The traits of the algorithms: the types that each has kernels for.

/// Declares an algorithm's trait. The table of kernels says what it is made of; the note shows the line that makes them.
///
/// The trait has a last parameter, the tag, which calls infer. The library's own kernels are under `()`; `instantiate!` makes
/// others, in any crate, under tags of theirs.
///
/// Two more implementations, for [`Unsettled`] parameters, are of no type that there is. They might apply while the functor of a call is
/// not known yet. So the compiler waits for the argument, and does not take the functor of the only kernels for it. With one such
/// implementation it would take [`Nothing`], so that there are two.
macro_rules! algorithm {
    ($(#[$doc:meta])* $name:ident, $note:literal) => {
        crate::__algorithm! { $name __algorithm_trait { { $(#[$doc])* } $note } }
    };
}
pub(super) use algorithm;

macro_rules! algorithm_trait {
    ({ { $(#[$doc:meta])* } $note:literal } $name:ident [$($param:ident),*] [$($bounded:ty: $bound:ident),*] [$($kernel:ty,)*]) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(
            message = "the algorithm has no kernels for these types",
            label = "not instantiated",
            note = $note,
            note = "in place of a closure, which has no name, write a struct that has the function's trait and \
                    `#[derive(Clone, Copy, KernelParam)]`",
            note = "kernels that `instantiate!` makes by their own names, such as `device::reduce_tiles<…>`, serve no algorithm"
        )]
        pub trait $name<$($param,)* Tag>: Sized
        where
            $($bounded: $bound,)*
        {
            #[doc(hidden)]
            fn kernels() -> ($(crate::__private::Entry<$kernel>,)*);
        }

        #[diagnostic::do_not_recommend]
        impl<This, $($param,)*> $name<$($param,)* ()> for This
        where
            $($bounded: $bound,)*
            $($kernel: crate::__private::Instantiated<()>,)*
        {
            fn kernels() -> ($(crate::__private::Entry<$kernel>,)*) {
                ($(crate::__private::Entry::<$kernel>::named::<()>(),)*)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<This, Which, $($param,)*> $name<$($param,)* crate::algorithms::kernels::Unknown<Which, false>> for This
        where
            $($bounded: $bound,)*
            ($($param,)*): crate::algorithms::kernels::Unsettled<Which>,
        {
            fn kernels() -> ($(crate::__private::Entry<$kernel>,)*) {
                unreachable!("nothing is of the type `Nothing`")
            }
        }

        #[diagnostic::do_not_recommend]
        impl<This, Which, $($param,)*> $name<$($param,)* crate::algorithms::kernels::Unknown<Which, true>> for This
        where
            $($bounded: $bound,)*
            ($($param,)*): crate::algorithms::kernels::Unsettled<Which>,
        {
            fn kernels() -> ($(crate::__private::Entry<$kernel>,)*) {
                unreachable!("nothing is of the type `Nothing`")
            }
        }
    };
}
pub(crate) use algorithm_trait;

/// A functor of no call.
#[doc(hidden)]
#[derive(Debug)]
pub enum Nothing {}

/// The tag of no kernels, for a parameter that is not known.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unknown<Which, const SECOND: bool>(core::marker::PhantomData<Which>);

/// Parameters of which one might still be [`Nothing`], and which one.
#[doc(hidden)]
pub trait Unsettled<Which> {}

impl Unsettled<[(); 0]> for (Nothing,) {}
impl<B> Unsettled<[(); 0]> for (Nothing, B) {}
impl<A> Unsettled<[(); 1]> for (A, Nothing) {}
impl<B, C> Unsettled<[(); 0]> for (Nothing, B, C) {}
impl<A, C> Unsettled<[(); 1]> for (A, Nothing, C) {}
impl<A, B> Unsettled<[(); 2]> for (A, B, Nothing) {}
impl<B, C, D> Unsettled<[(); 0]> for (Nothing, B, C, D) {}
impl<A, C, D> Unsettled<[(); 1]> for (A, Nothing, C, D) {}
impl<A, B, D> Unsettled<[(); 2]> for (A, B, Nothing, D) {}
impl<A, B, C> Unsettled<[(); 3]> for (A, B, C, Nothing) {}
