//! The namespace that the other tests run in.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use crate::support::netns::loopback_only;

#[test]
fn loopback_works_and_nothing_else_is_reachable() {
    let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the machine has loopback");
    let outside_address = outside.local_addr().expect("bound");
    loopback_only(|| {
        let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback is up");
        TcpStream::connect(inside.local_addr().expect("bound")).expect("loopback is reachable");

        let refused = TcpStream::connect(outside_address).expect_err("this loopback isn't the machine's");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

        // RFC 5737 documentation address: a route would take the packet, whether or not anyone answers.
        let nowhere = SocketAddr::from(([192, 0, 2, 1], 443));
        let unreachable = TcpStream::connect(nowhere).expect_err("there is no route");
        assert_eq!(unreachable.kind(), ErrorKind::NetworkUnreachable);
    });
    TcpStream::connect(outside_address).expect("the test's own thread has stayed outside");
}

#[test]
fn child_processes_share_the_namespace() {
    let interfaces = loopback_only(|| {
        let output = std::process::Command::new("cat").arg("/proc/net/dev").output().expect("cat starts");
        String::from_utf8(output.stdout).expect("text")
    });
    let names: Vec<_> =
        interfaces.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
    assert_eq!(names, ["lo"]);
}

#[test]
fn a_panic_inside_comes_out() {
    let panic = std::panic::catch_unwind(|| loopback_only(|| panic!("from inside"))).expect_err("a panic");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"from inside"));
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the thread is as before");
}
