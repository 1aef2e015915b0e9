//! `OpenAI`'s Responses protocol, as far as Codex needs it.

use hyper::Response;
use serde_json::{Value, json};

use super::super::hosts::server::Streamed;
use super::server::{event_stream, json_response};
use super::{Kind, Tool, Turn, Usage};

pub(super) fn answer(number: usize, turn: &Turn) -> Response<Streamed> {
    let id = format!("resp_{number}");
    let item = match &turn.kind {
        Kind::Status(status) => {
            return json_response(*status, &json!({"error": {"message": "scripted refusal"}}));
        }
        Kind::Failed => return failed(&id),
        Kind::Text(text) => message(number, text),
        // Only the first half is sent.
        Kind::Stall | Kind::Cut => message(number, "never sent as a whole"),
        Kind::Tool(tool) => call(number, tool),
    };
    let events = [
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {
            "id": id, "object": "response", "status": "completed", "output": [item], "usage": usage(turn.usage)}}),
    ];
    event_stream(&turn.kind, &events)
}

/// A failure that Codex doesn't retry.
fn failed(id: &str) -> Response<Streamed> {
    let error = json!({"code": "insufficient_quota", "message": "scripted failure"});
    let events = [
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.failed", "response": {"id": id, "status": "failed", "error": error}}),
    ];
    event_stream(&Kind::Failed, &events)
}

fn message(number: usize, text: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(number: usize, tool: &Tool) -> Value {
    let id = format!("call_{number}");
    match tool {
        Tool::Write { path, content } => {
            let lines: String = content.lines().flat_map(|line| ["+", line, "\n"]).collect();
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
            json!({"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": patch})
        }
        Tool::Command(command) => {
            let arguments = json!({"cmd": command}).to_string();
            json!({"type": "function_call", "call_id": id, "name": "exec_command", "arguments": arguments})
        }
    }
}

fn usage(Usage { input, output }: Usage) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}})
}
