; The runtime module: what the device side of `primitives-gpu` calls and Rust cannot express. Every function is inlined
; into the kernels, so none of them appears in the PTX. Scoped atomics, which need an instruction for each scope, are
; written by `runtime.rs`.

target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; The block's shared memory: its size is the launch's.
@kp_dynamic_shared = external addrspace(3) global [0 x i8], align 16

; Set by the host when it loads a kernel: the number under which it reports a fault. External, so that the host finds it
; by name.
@kp_kernel_number = addrspace(1) externally_initialized global i32 0, align 4

; The launch's control, for what has no token to find it by: a panic, a functor. Every thread stores it, all of a block the
; same, and reads what it has stored, so no barrier is needed. `ptx.rs` takes it out of kernels that never read it.
@kp_control = internal addrspace(3) global ptr undef, align 8

@kp_arch_name = private unnamed_addr constant [12 x i8] c"__CUDA_ARCH\00", align 1
declare i32 @__nvvm_reflect(ptr)

; Compute capability times 100. `opt -mcpu` folds it, so that one bitcode serves all architectures.
define i32 @__kp_arch() alwaysinline nounwind {
  %arch = call i32 @__nvvm_reflect(ptr @kp_arch_name)
  ret i32 %arch
}

; --- Indices and shared memory

declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
; The argument, of which the optimiser knows nothing more: what is computed from it stays where it stands, rather than being
; kept in registers through a loop.
define i32 @__kp_opaque(i32 %x) alwaysinline nounwind {
  %y = call i32 asm sideeffect "mov.b32 $0, $1;", "=r,r"(i32 %x)
  ret i32 %y
}

; A sum that is one instruction, IADD3. The optimiser would make it of `a + b` where there is that sum already: then the additions
; are of two operands, and those ptxas gives to the multipliers.
define i32 @__kp_add_three(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %sum = call i32 asm "{ .reg .b32 t; add.s32 t, $2, $3; add.s32 $0, $1, t; }", "=r,r,r,r"(i32 %a, i32 %b, i32 %c)
  ret i32 %sum
}

; An address in global memory as a pointer that accesses go to global memory by. From a pointer the optimiser would drop the
; detour through the address space.
define ptr @__kp_global(i64 %address) alwaysinline nounwind {
  %global = inttoptr i64 %address to ptr addrspace(1)
  %pointer = addrspacecast ptr addrspace(1) %global to ptr
  ret ptr %pointer
}

define i32 @__kp_lane_id() alwaysinline nounwind {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  ret i32 %lane
}

define ptr @__kp_dynamic_shared() alwaysinline nounwind {
  ret ptr addrspacecast (ptr addrspace(3) @kp_dynamic_shared to ptr)
}

define i32 @__kp_dynamic_shared_len() alwaysinline nounwind {
  %len = call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()
  ret i32 %len
}

; --- Barriers, fences, waiting

declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent
define void @__kp_barrier() alwaysinline convergent nounwind {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1) convergent
define i32 @__kp_barrier_count(i32 %predicate) alwaysinline convergent nounwind {
  %p = icmp ne i32 %predicate, 0
  %count = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %p)
  ret i32 %count
}

declare i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32, i1) convergent
define i32 @__kp_barrier_and(i32 %predicate) alwaysinline convergent nounwind {
  %p = icmp ne i32 %predicate, 0
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %p)
  %r = zext i1 %all to i32
  ret i32 %r
}

declare i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32, i1) convergent
define i32 @__kp_barrier_or(i32 %predicate) alwaysinline convergent nounwind {
  %p = icmp ne i32 %predicate, 0
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %p)
  %r = zext i1 %any to i32
  ret i32 %r
}

declare void @llvm.nvvm.bar.warp.sync(i32) convergent
define void @__kp_sync_warp(i32 %mask) alwaysinline convergent nounwind {
  call void @llvm.nvvm.bar.warp.sync(i32 %mask)
  ret void
}

define void @__kp_fence(i32 %scope) alwaysinline nounwind {
  switch i32 %scope, label %system [
    i32 0, label %block
    i32 1, label %device
  ]
block:
  fence syncscope("block") acq_rel
  ret void
device:
  fence syncscope("device") acq_rel
  ret void
system:
  fence acq_rel
  ret void
}

