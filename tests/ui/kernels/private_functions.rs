//! If a user may not launch a kernel, they may not call its function in a kernel of their own.

mod kernels {
    use kernel_primitives::prelude::*;

    #[kernel(launch())]
    pub fn of_the_module(_cx: Block, mut out: GlobalMut<f32, PerBlock>) {
        out.store(1.0);
    }
}

mod others {
    use kernel_primitives::functor::Less;
    use kernel_primitives::input::Span;
    use kernel_primitives::kernels::device;
    use kernel_primitives::prelude::*;

    #[kernel]
    fn calls_a_private_one(cx: Block, out: GlobalMut<f32, PerBlock>) {
        super::kernels::of_the_module(cx, out); //~ `of_the_module` is private
    }

    #[kernel]
    fn calls_one_of_an_algorithm(
        cx: Block,
        a: Input<Span<u32>>,
        b: Input<Span<u32>>,
        splits: GlobalMut<u64>,
        pass: device::MergePass,
        shared: Shared<device::MergeSplitStorage<u32>>,
    ) {
        device::merge_splits(cx, a, b, splits, pass, 4096, Less, shared); //~ `merge_splits` is private
    }
}

fn main() {}
