//! The handler of faults on Linux with glibc.
//!
//! The handler calls nothing of the system but `sysconf`, `mprotect`, `sigaction`, `raise`, `write` and `abort`, which do no
//! more than the system does. It allocates nothing, and what it reads needs no initialisation. It runs on the stack for signals
//! that every thread of the standard library has; on a thread without one, the process ends.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::io;
use std::mem::{MaybeUninit, transmute};
use std::ops::Range;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::slice;
use std::sync::{Once, OnceLock};
use std::thread::panicking;

use libc::{SA_ONSTACK, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGSEGV, dl_phdr_info, sigaction, siginfo_t, ucontext_t};

use crate::emulator::fiber::{Fibers, Overflow};

/// What a thread goes on with when the handler returns.
#[repr(transparent)]
pub(in crate::emulator) struct Registers(ucontext_t);

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(in crate::emulator) fn stack_pointer(&self) -> usize {
        self.0.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    fn instruction(&self) -> usize {
        self.0.uc_mcontext.gregs[libc::REG_RIP as usize] as usize
    }

    /// Lets the thread go on at an instruction, with a stack and as code expects the flags.
    #[cfg(not(emulator_portable_fibers))]
    pub(in crate::emulator) fn jump(&mut self, instruction: usize, stack_pointer: usize) {
        const DIRECTION: i64 = 1 << 10;
        let registers = &mut self.0.uc_mcontext.gregs;
        registers[libc::REG_RIP as usize] = instruction as i64;
        registers[libc::REG_RSP as usize] = stack_pointer as i64;
        registers[libc::REG_EFL as usize] &= !DIRECTION;
    }

    /// Lets the thread go on with a function.
    #[cfg(emulator_portable_fibers)]
    pub(in crate::emulator) fn call(&mut self, to: corosensei::trap::TrapHandlerRegs) {
        let registers = &mut self.0.uc_mcontext.gregs;
        registers[libc::REG_RIP as usize] = to.rip as i64;
        registers[libc::REG_RSP as usize] = to.rsp as i64;
        registers[libc::REG_RBP as usize] = to.rbp as i64;
        registers[libc::REG_RDI as usize] = to.rdi as i64;
        registers[libc::REG_RSI as usize] = to.rsi as i64;
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    pub(in crate::emulator) fn stack_pointer(&self) -> usize {
        self.0.uc_mcontext.sp as usize
    }

    fn instruction(&self) -> usize {
        self.0.uc_mcontext.pc as usize
    }

    /// Lets the thread go on with a function.
    pub(in crate::emulator) fn call(&mut self, to: corosensei::trap::TrapHandlerRegs) {
        let context = &mut self.0.uc_mcontext;
        (context.pc, context.sp) = (to.pc, to.sp);
        (context.regs[0], context.regs[1], context.regs[29], context.regs[30]) = (to.x0, to.x1, to.x29, to.lr);
    }
}

/// Bytes of a stack's reserve: whole pages of every size, and more than unwinding takes.
pub(in crate::emulator) const RESERVE: usize = 64 << 10;

/// The reserve of a stack whose lowest address, that of the guard page, is `end`.
fn reserve(end: usize) -> Range<usize> {
    // SAFETY: it only returns a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    end + page_bytes..end + page_bytes + RESERVE
}

/// Whether `address` is in the guard page or the reserve of the stack that ends at `end`.
pub(in crate::emulator) fn is_beyond_limit(end: usize, address: usize) -> bool {
    (end..reserve(end).end).contains(&address)
}

/// Closes the reserve of a stack that no lane is on.
pub(in crate::emulator) fn close_reserve(end: usize) -> io::Result<()> {
    protect_reserve(end, libc::PROT_NONE)
}

/// Opens the reserve for a lane that has met it at the address `fault`, and returns whether that was in it.
pub(in crate::emulator) fn open_reserve(end: usize, fault: usize) -> bool {
    reserve(end).contains(&fault) && protect_reserve(end, libc::PROT_READ | libc::PROT_WRITE).is_ok()
}

fn protect_reserve(end: usize, protection: c_int) -> io::Result<()> {
    let pages = with_exposed_provenance_mut(reserve(end).start);
    // SAFETY: pages of a stack's mapping. Those that lose their access are not in use.
    match unsafe { libc::mprotect(pages, RESERVE, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the handler needs to know.
struct Known {
    /// The handler before it.
    previous: sigaction,
    /// The addresses of the program's own code, and of what is linked with it.
    code: Range<usize>,
    /// Whether an allocator is, or may be, in that code.
    has_allocator: bool,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// Puts a handler before the one that is there, once a process.
///
/// A program that has the C library linked into it gets none, because the allocator's code cannot be told from its own.
pub(in crate::emulator) fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_fault;
        let code = object_around(handler as usize);
        let allocator: unsafe extern "C" fn(usize) -> *mut c_void = libc::malloc;
        if code.contains(&(allocator as usize)) {
            return;
        }
        let mut previous = MaybeUninit::<sigaction>::uninit();
        // SAFETY: asks for the action that is there, which the call writes in full.
        let previous = unsafe {
            sigaction(SIGSEGV, null(), previous.as_mut_ptr());
            previous.assume_init()
        };
        let mut action = previous;
        action.sa_sigaction = handler as usize;
        // The stack of a lane has no room for it. What the previous handler wants blocked is blocked for it too.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        KNOWN.get_or_init(|| Known { previous, code, has_allocator: !allocates_in_libc() });
        // SAFETY: the handler passes on what it does not know.
        unsafe { sigaction(SIGSEGV, &action, null_mut()) };
    });
}

/// Whether the program's memory comes from the C library's allocator, and not from one that is linked into it.
///
/// Blocks of more than 32 MiB have mappings of their own there, which it counts. Nobody touches these; if there is no room for them,
/// or the environment forbids such mappings, the answer is no.
fn allocates_in_libc() -> bool {
    const BLOCK: Layout = match Layout::from_size_align(40 << 20, 16) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };
    const BLOCKS: usize = 3;
    // SAFETY: it only returns numbers.
    let mappings = || unsafe { libc::mallinfo() }.hblks as usize;
    let grows = || {
        let before = mappings();
        // SAFETY: the layout has a size.
        let blocks: [*mut u8; BLOCKS] = std::array::from_fn(|_| black_box(unsafe { alloc(BLOCK) }));
        let grown = mappings().wrapping_sub(before);
        for block in blocks.into_iter().filter(|block| !block.is_null()) {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(block, BLOCK) };
        }
        grown == BLOCKS && mappings() == before
    };
    // Other threads may have made or freed such blocks meanwhile.
    (0..5).any(|_| grows())
}

