//! Servers that a test runs beside Caisson: what a pod would find on the internet, and a proxy that breaks what passes
//! between a client and an API server.
//!
//! Guarantees: a server listens in the network namespace of the thread that starts it; it ends when dropped, and with it
//! every open connection; whatever a test can wait for is waited for with a bound.

pub(crate) mod api_proxy;
pub(crate) mod git_server;
pub(crate) mod monitor;
pub(crate) mod server;
pub(crate) mod tls;
