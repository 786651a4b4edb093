//! Device functions that are not possible. Each message says what to write.

use kernel_primitives::prelude::*;

#[device_function]
fn generic<T: Element>(x: T) -> T { //~ a device function is not generic, since it has one symbol in PTX
    x
}

#[device_function]
fn nothing(_x: f32) {} //~ a device function returns a value: write `-> f32`, say

#[device_function]
fn reference(x: &f32) -> f32 { //~ a device function takes and returns values: no references
    *x
}

#[device_function]
fn view(x: Global<f32>) -> f32 { //~ a device function takes and returns no `kernel_primitives::Global<'_, f32>`
    x[0]
}

#[device_function]
fn half(x: f16) -> f32 { //~ a device function takes and returns no `kernel_primitives::f16`
    x.to_f32()
}

#[device_function]
fn pair(x: f32) -> (f32, f32) { //~ a device function takes and returns no `(f32, f32)`
    (x, x)
}

#[device_function]
fn size(x: f32) -> usize { //~ not `f32`, `f64`, `bool` or an integer of 8 to 64 bits
    x as usize
}

#[device_function]
async fn later(x: f32) -> f32 { //~ remove `async`
    x
}

#[device_function(inline)] //~ `#[device_function]` knows `crate = path`
fn argument(x: f32) -> f32 {
    x
}

type Alias = f32;

#[device_function]
fn aliases_are_right(x: Alias) -> Alias {
    x
}

fn main() {
    let _: fn(f32) -> f32 = aliases_are_right::info().function();
}
