//! The pages of the guide, which describe the library by topic.

pub mod architecture {
    #![doc = include_str!("../docs/architecture.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

#[doc = include_str!("../docs/debugging.md")]
pub mod debugging {}

#[doc = include_str!("../docs/errors.md")]
pub mod errors {}

#[doc = include_str!("../docs/first_collective.md")]
pub mod first_collective {}

pub mod from_cub {
    #![doc = include_str!("../docs/from_cub.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

pub mod gpu {
    #![doc = include_str!("../docs/gpu.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

#[doc = include_str!("../docs/graphs.md")]
pub mod graphs {}

pub mod guarantees {
    #![doc = include_str!("../docs/guarantees.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

pub mod layers {
    #![doc = include_str!("../docs/layers.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

pub mod own_types {
    #![doc = include_str!("../docs/own_types.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

pub mod ready {
    #![doc = include_str!("../docs/ready.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

#[doc = include_str!("../docs/scaling_out.md")]
pub mod scaling_out {}

pub mod seed_map {
    #![doc = include_str!("../docs/seed_map.md")]
    #[allow(unused_imports, reason = "what the page links")]
    use super::names::*;
}

#[doc = include_str!("../docs/several_devices.md")]
pub mod several_devices {}

/// The names that the pages link without their paths.
mod names {
    #[allow(unused_imports, reason = "what the pages link")]
    pub(super) use crate::{
        block::*, element::*, functor::*, io::*, prelude::*, simt::*, thread::*, view::*, warp::*, *,
    };
}
