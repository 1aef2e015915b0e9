//! What a CLI sent.

use std::fmt;

use serde_json::Value;

/// One recorded request. It holds the key and the prompt, so [`fmt::Debug`] shows neither headers nor body.
#[derive(Clone)]
pub(crate) struct Request {
    /// The method, in capitals.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// Names in lower case, in the order sent.
    pub(crate) headers: Vec<(String, String)>,
    /// The bytes as sent.
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The first header of a name given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body, null if it isn't JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Every text of the user's messages, in order. The prompt is one of them; a CLI adds others.
    pub(crate) fn user_texts(&self) -> Vec<String> {
        let body = self.json();
        let messages = body["messages"].as_array().or(body["input"].as_array()).cloned().unwrap_or_default();
        messages.iter().filter(|message| message["role"] == "user").flat_map(texts).collect()
    }

    /// Whether the request takes a turn of the script. Claude Code also asks for titles and the like, without tools.
    pub(super) fn asks_model(&self) -> bool {
        self.method == "POST"
            && match self.path_only() {
                "/v1/messages" => self.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty()),
                "/v1/responses" => true,
                _ => false,
            }
    }

    pub(super) fn path_only(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

fn texts(message: &Value) -> Vec<String> {
    match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} ({} bytes)", self.method, self.path_only(), self.body.len())
    }
}