; Barriers in shared memory at which a thread arrives and for which another waits: from sm_80 on. A wait ends at once on sm_80, and
; after some time on sm_90.
define void @__kp_split_barrier_begin(ptr %barrier, i32 %arrivals) alwaysinline nounwind {
  %shared = addrspacecast ptr %barrier to ptr addrspace(3)
  %at = ptrtoint ptr addrspace(3) %shared to i32
  call void asm sideeffect "mbarrier.init.shared.b64 [$0], $1;", "r,r,~{memory}"(i32 %at, i32 %arrivals)
  ret void
}
define void @__kp_split_barrier_arrive(ptr %barrier) alwaysinline nounwind {
  %shared = addrspacecast ptr %barrier to ptr addrspace(3)
  %at = ptrtoint ptr addrspace(3) %shared to i32
  %state = call i64 asm sideeffect "mbarrier.arrive.shared.b64 $0, [$1];", "=l,r,~{memory}"(i32 %at)
  ret void
}
define i32 @__kp_split_barrier_test(ptr %barrier, i32 %parity) alwaysinline nounwind {
  %shared = addrspacecast ptr %barrier to ptr addrspace(3)
  %at = ptrtoint ptr addrspace(3) %shared to i32
  %over = call i32 asm sideeffect "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }", "=r,r,r,~{memory}"(i32 %at, i32 %parity)
  ret i32 %over
}
define i32 @__kp_split_barrier_try(ptr %barrier, i32 %parity) alwaysinline nounwind {
  %shared = addrspacecast ptr %barrier to ptr addrspace(3)
  %at = ptrtoint ptr addrspace(3) %shared to i32
  %over = call i32 asm sideeffect "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }", "=r,r,r,~{memory}"(i32 %at, i32 %parity)
  ret i32 %over
}

declare void @llvm.nvvm.nanosleep(i32) convergent
define void @__kp_nanosleep(i32 %nanoseconds) alwaysinline convergent nounwind {
  call void @llvm.nvvm.nanosleep(i32 %nanoseconds)
  ret void
}

; From sm_90 on. The entry does not begin with it then.
define void @__kp_launch_dependents() alwaysinline convergent nounwind {
  call void asm sideeffect "griddepcontrol.launch_dependents;", ""()
  ret void
}

; --- Warp operations. Clang's `convergent` keeps them where they are.

declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) convergent
define i32 @__kp_shuffle_idx(i32 %mask, i32 %value, i32 %lane, i32 %clamp) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %value, i32 %lane, i32 %clamp)
  ret i32 %r
}

declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32) convergent
define i32 @__kp_shuffle_up(i32 %mask, i32 %value, i32 %delta, i32 %clamp) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.shfl.sync.up.i32(i32 %mask, i32 %value, i32 %delta, i32 %clamp)
  ret i32 %r
}

declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32) convergent
define i32 @__kp_shuffle_down(i32 %mask, i32 %value, i32 %delta, i32 %clamp) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 %mask, i32 %value, i32 %delta, i32 %clamp)
  ret i32 %r
}

; The value in the low half, and in the high half whether it came from a lane of the segment.
declare { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32) convergent
define i64 @__kp_shuffle_up_within(i32 %mask, i32 %value, i32 %delta, i32 %clamp) alwaysinline convergent nounwind {
  %r = call { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32 %mask, i32 %value, i32 %delta, i32 %clamp)
  %v = extractvalue { i32, i1 } %r, 0
  %p = extractvalue { i32, i1 } %r, 1
  %low = zext i32 %v to i64
  %flag = zext i1 %p to i64
  %high = shl i64 %flag, 32
  %packed = or i64 %low, %high
  ret i64 %packed
}

declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32) convergent
define i32 @__kp_shuffle_xor(i32 %mask, i32 %value, i32 %bits, i32 %clamp) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 %mask, i32 %value, i32 %bits, i32 %clamp)
  ret i32 %r
}

declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) convergent
define i32 @__kp_ballot(i32 %mask, i32 %predicate) alwaysinline convergent nounwind {
  %p = icmp ne i32 %predicate, 0
  %r = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %p)
  ret i32 %r
}

