//! What all servers of tests share: a listener, and one current-thread runtime on a thread of its own.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use super::tls::Identity;

/// Where a server listens, and who it is.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    identity: Option<Identity>,
}

impl Endpoint {
    /// HTTP on a free port of 127.0.0.1.
    pub(crate) fn loopback() -> Self {
        Self::plain((Ipv4Addr::LOCALHOST, 0))
    }

    /// HTTP; port 0 is a free one.
    pub(crate) fn plain(address: impl Into<SocketAddr>) -> Self {
        Self { address: address.into(), identity: None }
    }

    /// HTTPS; port 0 is a free one.
    pub(crate) fn tls(address: impl Into<SocketAddr>, identity: Identity) -> Self {
        Self { address: address.into(), identity: Some(identity) }
    }

    /// Who it is, if it speaks TLS.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The base URL without a path.
    pub(super) fn url(&self) -> String {
        match &self.identity {
            Some(identity) => format!("https://{}:{}", identity.name, self.address.port()),
            None => format!("http://{}", self.address),
        }
    }
}

/// A running server.
pub(crate) struct Server {
    endpoint: Endpoint,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Has `answer` answer every request. An error of its ends the connection, without a response.
    ///
    /// # Panics
    /// If the address isn't the machine's, or is taken.
    pub(crate) fn start<A, F, B>(mut endpoint: Endpoint, answer: A) -> Self
    where
        A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<B>, HangUp>> + Send + 'static,
        B: Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        let listener = TcpListener::bind(endpoint.address)
            .unwrap_or_else(|error| panic!("a server can't listen on {}: {error}", endpoint.address));
        endpoint.address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel();
        let identity = endpoint.identity.clone();
        let thread = std::thread::spawn(move || run(listener, identity.as_ref(), &Arc::new(answer), stopped));
        Self { endpoint, stop: Some(stop), thread: Some(thread) }
    }

    /// What it was started with, with the port that it got.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The base URL without a path.
    pub(crate) fn url(&self) -> String {
        self.endpoint.url()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "a server panicked");
        }
    }
}

/// Serves until `stopped` resolves, which the drop of its sender makes it do. The runtime takes its connections along.
fn run<A, F, B>(
    listener: TcpListener,
    identity: Option<&Identity>,
    answer: &Arc<A>,
    stopped: oneshot::Receiver<()>,
) where
    A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Response<B>, HangUp>> + Send + 'static,
    B: Body<Data = Bytes, Error = io::Error> + Send + 'static,
{
    let accept = async {
        listener.set_nonblocking(true).expect("a socket can be made nonblocking");
        let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime takes the socket");
        loop {
            let (stream, _) = listener.accept().await.expect("a listener accepts");
            // Small chunks would each wait for the client's delayed acknowledgement.
            stream.set_nodelay(true).expect("a new connection takes it");
            let answer = Arc::clone(answer);
            match identity.cloned() {
                None => tokio::spawn(serve(stream, answer)),
                Some(identity) => tokio::spawn(async move {
                    // Who doesn't trust the certificate is gone, as the test may want.
                    if let Ok(stream) = identity.acceptor.accept(stream).await {
                        serve(stream, answer).await;
                    }
                }),
            };
        }
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        tokio::select! {
            () = accept => {}
            _ = stopped => {}
        }
    });
}

async fn serve<A, F, B>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: Arc<A>)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<B>, HangUp>>,
    B: Body<Data = Bytes, Error = io::Error> + 'static,
{
    let service = service_fn(|request| answer(request));
    // A connection that breaks is the client's affair, and often the point of the test.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Instead of a response: the connection ends.
#[derive(Debug)]
pub(crate) struct HangUp;

impl fmt::Display for HangUp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("hung up")
    }
}

impl Error for HangUp {}

/// A body that a task sends as it goes.
pub(crate) struct Streamed(mpsc::Receiver<io::Result<Bytes>>);

/// The task's side of a [`Streamed`] body. Without a receiver the connection is gone.
pub(crate) type Sending = mpsc::Sender<io::Result<Bytes>>;

impl Streamed {
    /// A body, and what sends it. It holds one chunk, so that the sender is as fast as the receiver.
    pub(crate) fn channel() -> (Sending, Self) {
        let (sending, receiver) = mpsc::channel(1);
        (sending, Self(receiver))
    }

    /// A body that is there at once.
    pub(crate) fn complete(body: impl Into<Bytes>) -> Self {
        let (sending, streamed) = Self::channel();
        sending.try_send(Ok(body.into())).expect("an empty channel takes a chunk");
        streamed
    }
}

/// Ends a body before its end, and with it the connection.
pub(crate) async fn cut(sending: &Sending) {
    // The client may have left before.
    let _ = sending.send(Err(io::ErrorKind::ConnectionReset.into())).await;
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
