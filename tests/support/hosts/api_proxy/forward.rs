//! One request on its way to the API server and back, with what strikes it.

use std::ops::ControlFlow;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::json;

use super::super::server::{HangUp, Sending, Streamed, cut};
use super::State;
use super::call::{Call, Verb};
use super::rules::{Fault, Refusal, RuleId, Rules};

pub(super) async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Streamed>, HangUp> {
    let (parts, body) = request.into_parts();
    // Read to its end first: only then is it noticed that a client leaves.
    let body = body.collect().await.map_err(|_| HangUp)?.to_bytes();
    let call = Call::parse(&parts.method, &parts.uri);
    let (number, struck) = state.record(&call);
    let mut client = Client { state: &state, number, waits: true };
    let response = match struck {
        Some((_, Fault::Refuse(refusal))) => Ok(refused(&refusal)),
        struck => through(&state, number, call, struck, Request::from_parts(parts, body)).await,
    };
    client.waits = false;
    response
}

/// A client that has asked. What waits for it is dropped when it leaves.
struct Client<'a> {
    state: &'a State,
    number: usize,
    waits: bool,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.state.abandoned(self.number);
        }
    }
}

/// To the API server and back.
async fn through(
    state: &Arc<State>,
    number: usize,
    call: Call,
    struck: Option<(RuleId, Fault)>,
    request: Request<Bytes>,
) -> Result<Response<Streamed>, HangUp> {
    match &struck {
        Some((_, Fault::Drop)) => return Err(HangUp),
        Some((rule, Fault::HoldRequest)) => state.lifted(*rule).await,
        _ => {}
    }
    let response = forward(&state.upstream, request).await.map_err(|_| HangUp)?;
    let (mut parts, body) = response.into_parts();
    if let Some((_, Fault::LoseReply)) = struck {
        // What the API server did is done when it has said all about it.
        let _ = body.collect().await;
        state.answered(number, parts.status);
        return Err(HangUp);
    }
    state.answered(number, parts.status);
    if let Some((rule, Fault::HoldReply)) = struck {
        state.lifted(rule).await;
    }
    let (sending, streamed) = Streamed::channel();
    let watch = call.verb == Verb::Watch && parts.status == StatusCode::OK;
    let state = Arc::clone(state);
    tokio::spawn(async move {
        let passing = async {
            if watch {
                events(&state, number, &call, body, &sending).await;
            } else {
                everything(body, &sending).await;
            }
        };
        tokio::select! {
            () = passing => {}
            () = sending.closed() => {}
        }
    });
    keep_end_to_end(&mut parts.headers);
    Ok(Response::from_parts(parts, streamed))
}

/// Over a connection of its own: one that was kept might have ended meanwhile, which no test asked for.
async fn forward(upstream: &kube::Config, request: Request<Bytes>) -> kube::Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    let mut config = upstream.clone();
    if parts.headers.contains_key(AUTHORIZATION) {
        config.auth_info = kube::config::AuthInfo::default();
    }
    keep_end_to_end(&mut parts.headers);
    kube::Client::try_from(config)?.send(Request::from_parts(parts, body.into())).await
}

/// Removes what is about one connection only.
fn keep_end_to_end(headers: &mut HeaderMap) {
    for header in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(header);
    }
}

/// Passes a body on to its end, however that comes.
async fn everything(mut body: Body, sending: &Sending) {
    while let Some(frame) = body.frame().await {
        if pass(frame, sending).await.is_break() {
            return;
        }
    }
}

/// Passes the events of a watch on, until it ends or a fault ends it.
async fn events(state: &State, number: usize, call: &Call, mut body: Body, sending: &Sending) {
    let mut struck = Vec::new();
    let mut stalled: Option<RuleId> = None;
    let mut between_lines = true;
    loop {
        let seen = state.rules.read(Rules::changes);
        stalled = stalled.filter(|rule| state.rules.read(|rules| rules.holds(*rule)));
        let fault = if between_lines { state.strike_stream(number, call, &mut struck) } else { None };
        match fault {
            None => {}
            Some((_, Fault::ExpireWatch)) => {
                let event = json!({"type": "ERROR", "object": Refusal::expired().body()});
                // If this fails, nobody is left to tell.
                let _ = sending.send(Ok(format!("{event}\n").into())).await;
                return;
            }
            Some((rule, Fault::StallWatch)) => {
                stalled = Some(rule);
                continue;
            }
            Some(_) => return cut(sending).await,
        }
        let frame = tokio::select! {
            () = state.rules.reached(|rules| rules.changes() != seen) => continue,
            frame = body.frame(), if stalled.is_none() => frame,
        };
        let Some(frame) = frame else { return };
        match pass(frame, sending).await {
            ControlFlow::Continue(last) => between_lines = last.map_or(between_lines, |last| last == b'\n'),
            ControlFlow::Break(()) => return,
        }
    }
}

/// Passes one frame on, and returns its last byte. The end is a connection that has ended, on either side.
async fn pass(frame: kube::Result<Frame<Bytes>>, sending: &Sending) -> ControlFlow<(), Option<u8>> {
    let Ok(frame) = frame else {
        cut(sending).await;
        return ControlFlow::Break(());
    };
    // Trailers are not part of the API.
    let data = frame.into_data().unwrap_or_default();
    let last = data.last().copied();
    match sending.send(Ok(data)).await {
        Ok(()) => ControlFlow::Continue(last),
        Err(_) => ControlFlow::Break(()),
    }
}

fn refused(refusal: &Refusal) -> Response<Streamed> {
    let mut response = Response::new(Streamed::complete(refusal.body().to_string()));
    *response.status_mut() = refusal.status();
    response.headers_mut().insert(CONTENT_TYPE, "application/json".parse().expect("a legal value"));
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