; The lanes of a whole warp whose low byte is this lane's, by a vote for each bit. Written out, since LLVM makes shifts of the
; predicates, where ptxas finds that one instruction moves four bits to four predicates. Not all eight at once: of the seven
; predicates that there are, some are in use.
define i32 @__kp_match_byte(i32 %byte) alwaysinline convergent nounwind {
  %same = call i32 asm sideeffect "{ .reg .pred q; .reg .b32 t, u, v<8>; and.b32 t, $1, 1; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v0, q, -1; @!q not.b32 v0, v0; and.b32 t, $1, 2; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v1, q, -1; @!q not.b32 v1, v1; and.b32 t, $1, 4; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v2, q, -1; @!q not.b32 v2, v2; and.b32 t, $1, 8; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v3, q, -1; @!q not.b32 v3, v3; shr.u32 u, $1, 4; and.b32 t, u, 1; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v4, q, -1; @!q not.b32 v4, v4; and.b32 t, u, 2; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v5, q, -1; @!q not.b32 v5, v5; and.b32 t, u, 4; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v6, q, -1; @!q not.b32 v6, v6; and.b32 t, u, 8; setp.ne.u32 q, t, 0; vote.sync.ballot.b32 v7, q, -1; @!q not.b32 v7, v7; lop3.b32 v0, v0, v1, v2, 0x80; lop3.b32 v3, v3, v4, v5, 0x80; lop3.b32 v0, v0, v6, v7, 0x80; and.b32 $0, v0, v3; }", "=r,r"(i32 %byte) convergent
  ret i32 %same
}

declare i32 @llvm.nvvm.activemask() convergent
define i32 @__kp_active_mask() alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.activemask()
  ret i32 %r
}

declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32) convergent
define i32 @__kp_match_any_32(i32 %mask, i32 %value) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.match.any.sync.i32(i32 %mask, i32 %value)
  ret i32 %r
}

declare i32 @llvm.nvvm.match.any.sync.i64(i32, i64) convergent
define i32 @__kp_match_any_64(i32 %mask, i64 %value) alwaysinline convergent nounwind {
  %r = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %value)
  ret i32 %r
}

declare { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32, i32) convergent
define i32 @__kp_match_all_32(i32 %mask, i32 %value) alwaysinline convergent nounwind {
  %r = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 %mask, i32 %value)
  %m = extractvalue { i32, i1 } %r, 0
  ret i32 %m
}

declare { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32, i64) convergent
define i32 @__kp_match_all_64(i32 %mask, i64 %value) alwaysinline convergent nounwind {
  %r = call { i32, i1 } @llvm.nvvm.match.all.sync.i64p(i32 %mask, i64 %value)
  %m = extractvalue { i32, i1 } %r, 0
  ret i32 %m
}

