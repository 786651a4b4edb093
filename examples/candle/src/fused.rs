//! Two operations for tensors of `candle`, each of which is one kernel: SwiGLU, and the norms of its rows.

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{CpuStorage, CustomOp2, Device, Layout, Result, Shape, Tensor};
use kernel_primitives::Stream;
use kernel_primitives::expr::{self, Expr, Reductions, sigmoid};

use crate::lend::on_host;
#[cfg(feature = "cuda")]
use crate::lend::{adopt, on_gpu};

/// Operations on the tensors of one device of `candle`.
pub struct Fused {
    stream: Stream,
}

impl Fused {
    /// Makes the operations for a device of `candle`. For the CPU, they run in the emulator.
    ///
    /// # Errors
    ///
    /// Returns the errors of an adoption.
    ///
    /// # Safety
    ///
    /// If `device` is a GPU, `Device::new_cuda_with_stream` made it, and no other call has adopted its stream.
    pub unsafe fn on(device: &Device) -> kernel_primitives::Result<Self> {
        let stream = match device {
            // SAFETY: the caller's contract.
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => unsafe { adopt(device)? },
            _ => kernel_primitives::Device::emulator().stream()?,
        };
        Ok(Self { stream })
    }

    /// The device, as this library knows it.
    pub fn device(&self) -> &kernel_primitives::Device {
        self.stream.device()
    }

    /// `silu(gate) * up`.
    pub fn swiglu(&self, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
        gate.apply_op2_no_bwd(up, &SwiGlu { stream: &self.stream, what: What::Elements })
    }

    /// The norm of each row of `silu(gate) * up`. The product is not in memory.
    pub fn swiglu_norms(&self, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
        gate.apply_op2_no_bwd(up, &SwiGlu { stream: &self.stream, what: What::Norms })
    }
}

struct SwiGlu<'a> {
    stream: &'a Stream,
    what: What,
}

/// What is computed.
enum What {
    Elements,
    /// Of the rows.
    Norms,
}

impl SwiGlu<'_> {
    /// The shape of the result.
    fn shape(&self, gate: &Layout, up: &Layout) -> Result<Shape> {
        if gate.shape() != up.shape() {
            candle_core::bail!("a gate of shape {:?} for {:?}", gate.shape(), up.shape());
        }
        match (&self.what, gate.dims()) {
            (What::Elements, _) => Ok(gate.shape().clone()),
            (What::Norms, [rows @ .., _]) => Ok(Shape::from(rows)),
            (What::Norms, []) => candle_core::bail!("a scalar has no rows"),
        }
    }

    fn compute(&self, inputs: &[expr::Tensor<f32>], out: &expr::Tensor<f32>) -> kernel_primitives::Result<()> {
        let (gate, up) = (&inputs[0], &inputs[1]);
        let value: Expr<f32> = gate * sigmoid(gate) * up;
        match self.what {
            What::Elements => out.assign(value),
            What::Norms => value.norm().axes(&[-1]).assign_to(out),
        }
    }
}

impl CustomOp2 for SwiGlu<'_> {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        gate_at: &Layout,
        up: &CpuStorage,
        up_at: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let shape = self.shape(gate_at, up_at)?;
        // SAFETY: `compute` keeps no view and writes the last alone.
        unsafe { on_host(self.stream, &[(gate, gate_at), (up, up_at)], shape, |inputs, out| self.compute(inputs, out)) }
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        gate: &CudaStorage,
        gate_at: &Layout,
        up: &CudaStorage,
        up_at: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let shape = self.shape(gate_at, up_at)?;
        // SAFETY: as above; `on` adopted the stream, or it is one of the emulator.
        unsafe { on_gpu(self.stream, &[(gate, gate_at), (up, up_at)], shape, |inputs, out| self.compute(inputs, out)) }
    }
}
