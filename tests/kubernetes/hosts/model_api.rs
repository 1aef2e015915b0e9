//! The model API as an external host.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::{ask, endpoint, on_loopback, read};
use crate::support::hosts::tls::Authority;
use crate::support::model_api::{ModelApi, Turn};

/// What asks the model for a turn.
fn question() -> Request<Full<Bytes>> {
    let body = json!({"model": "a-model", "tools": [{"name": "Write"}], "messages": []});
    Request::builder()
        .method(Method::POST)
        .uri("/v1/messages")
        .body(Full::from(body.to_string()))
        .expect("a legal request")
}

#[test]
fn it_answers_over_tls_whoever_trusts_its_authority() {
    on_loopback(async || {
        let authority = Authority::fresh("authority");
        let api = ModelApi::start_on(endpoint(&authority), [Turn::text("Done.")]);
        assert!(ask(&Authority::fresh("authority"), &api.url(), question()).await.is_err());
        assert_eq!(api.requests().len(), 0);

        let answer = ask(&authority, &api.url(), question()).await.expect("trusted");
        assert_eq!(answer.status(), StatusCode::OK);
        let (body, _) = read(answer.into_body()).await;
        let message: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(message["content"][0]["text"], "Done.");
        assert_eq!(api.model_requests()[0].path, "/v1/messages");
    });
}

#[test]
fn a_cut_answer_arrives_as_far_as_it_goes() {
    on_loopback(async || {
        let authority = Authority::fresh("authority");
        let api = ModelApi::start_on(endpoint(&authority), [Turn::cut()]);
        let answer = ask(&authority, &api.url(), question()).await.expect("headers come first");
        let (body, whole) = read(answer.into_body()).await;
        assert!(body.contains("message_start"), "{body}");
        assert!(!body.contains("message_stop") && !whole, "{body}");
    });
}
