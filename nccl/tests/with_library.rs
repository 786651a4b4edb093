//! Calls into a library in NCCL's place.

mod fake;

use std::ffi::{CStr, c_char};
use std::ptr::{null_mut, without_provenance, without_provenance_mut};

use primitives_nccl::sys::{ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};

/// The only test of the process: the notes of the library are of one thread.
#[test]
fn functions_get_their_arguments() {
    let path = fake::compile(&[]);
    let nccl = primitives_nccl::load().expect("it opens");
    assert_eq!((nccl.version().to_string(), format!("{nccl:?}")), ("2.20.5".to_owned(), "Nccl(2.20.5)".to_owned()));
    assert_eq!(nccl.describe(ncclResult_t::ncclSystemError), "what went wrong");
    assert_eq!(nccl.describe(ncclResult_t(4000)), "NCCL error 4000");
    // SAFETY: the library that was just compiled, which is open already.
    let library = unsafe { libloading::Library::new(path) }.expect("just compiled");
    // SAFETY: a function of the library, of this type.
    let notes = unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>("fake_notes") }.expect("its function");
    let ok = ncclResult_t::ncclSuccess;
    let (big, stream) = (0xfedc_ba98_7654_3210_usize, without_provenance_mut(0x55));
    // SAFETY: the functions only note their arguments, and write through pointers that are valid.
    unsafe {
        let mut id = ncclUniqueId { internal: [0; 128] };
        assert_eq!(nccl.ncclGetUniqueId(&raw mut id), ok);
        let mut comm = null_mut();
        assert_eq!(nccl.ncclCommInitRank(&raw mut comm, 5, id, 3), ok);
        assert_eq!(comm.addr(), 103);
        let mut all = [null_mut(); 2];
        assert_eq!(nccl.ncclCommInitAll(all.as_mut_ptr(), 2, [4, 1].as_ptr()), ok);
        assert_eq!(all.map(|comm| comm.addr()), [204, 201]);
        let mut error = ok;
        assert_eq!((nccl.ncclCommGetAsyncError(comm, &raw mut error), error), (ok, ncclResult_t::ncclRemoteError));
        assert_eq!(nccl.ncclCommDestroy(null_mut()), ncclResult_t::ncclInvalidArgument);
        assert_eq!(nccl.ncclCommAbort(null_mut()), ncclResult_t::ncclInvalidArgument);

        let (from, to) = (without_provenance(0x10), without_provenance_mut(0x20));
        let (f32, bf16) = (ncclDataType_t::ncclFloat32, ncclDataType_t::ncclBfloat16);
        assert_eq!(nccl.ncclGroupStart(), ok);
        assert_eq!(nccl.ncclReduce(from, to, big, f32, ncclRedOp_t::ncclMax, 6, comm, stream), ok);
        assert_eq!(nccl.ncclBroadcast(from, to, 2, bf16, 7, comm, stream), ok);
        assert_eq!(nccl.ncclAllReduce(from, to, 3, f32, ncclRedOp_t::ncclAvg, comm, stream), ok);
        assert_eq!(nccl.ncclAllGather(from, to, 4, f32, comm, stream), ok);
        assert_eq!(nccl.ncclReduceScatter(from, to, 7, f32, ncclRedOp_t::ncclProd, comm, stream), ok);
        assert_eq!(nccl.ncclSend(from, 5, f32, 8, comm, stream), ok);
        assert_eq!(nccl.ncclRecv(to, 6, f32, 9, comm, stream), ok);
        assert_eq!(nccl.ncclGroupEnd(), ncclResult_t::ncclInvalidUsage);
    }
    // SAFETY: the library keeps the text until the next call.
    let noted = unsafe { CStr::from_ptr(notes()) }.to_str().expect("text");
    let expected = [
        "rank 3 of 5 by 7..7",
        "begin",
        "reduce 0x10 0x20 18364758544493064720 7 2 6 0x67 0x55",
        "broadcast 0x10 0x20 2 9 7 0x67 0x55",
        "all reduce 0x10 0x20 3 7 4 0x67 0x55",
        "all gather 0x10 0x20 4 7 0x67 0x55",
        "reduce scatter 0x10 0x20 7 7 1 0x67 0x55",
        "send 0x10 5 7 8 0x67 0x55",
        "receive 0x20 6 7 9 0x67 0x55",
        "end",
    ];
    assert_eq!(noted.lines().collect::<Vec<_>>(), expected);
}
