//! A network namespace that has loopback only, for tests that start agent CLIs: both try hosts of their vendors, and a
//! test must neither reach them nor wait for them.

use std::io;
use std::os::fd::AsRawFd as _;

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Runs `test` on a thread of its own in a fresh network namespace. Sockets that it opens, and threads and processes
/// that it starts, are in that namespace too; the caller and everything else stay where they are. The namespace ends
/// with its last process.
///
/// # Panics
/// With whatever `test` panicked, and if the namespace can't be made, which needs `CAP_SYS_ADMIN`.
pub(crate) fn loopback_only<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let isolated = || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
        bring_up_loopback().expect("a namespace's owner may bring its loopback up");
        test()
    };
    std::thread::scope(|scope| scope.spawn(isolated).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// In a new namespace the interface exists, without its flag `IFF_UP`; netdevice(7).
fn bring_up_loopback() -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    name[0] = libc::c_char::try_from(b'l').expect("ASCII");
    name[1] = libc::c_char::try_from(b'o').expect("ASCII");
    let flags = libc::c_short::try_from(libc::IFF_UP).expect("a small flag");
    let request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    #[expect(unsafe_code, reason = "no safe wrapper sets an interface's flags")]
    // SAFETY: the descriptor is open, and SIOCSIFFLAGS only reads the `ifreq` that the pointer is valid for.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
