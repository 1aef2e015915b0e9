//! Anthropic's Messages protocol, as far as Claude Code needs it.

use hyper::Response;
use serde_json::{Value, json};

use super::super::hosts::server::Streamed;
use super::server::{event_stream, json_response};
use super::{Kind, Request, Tool, Turn, Usage};

pub(super) fn answer(request: &Request, number: usize, turn: &Turn) -> Response<Streamed> {
    let block = match &turn.kind {
        Kind::Status(status) => return refusal(*status),
        Kind::Failed => return refusal(400),
        Kind::Text(text) => json!({"type": "text", "text": text}),
        // Only the first half is sent.
        Kind::Stall | Kind::Cut => json!({"type": "text", "text": "never sent as a whole"}),
        Kind::Tool(tool) => tool_use(number, tool),
    };
    message(request, number, &turn.kind, &block, turn.usage)
}

/// Answers a request that offers no tools, such as one for a title.
pub(super) fn aside(request: &Request) -> Response<Streamed> {
    let kind = Kind::Text("ok".to_owned());
    message(request, 0, &kind, &json!({"type": "text", "text": "ok"}), Usage { input: 1, output: 1 })
}

fn message(request: &Request, number: usize, kind: &Kind, block: &Value, usage: Usage) -> Response<Streamed> {
    let body = request.json();
    let stop_reason = if block["type"] == "tool_use" { "tool_use" } else { "end_turn" };
    let mut message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": 1,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    });
    // After a broken stream Claude Code asks once more without one; a broken turn stays broken.
    let broken = matches!(kind, Kind::Stall | Kind::Cut);
    if body["stream"] != true && !broken {
        message["content"] = json!([block]);
        message["stop_reason"] = json!(stop_reason);
        message["usage"]["output_tokens"] = json!(usage.output);
        return json_response(200, &message);
    }
    let (start, delta) = opened(block);
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": usage.output}}),
        json!({"type": "message_stop"}),
    ];
    event_stream(kind, &events)
}

/// The empty block that opens a stream, and the delta that fills it.
fn opened(block: &Value) -> (Value, Value) {
    let mut start = block.clone();
    if block["type"] == "tool_use" {
        start["input"] = json!({});
        (start, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
    } else {
        start["text"] = json!("");
        (start, json!({"type": "text_delta", "text": block["text"]}))
    }
}

fn tool_use(number: usize, tool: &Tool) -> Value {
    let (name, input) = match tool {
        Tool::Write { path, content } => ("Write", json!({"file_path": path, "content": content})),
        Tool::Command(command) => ("Bash", json!({"command": command, "description": "scripted"})),
    };
    json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input})
}

fn refusal(status: u16) -> Response<Streamed> {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json_response(status, &json!({"type": "error", "error": {"type": kind, "message": "scripted refusal"}}))
}
