//! A model API that answers agent CLIs from a script: the streaming protocols of Anthropic's Messages
//! (Claude Code) and of `OpenAI`'s Responses (Codex).
//!
//! ```ignore
//! let api = ModelApi::start([Turn::write("hello.txt", "hello\n"), Turn::text("Done.")]);
//! // … run a CLI with `api.claude_code_environment()` or `api.codex_arguments()` …
//! assert!(api.requests()[0].user_texts().contains(&"say hello".to_owned()));
//! ```
//!
//! Guarantees: each request to the model takes the next turn, and the last turn answers all that follow; every
//! request is recorded before it is answered; the API ends when dropped, and with it every open connection.
//!
//! The listening socket belongs to the network namespace of the thread that starts it.

mod anthropic;
mod openai;
mod request;
mod server;

use std::sync::Arc;

pub(crate) use request::Request;

use super::hosts::monitor::Monitor;
use super::hosts::server::{Endpoint, Server};

/// What the model does with one request.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    kind: Kind,
    usage: Usage,
}

#[derive(Clone, Debug)]
enum Kind {
    Text(String),
    Tool(Tool),
    Status(u16),
    Failed,
    Stall,
    Cut,
}

/// A tool that both CLIs have, under whatever name.
#[derive(Clone, Debug)]
enum Tool {
    Write { path: String, content: String },
    Command(String),
}

/// Tokens that a turn claims to have used.
#[derive(Clone, Copy, Debug)]
struct Usage {
    input: u64,
    output: u64,
}

impl Turn {
    /// Answers with a text, which ends the run.
    pub(crate) fn text(text: &str) -> Self {
        Self::of(Kind::Text(text.to_owned()))
    }

    /// Has the CLI write a file. `path` is relative to the workspace or absolute; `content` ends with a newline,
    /// since Codex writes whole lines.
    pub(crate) fn write(path: &str, content: &str) -> Self {
        Self::of(Kind::Tool(Tool::Write { path: path.to_owned(), content: content.to_owned() }))
    }

    /// Has the CLI run a shell command.
    pub(crate) fn command(command: &str) -> Self {
        Self::of(Kind::Tool(Tool::Command(command.to_owned())))
    }

    /// Refuses the request with an HTTP status. Both CLIs retry 401, 500 and 529.
    pub(crate) fn status(status: u16) -> Self {
        Self::of(Kind::Status(status))
    }

    /// Fails the turn in a way that no CLI retries.
    pub(crate) fn failed() -> Self {
        Self::of(Kind::Failed)
    }

    /// Sends headers and the first half of an answer, then nothing until the CLI closes the connection.
    pub(crate) fn stall() -> Self {
        Self::of(Kind::Stall)
    }

    /// Sends headers and the first half of an answer, then closes the connection.
    pub(crate) fn cut() -> Self {
        Self::of(Kind::Cut)
    }

    /// The tokens that the turn reports, 12 and 20 otherwise.
    #[must_use]
    pub(crate) fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Usage { input, output };
        self
    }

    fn of(kind: Kind) -> Self {
        Self { kind, usage: Usage { input: 12, output: 20 } }
    }
}

/// A running API. See the module.
pub(crate) struct ModelApi {
    server: Server,
    state: Arc<State>,
}

/// What the connections share.
struct State {
    script: Vec<Turn>,
    progress: Monitor<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    requests: Vec<Request>,
    turns: usize,
}

impl ModelApi {
    /// Listens on a free port of 127.0.0.1, without TLS. The script must not be empty.
    pub(crate) fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        Self::start_on(Endpoint::loopback(), script)
    }

    /// The same somewhere else.
    pub(crate) fn start_on(endpoint: Endpoint, script: impl IntoIterator<Item = Turn>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        assert!(!script.is_empty(), "the script has no turn");
        let state = Arc::new(State { script, progress: Monitor::new(Progress::default()) });
        let server = Server::start(endpoint, {
            let state = Arc::clone(&state);
            move |request| server::answer(Arc::clone(&state), request)
        });
        Self { server, state }
    }

    /// The base URL without a path.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// What Claude Code's definition needs in addition to use this API; at most one retry, after half a second.
    pub(crate) fn claude_code_environment(&self) -> Vec<(String, String)> {
        vec![
            ("ANTHROPIC_BASE_URL".to_owned(), self.url()),
            ("CLAUDE_CODE_MAX_RETRIES".to_owned(), "1".to_owned()),
        ]
    }

    /// What Codex's definition needs in addition to use this API; no retries. The number of retries can't be set
    /// for the vendor's own provider, so this is one of its own.
    pub(crate) fn codex_arguments(&self) -> Vec<String> {
        let settings = format!(
            "--config=model_providers.scripted={{name=\"scripted\",base_url=\"{}/v1\",env_key=\"CODEX_API_KEY\",\
             wire_api=\"responses\",request_max_retries=0,stream_max_retries=0,supports_websockets=false}}",
            self.url()
        );
        vec!["--config=model_provider=scripted".to_owned(), settings]
    }

    /// As [`Self::codex_arguments`], with the vendor's own provider and its retries (7 s after a 401 or a cut
    /// stream, 25 s after a 500).
    pub(crate) fn codex_arguments_with_retries(&self) -> Vec<String> {
        vec![format!("--config=openai_base_url={}/v1", self.url())]
    }

    /// All requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.progress.read(|progress| progress.requests.clone())
    }

    /// The requests so far that asked the model for a turn.
    pub(crate) fn model_requests(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::asks_model).collect()
    }

    /// Blocks until `count` requests have asked the model for a turn.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let what = format!("the model to be asked {count} times");
        self.state.progress.block_until(&what, |progress| progress.turns >= count);
    }
}

impl State {
    /// Records a request; the turn that answers it and the turn's number, if it asks the model.
    fn record(&self, request: Request) -> Option<(usize, Turn)> {
        self.progress.update(|progress| {
            let turn = request.asks_model().then(|| {
                let number = progress.turns;
                progress.turns += 1;
                (number, self.script[number.min(self.script.len() - 1)].clone())
            });
            progress.requests.push(request);
            turn
        })
    }
}