; From sm_80 on; the numbers are those of `ReduxOp`.
declare i32 @llvm.nvvm.redux.sync.add(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.umin(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.umax(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.min(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.max(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.and(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.or(i32, i32) convergent
declare i32 @llvm.nvvm.redux.sync.xor(i32, i32) convergent
define i32 @__kp_redux(i32 %mask, i32 %value, i32 %op) alwaysinline convergent nounwind {
  switch i32 %op, label %xor [
    i32 0, label %add
    i32 1, label %umin
    i32 2, label %umax
    i32 3, label %min
    i32 4, label %max
    i32 5, label %and
    i32 6, label %or
  ]
add:
  %r0 = call i32 @llvm.nvvm.redux.sync.add(i32 %value, i32 %mask)
  ret i32 %r0
umin:
  %r1 = call i32 @llvm.nvvm.redux.sync.umin(i32 %value, i32 %mask)
  ret i32 %r1
umax:
  %r2 = call i32 @llvm.nvvm.redux.sync.umax(i32 %value, i32 %mask)
  ret i32 %r2
min:
  %r3 = call i32 @llvm.nvvm.redux.sync.min(i32 %value, i32 %mask)
  ret i32 %r3
max:
  %r4 = call i32 @llvm.nvvm.redux.sync.max(i32 %value, i32 %mask)
  ret i32 %r4
and:
  %r5 = call i32 @llvm.nvvm.redux.sync.and(i32 %value, i32 %mask)
  ret i32 %r5
or:
  %r6 = call i32 @llvm.nvvm.redux.sync.or(i32 %value, i32 %mask)
  ret i32 %r6
xor:
  %r7 = call i32 @llvm.nvvm.redux.sync.xor(i32 %value, i32 %mask)
  ret i32 %r7
}

; --- Faults

define void @__kp_set_control(ptr %control) alwaysinline nounwind {
  store ptr %control, ptr addrspace(3) @kp_control, align 8
  ret void
}

define ptr @__kp_control() alwaysinline nounwind {
  %control = load ptr, ptr addrspace(3) @kp_control, align 8
  ret ptr %control
}

; A control is two addresses, of the flag and of the record, which stay the same while a kernel runs.
define ptr @__kp_fault_record(ptr %control) alwaysinline nounwind {
  %words = addrspacecast ptr %control to ptr addrspace(1)
  %second = getelementptr i8, ptr addrspace(1) %words, i64 8
  %record = load ptr, ptr addrspace(1) %second, align 8
  ret ptr %record
}

define i32 @__kp_kernel_number() alwaysinline nounwind {
  %number = load i32, ptr addrspace(1) @kp_kernel_number, align 4
  ret i32 %number
}

define i32 @__kp_faulted(ptr %control) alwaysinline nounwind {
  %words = addrspacecast ptr %control to ptr addrspace(1)
  %at = load ptr addrspace(1), ptr addrspace(1) %words, align 8, !invariant.load !0
  %flag = load atomic i32, ptr addrspace(1) %at syncscope("device") monotonic, align 4
  ret i32 %flag
}

define void @__kp_exit() alwaysinline noreturn nounwind {
  call void asm sideeffect "exit;", ""()
  unreachable
}

; --- Memory

; Copies from global to shared memory that a thread waits for later: from sm_80 on.
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.ca.shared.global.8(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.wait.all()
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
define void @__kp_copy_async_16(ptr %to, ptr %from) alwaysinline nounwind {
  %to.shared = addrspacecast ptr %to to ptr addrspace(3)
  %from.global = addrspacecast ptr %from to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to.shared, ptr addrspace(1) %from.global)
  ret void
}
define void @__kp_copy_async_8(ptr %to, ptr %from) alwaysinline nounwind {
  %to.shared = addrspacecast ptr %to to ptr addrspace(3)
  %from.global = addrspacecast ptr %from to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.ca.shared.global.8(ptr addrspace(3) %to.shared, ptr addrspace(1) %from.global)
  ret void
}
define void @__kp_copy_async_4(ptr %to, ptr %from) alwaysinline nounwind {
  %to.shared = addrspacecast ptr %to to ptr addrspace(3)
  %from.global = addrspacecast ptr %from to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %to.shared, ptr addrspace(1) %from.global)
  ret void
}
define void @__kp_copy_async_wait() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.wait.all()
  ret void
}
define void @__kp_copy_async_commit() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.commit.group()
  ret void
}
define void @__kp_copy_async_wait_but_last() alwaysinline nounwind {
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  ret void
}

; Vector accesses. As a vector type, so that no pass takes the access apart to share a part of it with another path.

define void @__kp_load_16(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load <4 x i32>, ptr %from, align 16
  store <4 x i32> %v, ptr %to, align 1
  ret void
}

define void @__kp_store_16(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load <4 x i32>, ptr %from, align 1
  store <4 x i32> %v, ptr %to, align 16
  ret void
}

define void @__kp_load_8(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load <2 x i32>, ptr %from, align 8
  store <2 x i32> %v, ptr %to, align 1
  ret void
}

define void @__kp_store_8(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load <2 x i32>, ptr %from, align 1
  store <2 x i32> %v, ptr %to, align 8
  ret void
}

define void @__kp_load_4(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load i32, ptr %from, align 4
  store i32 %v, ptr %to, align 1
  ret void
}

define void @__kp_store_4(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load i32, ptr %from, align 1
  store i32 %v, ptr %to, align 4
  ret void
}

define void @__kp_load_2(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load i16, ptr %from, align 2
  store i16 %v, ptr %to, align 1
  ret void
}

define void @__kp_store_2(ptr %to, ptr %from) alwaysinline nounwind {
  %v = load i16, ptr %from, align 1
  store i16 %v, ptr %to, align 2
  ret void
}

; What comparing slices calls.
define i32 @memcmp(ptr %a, ptr %b, i64 %len) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %equal ]
  %done = icmp eq i64 %i, %len
  br i1 %done, label %same, label %compare
compare:
  %pa = getelementptr i8, ptr %a, i64 %i
  %pb = getelementptr i8, ptr %b, i64 %i
  %va = load i8, ptr %pa
  %vb = load i8, ptr %pb
  %differ = icmp ne i8 %va, %vb
  br i1 %differ, label %different, label %equal
equal:
  %next = add i64 %i, 1
  br label %loop
different:
  %wa = zext i8 %va to i32
  %wb = zext i8 %vb to i32
  %order = sub i32 %wa, %wb
  ret i32 %order
same:
  ret i32 0
}

define i32 @bcmp(ptr %a, ptr %b, i64 %len) alwaysinline nounwind {
  %r = call i32 @memcmp(ptr %a, ptr %b, i64 %len)
  ret i32 %r
}

; --- Numbers

define float @__kp_f16_to_f32(i16 %bits) alwaysinline nounwind {
  %half = bitcast i16 %bits to half
  %r = fpext half %half to float
  ret float %r
}

define i16 @__kp_f32_to_f16(float %value) alwaysinline nounwind {
  %half = fptrunc float %value to half
  %r = bitcast half %half to i16
  ret i16 %r
}

define i16 @__kp_f32_to_bf16(float %value) alwaysinline nounwind {
  %half = fptrunc float %value to bfloat
  %r = bitcast bfloat %half to i16
  ret i16 %r
}

define i16 @__kp_f16_add(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = fadd half %x, %y
  %r = bitcast half %z to i16
  ret i16 %r
}

define i16 @__kp_f16_sub(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = fsub half %x, %y
  %r = bitcast half %z to i16
  ret i16 %r
}

define i16 @__kp_f16_mul(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = fmul half %x, %y
  %r = bitcast half %z to i16
  ret i16 %r
}

declare half @llvm.fma.f16(half, half, half)
define i16 @__kp_f16_fma(i16 %a, i16 %b, i16 %c) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = bitcast i16 %c to half
  %f = call half @llvm.fma.f16(half %x, half %y, half %z)
  %r = bitcast half %f to i16
  ret i16 %r
}

