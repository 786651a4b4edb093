//! Graphs on a GPU: built node by node and launched as one.
//!
//! The nodes are added one by one rather than captured from a stream: then the driver is in no capture mode while the
//! caller's closure runs, and nothing that this or another thread does meanwhile, such as loading a kernel or waiting for
//! the device, can fail by it or spoil the graph.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use primitives_cuda_driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUgraph, CUgraphExec,
    CUgraphNode, CUmemorytype,
};

use super::fault::CELL_BYTES;
use super::{Context, KernelCall, RawStream, Ready, call};
use crate::Result;
use crate::memory::allocation::Displaced;
use crate::stream::{Queue, StreamInner};

/// A graph in the making: a chain of nodes, each of which waits for the one before it.
pub(crate) struct GraphDraft {
    context: Arc<Context>,
    raw: CUgraph,
    last: Option<CUgraphNode>,
    cell: Arc<Cell>,
}

// SAFETY: a graph may be used from any thread, one at a time; changing it takes a mutable borrow.
unsafe impl Send for GraphDraft {}

impl GraphDraft {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.make_current()?;
        let mut raw = std::ptr::null_mut();
        let cell = Arc::new(Cell::new(context)?);
        // SAFETY: the pointer is valid for the call.
        unsafe { call!(context, cuGraphCreate(&raw mut raw, 0))? };
        Ok(Self { context: context.clone(), raw, last: None, cell })
    }

    /// What the next node waits for.
    fn dependencies(&self) -> &[CUgraphNode] {
        self.last.as_slice()
    }

    /// # Safety
    /// As for [`RawStream::launch`], for each launch of the graph.
    pub(crate) unsafe fn launch(&mut self, mut kernel: KernelCall<'_>) -> Result<()> {
        let params = CUDA_KERNEL_NODE_PARAMS {
            func: kernel.function(),
            gridDimX: kernel.grid.x,
            gridDimY: kernel.grid.y,
            gridDimZ: kernel.grid.z,
            blockDimX: kernel.block.x,
            blockDimY: kernel.block.y,
            blockDimZ: kernel.block.z,
            sharedMemBytes: kernel.shared_bytes,
            kernelParams: kernel.params(&self.cell.address),
            extra: std::ptr::null_mut(),
        };
        self.context.make_current()?;
        let (mut node, before) = (std::ptr::null_mut(), self.dependencies());
        // SAFETY: the caller's contract; the graph and its nodes are alive, and the driver copies the parameters.
        unsafe {
            let (count, before) = (before.len(), before.as_ptr());
            call!(self.context, cuGraphAddKernelNode(&raw mut node, self.raw, before, count, &raw const params))?;
        }
        self.last = Some(node);
        Ok(())
    }

    pub(crate) fn fill_zero(&mut self, to: CUdeviceptr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // One row, of which a pitch has no meaning.
        let row = CUDA_MEMSET_NODE_PARAMS { dst: to, pitch: 0, value: 0, elementSize: 1, width: bytes, height: 1 };
        self.context.make_current()?;
        let (mut node, before) = (std::ptr::null_mut(), self.dependencies());
        // SAFETY: the caller keeps the range; the graph and its nodes are alive, and the driver copies the parameters.
        unsafe {
            let (count, before, context) = (before.len(), before.as_ptr(), self.context.raw);
            call!(self.context, cuGraphAddMemsetNode(&raw mut node, self.raw, before, count, &raw const row, context))?;
        }
        self.last = Some(node);
        Ok(())
    }

    pub(crate) fn copy(&mut self, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // One row, of which a pitch has no meaning; one of so many bytes would be limited to 2 GiB.
        let copy = CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: from,
            srcArray: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            srcPitch: 0,
            srcHeight: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: to,
            dstArray: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: bytes,
            Height: 1,
            Depth: 1,
        };
        self.context.make_current()?;
        let (mut node, before) = (std::ptr::null_mut(), self.dependencies());
        // SAFETY: the caller keeps both ranges; the graph and its nodes are alive, and the driver copies the parameters.
        unsafe {
            let (count, before, context) = (before.len(), before.as_ptr(), self.context.raw);
            call!(
                self.context,
                cuGraphAddMemcpyNode(&raw mut node, self.raw, before, count, &raw const copy, context)
            )?;
        }
        self.last = Some(node);
        Ok(())
    }

    pub(crate) fn instantiate(&self) -> Result<RawGraph> {
        let _relaxed = self.context.relaxed()?;
        let mut raw = std::ptr::null_mut();
        let (no_node, no_log) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the graph is alive; the pointer is valid for the call, and the others may be null.
        unsafe { call!(self.context, cuGraphInstantiate_v2(&raw mut raw, self.raw, no_node, no_log, 0))? };
        Ok(RawGraph { context: self.context.clone(), raw, cell: self.cell.clone() })
    }
}