/// The addresses of the program or shared library that `address` is in.
fn object_around(address: usize) -> Range<usize> {
    struct Search {
        address: usize,
        found: Range<usize>,
    }

    /// # Safety
    /// `info` describes an object, and `search` is a `Search`, during the call.
    unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: the caller's. An object has so many headers.
        let (base, headers) = unsafe {
            let info = &*info;
            (info.dlpi_addr as usize, slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize))
        };
        // SAFETY: the caller's.
        let search = unsafe { &mut *search.cast::<Search>() };
        let segments = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        });
        // In ascending order, as the format wants them.
        let range = segments.reduce(|all, next| all.start..next.end).unwrap_or_default();
        if range.contains(&search.address) {
            search.found = range;
            return 1;
        }
        0
    }

    let mut search = Search { address, found: 0..0 };
    // SAFETY: `visit` takes what the call gives it, and this `search`.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Why a process ends whose allocator is its own.
const NO_WAY_OUT: &str = "\nThe stack of a kernel's lane is used up. This program has an allocator of its own, which may be in the midst \
                          of changing its heap, so the lane cannot be left there and the process ends. Raise \
                          `EmulatorOptions::stack_bytes`, or move large arrays to shared memory.\n";

/// The handler.
///
/// # Safety
/// For the system to call, at a fault.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(known) = KNOWN.get() else { return };
    // SAFETY: what the system passes to a handler with `SA_SIGINFO`: they are there until it returns.
    let (fault, registers) = unsafe { (&*info, &mut *context.cast::<Registers>()) };
    // A fault, and not a signal that somebody sent.
    if fault.si_code > 0 {
        let stop = known.code.contains(&registers.instruction()) && !known.has_allocator && !panicking();
        // SAFETY: faults have an address. The registers are those of the fault. A lane may stop for good in the program's
        // own code, unless it unwinds: the description of `overflow.rs` tells why.
        let outcome = unsafe { Fibers::handle_overflow(fault.si_addr().addr(), registers, stop) };
        match outcome {
            Overflow::Handled => return,
            Overflow::Fatal if known.has_allocator => {
                // SAFETY: the text has so many bytes; the process ends here.
                unsafe {
                    libc::write(libc::STDERR_FILENO, NO_WAY_OUT.as_ptr().cast(), NO_WAY_OUT.len());
                    libc::abort()
                }
            }
            Overflow::Fatal | Overflow::None => {}
        }
    }
    // SAFETY: the system's arguments.
    unsafe { pass_on(&known.previous, signal, info, context) }
}

/// Does what the handler before this one does.
///
/// # Safety
/// The arguments are a handler's, and `previous` was the signal's action.
unsafe fn pass_on(previous: &sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    match previous.sa_sigaction {
        SIG_DFL | SIG_IGN => {
            // SAFETY: an action that was there. The signal comes again, after this handler has returned.
            unsafe {
                sigaction(signal, previous, null_mut());
                libc::raise(signal);
            }
        }
        handler if previous.sa_flags & SA_SIGINFO != 0 => {
            // SAFETY: a handler with that flag has this signature.
            let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { transmute(handler) };
            // SAFETY: the caller's arguments.
            unsafe { handler(signal, info, context) }
        }
        handler => {
            // SAFETY: a handler without that flag has this signature.
            let handler: unsafe extern "C" fn(c_int) = unsafe { transmute(handler) };
            // SAFETY: the caller's argument.
            unsafe { handler(signal) }
        }
    }
}
