//! The servers that tests use, each over TLS in a network of its own.

mod api_proxy;
mod api_server;
mod git_server;
mod model_api;
mod rules;
mod tls;

use std::error::Error;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

use crate::support::hosts::server::Endpoint;
use crate::support::hosts::tls::Authority;

/// Where the servers of these tests listen, each on a port of its own; all of 127.0.0.0/8 is loopback.
const ADDRESS: [u8; 4] = [127, 0, 0, 2];
const NAMES: &[&str] = &["127.0.0.2", "host.example.org"];

/// A port of [`ADDRESS`], with a certificate for it.
fn endpoint(authority: &Authority) -> Endpoint {
    Endpoint::tls((ADDRESS, 0), authority.identity(NAMES))
}

/// Runs `test` in a network that has loopback only, on a runtime there.
fn on_loopback(test: impl AsyncFnOnce() + Send) {
    crate::support::netns::loopback_only(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts")
            .block_on(test());
    });
}

/// Asks the server of a URL on a connection of its own, as a client that trusts `authority`.
async fn ask(
    authority: &Authority,
    url: &str,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Box<dyn Error>> {
    let address = url.strip_prefix("https://").expect("TLS");
    let (host, _) = address.split_once(':').expect("a port");
    let stream = TcpStream::connect(address).await?;
    let stream = authority.connector().connect(ServerName::try_from(host.to_owned())?, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// The rest of a body, and whether it was all.
async fn read(mut body: Incoming) -> (String, bool) {
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return (text, false) };
        text += &String::from_utf8_lossy(&frame.into_data().unwrap_or_default());
    }
    (text, true)
}
