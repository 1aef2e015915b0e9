//! Certificates, as the strictest verifier around sees them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ADDRESS, ask, endpoint, on_loopback, read};
use crate::support::hosts::server::{Endpoint, Server, Streamed};
use crate::support::hosts::tls::Authority;

fn hello(endpoint: Endpoint) -> Server {
    Server::start(endpoint, |_| async { Ok(hyper::Response::new(Streamed::complete("hello"))) })
}

#[test]
fn a_client_needs_the_right_authority_and_one_of_the_names() {
    on_loopback(async || {
        let authority = Authority::fresh("authority");
        let server = hello(endpoint(&authority));
        let answer = ask(&authority, &server.url(), hyper::Request::default()).await.expect("trusted");
        assert_eq!(read(answer.into_body()).await, ("hello".to_owned(), true));

        let stranger = Authority::fresh("authority");
        let refused = ask(&stranger, &server.url(), hyper::Request::default()).await;
        assert!(refused.expect_err("not trusted").to_string().contains("certificate"));

        let elsewhere = hello(Endpoint::tls((ADDRESS, 0), authority.identity(&["elsewhere.example.org"])));
        let url = elsewhere.url().replace("elsewhere.example.org", "127.0.0.2");
        let refused = ask(&authority, &url, hyper::Request::default()).await;
        assert!(refused.expect_err("another's certificate").to_string().contains("not valid for name"));
    });
}

#[test]
fn an_authority_can_be_loaded_from_what_openssl_makes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (certificate, key) = (directory.path().join("ca.crt"), directory.path().join("ca.key"));
    openssl(
        Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=authority"])
            .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    );
    on_loopback(async || {
        let authority = Authority::load(&certificate, &key);
        assert_eq!(authority.pem(), fs::read_to_string(&certificate).expect("it was made"));
        let server = hello(endpoint(&authority));
        ask(&authority, &server.url(), hyper::Request::default()).await.expect("trusted");
        strictly_verified(&server.url(), &certificate);
    });
}

/// `-x509_strict` asks for what newer verifiers, such as Python's, ask for too.
fn strictly_verified(url: &str, authority: &Path) {
    openssl(
        Command::new("openssl")
            .args(["s_client", "-x509_strict", "-verify_return_error", "-verify_ip", "127.0.0.2", "-connect"])
            .arg(url.strip_prefix("https://").expect("TLS"))
            .arg("-CAfile")
            .arg(authority)
            .stdin(std::process::Stdio::null()),
    );
}

fn openssl(command: &mut Command) {
    let output = command.output().expect("openssl starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
