//! A model API on loopback that answers agent CLIs from a script: the streaming protocols of Anthropic's Messages
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
//! The listening socket belongs to the network namespace of the thread that calls [`ModelApi::start`].

mod anthropic;
mod openai;
mod request;
mod server;

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

pub(crate) use request::Request;

/// How long [`ModelApi::wait_for_requests`] waits before it gives up on the CLI.
const PATIENCE: Duration = Duration::from_mins(1);

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
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the connections share.
struct State {
    script: Vec<Turn>,
    progress: Mutex<Progress>,
    arrived: Condvar,
}

#[derive(Default)]
struct Progress {
    requests: Vec<Request>,
    turns: usize,
}

impl ModelApi {
    /// Listens on a free port of 127.0.0.1. The script must not be empty.
    pub(crate) fn start(script: impl IntoIterator<Item = Turn>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        assert!(!script.is_empty(), "the script has no turn");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is up");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State { script, progress: Mutex::default(), arrived: Condvar::new() });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn({
            let state = Arc::clone(&state);
            move || server::run(listener, state, stopped)
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
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
        self.state.progress().requests.clone()
    }

    /// The requests so far that asked the model for a turn.
    pub(crate) fn model_requests(&self) -> Vec<Request> {
        self.requests().into_iter().filter(Request::asks_model).collect()
    }

    /// Blocks until `count` requests have asked the model for a turn.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let waited = self
            .state
            .arrived
            .wait_timeout_while(self.state.progress(), PATIENCE, |progress| progress.turns < count)
            .map_or_else(|poisoned| poisoned.into_inner().1, |(_, waited)| waited);
        assert!(!waited.timed_out(), "the model was not asked {count} times within {PATIENCE:?}");
    }
}

impl Drop for ModelApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "the model API panicked");
        }
    }
}

impl State {
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request; the turn that answers it and the turn's number, if it asks the model.
    fn record(&self, request: Request) -> Option<(usize, Turn)> {
        let mut progress = self.progress();
        let turn = request.asks_model().then(|| {
            let number = progress.turns;
            progress.turns += 1;
            (number, self.script[number.min(self.script.len() - 1)].clone())
        });
        progress.requests.push(request);
        self.arrived.notify_all();
        turn
    }
}