define i16 @__kp_bf16_add(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = fadd bfloat %x, %y
  %r = bitcast bfloat %z to i16
  ret i16 %r
}

define i16 @__kp_bf16_sub(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = fsub bfloat %x, %y
  %r = bitcast bfloat %z to i16
  ret i16 %r
}

define i16 @__kp_bf16_mul(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = fmul bfloat %x, %y
  %r = bitcast bfloat %z to i16
  ret i16 %r
}

declare bfloat @llvm.fma.bf16(bfloat, bfloat, bfloat)
define i16 @__kp_bf16_fma(i16 %a, i16 %b, i16 %c) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = bitcast i16 %c to bfloat
  %f = call bfloat @llvm.fma.bf16(bfloat %x, bfloat %y, bfloat %z)
  %r = bitcast bfloat %f to i16
  ret i16 %r
}

; Two halves at a time: LLVM packs them by itself only where it sees them loaded together.

define i32 @__kp_f16x2_add(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = fadd <2 x half> %x, %y
  %r = bitcast <2 x half> %z to i32
  ret i32 %r
}

define i32 @__kp_f16x2_sub(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = fsub <2 x half> %x, %y
  %r = bitcast <2 x half> %z to i32
  ret i32 %r
}

define i32 @__kp_f16x2_mul(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = fmul <2 x half> %x, %y
  %r = bitcast <2 x half> %z to i32
  ret i32 %r
}

declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
define i32 @__kp_f16x2_fma(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = bitcast i32 %c to <2 x half>
  %f = call <2 x half> @llvm.fma.v2f16(<2 x half> %x, <2 x half> %y, <2 x half> %z)
  %r = bitcast <2 x half> %f to i32
  ret i32 %r
}

define i32 @__kp_bf16x2_add(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = fadd <2 x bfloat> %x, %y
  %r = bitcast <2 x bfloat> %z to i32
  ret i32 %r
}

define i32 @__kp_bf16x2_sub(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = fsub <2 x bfloat> %x, %y
  %r = bitcast <2 x bfloat> %z to i32
  ret i32 %r
}

define i32 @__kp_bf16x2_mul(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = fmul <2 x bfloat> %x, %y
  %r = bitcast <2 x bfloat> %z to i32
  ret i32 %r
}

