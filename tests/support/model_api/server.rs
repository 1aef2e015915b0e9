//! The HTTP side: one current-thread runtime on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Kind, Request, State, anthropic, openai};

/// Serves until `stopped` resolves, which the drop of its sender makes it do.
pub(super) fn run(listener: TcpListener, state: Arc<State>, stopped: oneshot::Receiver<()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime starts");
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, state) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    listener.set_nonblocking(true).expect("a socket can be made nonblocking");
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime takes the socket");
    loop {
        let (stream, _) = listener.accept().await.expect("loopback accepts");
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            // A connection that breaks is the CLI's affair, and often the point of the test.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    state: Arc<State>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Script>, Infallible> {
    let Some(request) = receive(request).await else {
        return Ok(json_response(400, &json!({})));
    };
    let turn = state.record(request.clone());
    Ok(match turn {
        Some((number, turn)) if request.path_only() == "/v1/messages" => {
            anthropic::answer(&request, number, &turn)
        }
        Some((number, turn)) => openai::answer(number, &turn),
        None => aside(&request),
    })
}

/// `None` if the connection broke before the body was complete.
async fn receive(request: hyper::Request<Incoming>) -> Option<Request> {
    let (parts, body) = request.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    Some(Request {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers,
        body: body.collect().await.ok()?.to_bytes().to_vec(),
    })
}

/// What the CLIs ask besides turns of the model.
fn aside(request: &Request) -> Response<Script> {
    match (request.method.as_str(), request.path_only()) {
        ("HEAD", _) => json_response(200, &json!({})),
        ("POST", "/v1/messages") => anthropic::aside(request),
        ("POST", "/v1/messages/count_tokens") => json_response(200, &json!({"input_tokens": 10})),
        ("GET", "/api/claude_code/policy_limits") => json_response(200, &json!({"restrictions": {}})),
        ("GET", "/v1/models") => json_response(200, &json!({"data": [], "models": []})),
        // Codex asks for a websocket first, and takes this for a no; any other answer is retried for 9 s.
        ("GET", "/v1/responses") => json_response(426, &json!({})),
        _ => json_response(404, &json!({"error": {"type": "not_found_error", "message": "not scripted"}})),
    }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response<Script> {
    let mut response = Response::new(Script::complete(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a scripted status is a status");
    response.headers_mut().insert("content-type", "application/json".parse().expect("a legal value"));
    response
}

/// A stream of server-sent events, each named by its `type`.
///
/// A turn that stalls or is cut gets the first half of `events` only, followed by silence or a reset.
pub(super) fn event_stream(turn: &Kind, events: &[Value]) -> Response<Script> {
    let (events, ending) = match turn {
        Kind::Stall => (&events[..events.len() / 2], Ending::Silence),
        Kind::Cut => (&events[..events.len() / 2], Ending::Reset),
        _ => (events, Ending::Complete),
    };
    let named =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    let text = events.iter().map(named).collect::<Vec<_>>().concat();
    let mut response = Response::new(Script { text: Some(text.into()), ending });
    response.headers_mut().insert("content-type", "text/event-stream".parse().expect("a legal value"));
    response
}

/// A response body: some bytes, then an ending.
pub(super) struct Script {
    text: Option<Bytes>,
    ending: Ending,
}

enum Ending {
    Complete,
    Silence,
    Reset,
}

impl Script {
    fn complete(text: String) -> Self {
        Self { text: Some(text.into()), ending: Ending::Complete }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match (self.text.take(), &self.ending) {
            (Some(text), _) => Poll::Ready(Some(Ok(Frame::data(text)))),
            (None, Ending::Complete) => Poll::Ready(None),
            // Nobody wakes this task again but the connection, when its other end closes.
            (None, Ending::Silence) => Poll::Pending,
            (None, Ending::Reset) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
        }
    }
}
