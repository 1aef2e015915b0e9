//! Addresses for hosts outside the cluster.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// All of them are local in the cluster's network, and on none of them does anything listen by itself. They look public,
/// so that whatever refuses private ranges stays on in every test. The lower ones are the cluster's.
const RANGE: [u8; 3] = [198, 51, 100];
const FIRST: u8 = 16;

/// An address of this test's own, until dropped.
pub(crate) struct OutsideAddress {
    address: Ipv4Addr,
    _lock: Flock<File>,
}

impl OutsideAddress {
    /// # Panics
    /// If all are taken.
    pub(super) fn allocate(state: &Path) -> Self {
        let locks = state.join("outside");
        std::fs::create_dir_all(&locks).expect("the state directory is writable");
        let [a, b, c] = RANGE;
        for d in FIRST..=254 {
            let lock = File::create(locks.join(d.to_string())).expect("the state directory is writable");
            if let Ok(lock) = Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
                return Self { address: Ipv4Addr::new(a, b, c, d), _lock: lock };
            }
        }
        panic!("more than {} hosts outside at once", 255 - FIRST);
    }

    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.address
    }
}