impl Drop for GraphDraft {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: created by `new`, destroyed once; an executable graph does not need the one it was made from.
            unsafe { sys::cuGraphDestroy(self.raw) };
        }
    }
}

/// An executable graph.
pub(crate) struct RawGraph {
    context: Arc<Context>,
    raw: CUgraphExec,
    cell: Arc<Cell>,
}

// SAFETY: an executable graph may be used from any thread, one at a time: whoever launches it has the context's turn.
unsafe impl Send for RawGraph {}
// SAFETY: as above.
unsafe impl Sync for RawGraph {}

impl RawGraph {
    /// `queue` is the stream's; the turns are that one's and that of the graph's context. What is displaced is dropped after them.
    pub(crate) fn launch(
        &self,
        stream: &Arc<StreamInner>,
        queue: &RawStream,
        _turns: (&Ready<'_>, &MutexGuard<'_, ()>),
        displaced: &mut Displaced,
    ) -> Result<()> {
        self.cell.attach(stream, queue, displaced)?;
        self.context.make_current()?;
        // SAFETY: both are alive and of one context; the nodes' memory is alive, which the owner of this sees to.
        unsafe { call!(self.context, cuGraphLaunch(self.raw, queue.raw))? };
        queue.advance();
        Ok(())
    }
}

/// Where a graph's kernels find the stream to report faults to. In stream-ordered memory, so that it can go while the
/// graph runs.
struct Cell {
    context: Arc<Context>,
    address: CUdeviceptr,
    /// The stream that the graph was launched on last, and the launch's position there.
    last: Mutex<Option<(Arc<StreamInner>, u64)>>,
}

impl Cell {
    fn new(context: &Arc<Context>) -> Result<Self> {
        let _relaxed = context.relaxed()?;
        let mut address = 0;
        // Not in the order of a stream: the graph has none yet.
        // SAFETY: the pointer is valid for the call; pool and stream are the context's.
        unsafe { call!(context, cuMemAllocFromPoolAsync(&raw mut address, CELL_BYTES, context.pool, context.aside))? };
        let cell = Self { context: context.clone(), address, last: Mutex::new(None) };
        // SAFETY: as above.
        unsafe { call!(context, cuStreamSynchronize(context.aside))? };
        Ok(cell)
    }

    /// Lets the launch of the graph that comes next on `stream` report there, in that one's order and after the launches before.
    fn attach(&self, stream: &Arc<StreamInner>, queue: &RawStream, displaced: &mut Displaced) -> Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, stream)) {
            if let Some((last, at)) = last.as_ref() {
                stream.wait_for(last, *at)?;
            }
            queue.fill_cell(self.address)?;
        }
        if let Some((before, _)) = last.replace((stream.clone(), queue.next_position())) {
            displaced.add(before);
        }
        Ok(())
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        match self.last.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Some((last, _)) => match &last.queue {
                // If others capture the stream, these bytes stay for good.
                Queue::Cuda(queue) if matches!(queue.is_captured(), Ok(false)) => queue.free(self.address),
                _ => {}
            },
            None => {
                if let Ok(_relaxed) = self.context.relaxed() {
                    // SAFETY: allocated by `new`, freed once. No launch has used it.
                    unsafe { sys::cuMemFreeAsync(self.address, self.context.aside) };
                }
            }
        }
    }
}

impl Drop for RawGraph {
    fn drop(&mut self) {
        if let Ok(_relaxed) = self.context.relaxed() {
            // SAFETY: from `instantiate`, destroyed once. The driver keeps what launches under way need.
            unsafe { sys::cuGraphExecDestroy(self.raw) };
        }
    }
}
