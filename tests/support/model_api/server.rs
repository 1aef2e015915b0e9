//! The HTTP side.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::hosts::server::{HangUp, Streamed, cut};
use super::{Kind, Request, State, anthropic, openai};

pub(super) async fn answer(
    state: Arc<State>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Streamed>, HangUp> {
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
fn aside(request: &Request) -> Response<Streamed> {
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

pub(super) fn json_response(status: u16, body: &Value) -> Response<Streamed> {
    let mut response = Response::new(Streamed::complete(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a scripted status is a status");
    response.headers_mut().insert("content-type", "application/json".parse().expect("a legal value"));
    response
}

/// A stream of server-sent events, each named by its `type`.
///
/// A turn that stalls or is cut gets the first half of `events` only, followed by silence or a reset.
pub(super) fn event_stream(turn: &Kind, events: &[Value]) -> Response<Streamed> {
    let sent = if matches!(turn, Kind::Stall | Kind::Cut) { &events[..events.len() / 2] } else { events };
    let named =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    let text = sent.iter().map(named).collect::<String>();
    let (sending, body) = Streamed::channel();
    let turn = turn.clone();
    tokio::spawn(async move {
        // A CLI that has left needs no ending.
        let _ = sending.send(Ok(text.into())).await;
        match turn {
            Kind::Stall => sending.closed().await,
            Kind::Cut => cut(&sending).await,
            _ => {}
        }
    });
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", "text/event-stream".parse().expect("a legal value"));
    response
}