declare <2 x bfloat> @llvm.fma.v2bf16(<2 x bfloat>, <2 x bfloat>, <2 x bfloat>)
define i32 @__kp_bf16x2_fma(i32 %a, i32 %b, i32 %c) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = bitcast i32 %c to <2 x bfloat>
  %f = call <2 x bfloat> @llvm.fma.v2bf16(<2 x bfloat> %x, <2 x bfloat> %y, <2 x bfloat> %z)
  %r = bitcast <2 x bfloat> %f to i32
  ret i32 %r
}

; From sm_80 on. A NaN gives NaN, and -0 is less than +0.

declare half @llvm.minimum.f16(half, half)
define i16 @__kp_f16_minimum(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = call half @llvm.minimum.f16(half %x, half %y)
  %r = bitcast half %z to i16
  ret i16 %r
}

declare half @llvm.maximum.f16(half, half)
define i16 @__kp_f16_maximum(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to half
  %y = bitcast i16 %b to half
  %z = call half @llvm.maximum.f16(half %x, half %y)
  %r = bitcast half %z to i16
  ret i16 %r
}

declare bfloat @llvm.minimum.bf16(bfloat, bfloat)
define i16 @__kp_bf16_minimum(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = call bfloat @llvm.minimum.bf16(bfloat %x, bfloat %y)
  %r = bitcast bfloat %z to i16
  ret i16 %r
}

declare bfloat @llvm.maximum.bf16(bfloat, bfloat)
define i16 @__kp_bf16_maximum(i16 %a, i16 %b) alwaysinline nounwind {
  %x = bitcast i16 %a to bfloat
  %y = bitcast i16 %b to bfloat
  %z = call bfloat @llvm.maximum.bf16(bfloat %x, bfloat %y)
  %r = bitcast bfloat %z to i16
  ret i16 %r
}

declare <2 x half> @llvm.minimum.v2f16(<2 x half>, <2 x half>)
define i32 @__kp_f16x2_minimum(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = call <2 x half> @llvm.minimum.v2f16(<2 x half> %x, <2 x half> %y)
  %r = bitcast <2 x half> %z to i32
  ret i32 %r
}

declare <2 x half> @llvm.maximum.v2f16(<2 x half>, <2 x half>)
define i32 @__kp_f16x2_maximum(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x half>
  %y = bitcast i32 %b to <2 x half>
  %z = call <2 x half> @llvm.maximum.v2f16(<2 x half> %x, <2 x half> %y)
  %r = bitcast <2 x half> %z to i32
  ret i32 %r
}

declare <2 x bfloat> @llvm.minimum.v2bf16(<2 x bfloat>, <2 x bfloat>)
define i32 @__kp_bf16x2_minimum(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = call <2 x bfloat> @llvm.minimum.v2bf16(<2 x bfloat> %x, <2 x bfloat> %y)
  %r = bitcast <2 x bfloat> %z to i32
  ret i32 %r
}

declare <2 x bfloat> @llvm.maximum.v2bf16(<2 x bfloat>, <2 x bfloat>)
define i32 @__kp_bf16x2_maximum(i32 %a, i32 %b) alwaysinline nounwind {
  %x = bitcast i32 %a to <2 x bfloat>
  %y = bitcast i32 %b to <2 x bfloat>
  %z = call <2 x bfloat> @llvm.maximum.v2bf16(<2 x bfloat> %x, <2 x bfloat> %y)
  %r = bitcast <2 x bfloat> %z to i32
  ret i32 %r
}

declare float @llvm.minimum.f32(float, float)
define float @__kp_minimum_f32(float %a, float %b) alwaysinline nounwind {
  %r = call float @llvm.minimum.f32(float %a, float %b)
  ret float %r
}

declare float @llvm.maximum.f32(float, float)
define float @__kp_maximum_f32(float %a, float %b) alwaysinline nounwind {
  %r = call float @llvm.maximum.f32(float %a, float %b)
  ret float %r
}

declare double @llvm.minimum.f64(double, double)
define double @__kp_minimum_f64(double %a, double %b) alwaysinline nounwind {
  %r = call double @llvm.minimum.f64(double %a, double %b)
  ret double %r
}

declare double @llvm.maximum.f64(double, double)
define double @__kp_maximum_f64(double %a, double %b) alwaysinline nounwind {
  %r = call double @llvm.maximum.f64(double %a, double %b)
  ret double %r
}

!0 = !{}
