//! The traits of the algorithms. Each trait says for which types an algorithm has kernels.

/// Declares the trait of an algorithm. The table of kernels says which kernels it is made of. The error of a call without them shows the line
/// that makes them, which `__algorithm_note!` writes from the parameters in the table.
///
/// The last parameter of the trait is a tag, which calls infer. The library's own kernels have the tag `()`. `instantiate!` makes more
/// kernels, in any crate, each with a tag of its own.
///
/// Two more implementations, for [`Unsettled`] parameters, apply to no type that exists. They might apply as long as the functor of a call
/// is not known. So the compiler waits for the argument, and does not choose the functor of the only kernels that there are. With one such
/// implementation, the compiler would choose [`Nothing`], so there are two.
macro_rules! algorithm {
    ($(#$doc:tt)* $name:ident) => {
        crate::__algorithm! { $name __algorithm_note { { $(#$doc)* } $name } }
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

/// A functor that no call has.
#[doc(hidden)]
#[derive(Debug)]
pub enum Nothing {}

/// The tag of no kernels, for a parameter that is not known yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unknown<Which, const SECOND: bool>(core::marker::PhantomData<Which>);

/// Parameters of which one might still be [`Nothing`]. `Which` says which one.
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
