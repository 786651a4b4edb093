//! Kernels that somebody fused by hand: the system's right side, and the sums of the integrator.
//!
//! The file is compiled twice: as a module of the example, and for the GPU by the package's build script.

use kernel_primitives::prelude::*;

/// The derivatives of the Lorenz system.
#[kernel(equal_len(r, x, y, z, dx, dy, dz))]
pub(crate) fn derivatives(
    cx: Block,
    r: Global<f64>,
    x: Global<f64>,
    y: Global<f64>,
    z: Global<f64>,
    mut dx: GlobalMut<f64>,
    mut dy: GlobalMut<f64>,
    mut dz: GlobalMut<f64>,
) {
    for i in cx.items(dx.len()) {
        let (r, x, y, z) = (r[i.index()], x[i.index()], y[i.index()], z[i.index()]);
        dx.set(i, (y - x) * 10.0);
        dy.set(i, r * x - y - x * z);
        dz.set(i, x * y - z * (8.0 / 3.0));
    }
}

/// `out = x + h * k`.
#[kernel(equal_len(x, k, out))]
pub(crate) fn along(cx: Block, x: Global<f64>, k: Global<f64>, h: f64, mut out: GlobalMut<f64>) {
    for i in cx.items(out.len()) {
        out.set(i, x[i.index()] + k[i.index()] * h);
    }
}

/// `x += h / 6 * (a + 2 b + 2 c + d)`.
#[kernel(equal_len(a, b, c, d, x))]
pub(crate) fn advance(
    cx: Block,
    a: Global<f64>,
    b: Global<f64>,
    c: Global<f64>,
    d: Global<f64>,
    h: f64,
    mut x: GlobalMut<f64>,
) {
    for i in cx.items(x.len()) {
        let (a, b, c, d) = (a[i.index()], b[i.index()], c[i.index()], d[i.index()]);
        let old = x.get(i);
        x.set(i, old + (a + b * 2.0 + c * 2.0 + d) * (h / 6.0));
    }
}
