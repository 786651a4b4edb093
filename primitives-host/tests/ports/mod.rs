//! Addresses for groups to meet at.

use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// How many ports a run of tests has, and how many such blocks there are. All are below those that systems hand out.
const BLOCK: u16 = 400;
const BLOCKS: u16 = 40;

/// The first port of a block, which this process keeps to itself: other runs take other blocks.
static FIRST: LazyLock<(TcpListener, u16)> = LazyLock::new(|| {
    let own = (std::process::id() % u32::from(BLOCKS)) as u16;
    let keep = |block: u16| {
        let port = 16_000 + (own + block) % BLOCKS * BLOCK;
        Some((TcpListener::bind(("127.0.0.1", port)).ok()?, port))
    };
    (0..BLOCKS).find_map(keep).expect("a block of ports that no other run has")
});

/// An address that nobody listens at. To see this, it does not listen there itself: a process that another test starts at this moment would
/// keep the port for as long as it has this one's files.
pub(crate) fn address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = FIRST.1 + 1 + NEXT.fetch_add(1, Ordering::Relaxed) % (BLOCK - 1);
        if TcpStream::connect(("127.0.0.1", port)).is_err() {
            return format!("127.0.0.1:{port}");
        }
    }
}
