//! A git server: smart HTTP in front of git's own `git http-backend`, for clones, fetches and pushes.
//!
//! ```ignore
//! let server = GitServer::start(Endpoint::tls(address, authority.identity(&["git.example.org"])), directory);
//! server.create("project.git");
//! // … git clone https://git.example.org/project.git …
//! assert_eq!(server.requests()[0].authorization, None);
//! ```

pub(crate) mod cgi;

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode};

use super::monitor::Monitor;
use super::server::{Endpoint, HangUp, Sending, Server, Streamed, cut};

/// A running server of the bare repositories in one directory.
pub(crate) struct GitServer {
    server: Server,
    state: Arc<State>,
}

struct State {
    repositories: PathBuf,
    behaviour: Monitor<Behaviour>,
    requests: Monitor<Vec<Request>>,
}

/// How a server differs from one that serves all of everything to everybody.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// The value of the `Authorization` header without which everything is refused; [`basic`] makes it.
    pub(crate) authorization: Option<String>,
    /// Where a repository is now.
    pub(crate) moved: Option<Moved>,
    /// What happens to the packs that it sends.
    pub(crate) transfer: Option<Transfer>,
}

/// A permanent redirect.
#[derive(Clone)]
pub(crate) struct Moved {
    /// The path of a repository, with its slash.
    pub(crate) from: String,
    /// Its new path, or a URL.
    pub(crate) to: String,
}

/// What happens to the answers of one service. The short ones, such as the list of references, also count, each alone:
/// what is shorter than `after` is sent whole.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    /// Whose answers.
    pub(crate) service: Service,
    /// How many bytes of an answer are sent as usual.
    pub(crate) after: usize,
    /// What comes then.
    pub(crate) then: Then,
}

/// The two services of git's smart protocol.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Service {
    /// `git-upload-pack`.
    Fetch,
    /// `git-receive-pack`. Its answer begins when the push has been done or refused.
    Push,
}

/// What interrupts a transfer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    /// The connection ends.
    Cut,
    /// Nothing is sent until [`GitServer::behave`] says otherwise.
    Pause,
}

/// One recorded request. It may hold a password, so [`fmt::Debug`] only shows whether there was one.
#[derive(Clone)]
pub(crate) struct Request {
    /// The method, in capitals.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// The header `Authorization` as sent.
    pub(crate) authorization: Option<String>,
    /// Whether this server interrupted its answer.
    pub(crate) interrupted: bool,
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, authorization, interrupted } = self;
        let authorization = if authorization.is_some() { "with" } else { "without" };
        let interrupted = if *interrupted { ", interrupted" } else { "" };
        write!(out, "{method} {path} ({authorization} authorization{interrupted})")
    }
}

/// The value of `Authorization` for a user with a password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

impl GitServer {
    /// Serves the bare repositories in `repositories`, those made later included.
    pub(crate) fn start(endpoint: Endpoint, repositories: &Path) -> Self {
        let state = Arc::new(State {
            repositories: repositories.to_owned(),
            behaviour: Monitor::new(Behaviour::default()),
            requests: Monitor::new(Vec::new()),
        });
        let server = Server::start(endpoint, {
            let state = Arc::clone(&state);
            move |request| answer(Arc::clone(&state), request)
        });
        Self { server, state }
    }

    /// The URL of a repository.
    pub(crate) fn url(&self, repository: &str) -> String {
        format!("{}/{repository}", self.server.url())
    }

    /// Where a repository is.
    pub(crate) fn path(&self, repository: &str) -> PathBuf {
        self.state.repositories.join(repository)
    }

    /// Makes an empty repository, whose branch is `main`.
    pub(crate) fn create(&self, repository: &str) -> PathBuf {
        let path = self.path(repository);
        let status = Command::new("git")
            .args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .expect("git starts");
        assert!(status.success(), "git init failed");
        path
    }

    /// Has a repository refuse every push and say why, in a text without quotes.
    pub(crate) fn refuse_pushes(&self, repository: &str, why: &str) {
        let hook = self.path(repository).join("hooks/pre-receive");
        fs::create_dir_all(hook.parent().expect("a hook is in a directory")).expect("a directory is made");
        fs::write(&hook, format!("#!/bin/sh\necho '{why}' >&2\nexit 1\n")).expect("a hook can be written");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755))
            .expect("its owner may make it executable");
    }

    /// Changes how it behaves from now on.
    pub(crate) fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        self.state.behaviour.update(change);
    }

    /// All requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.read(Clone::clone)
    }

    /// Returns once `condition` holds for the requests so far.
    pub(crate) async fn until(&self, what: &str, condition: impl FnMut(&Vec<Request>) -> bool) {
        self.state.requests.until(what, condition).await;
    }

    /// The same for a thread that runs nothing asynchronous.
    pub(crate) fn block_until(&self, what: &str, condition: impl FnMut(&Vec<Request>) -> bool) {
        self.state.requests.block_until(what, condition);
    }
}

async fn answer(state: Arc<State>, request: hyper::Request<Incoming>) -> Result<Response<Streamed>, HangUp> {
    let recorded = Request::of(&request);
    let authorization = recorded.authorization.clone();
    let number = state.requests.update(|requests| {
        requests.push(recorded);
        requests.len() - 1
    });
    let behaviour = state.behaviour.read(Clone::clone);
    if behaviour.authorization.is_some() && behaviour.authorization != authorization {
        return Ok(said(StatusCode::UNAUTHORIZED, WWW_AUTHENTICATE, "Basic realm=\"git\""));
    }
    if let Some(target) = behaviour.moved.and_then(|moved| moved.target(request.uri())) {
        return Ok(said(StatusCode::MOVED_PERMANENTLY, LOCATION, &target));
    }
    let service = Service::of(&request);
    let output = cgi::answer(&state.repositories, request).await.map_err(|_| HangUp)?;
    let (sending, body) = Streamed::channel();
    let mut response = Response::new(body);
    *response.status_mut() = output.head.status;
    response.headers_mut().clone_from(&output.head.headers);
    tokio::spawn(async move {
        tokio::select! {
            () = transfer(&state, number, service, output, &sending) => {}
            () = sending.closed() => {}
        }
    });
    Ok(response)
}

async fn transfer(
    state: &State,
    number: usize,
    service: Option<Service>,
    mut output: cgi::Output,
    sending: &Sending,
) {
    let mut sent = 0;
    loop {
        let Ok(chunk) = output.chunk().await else { return cut(sending).await };
        let Some(mut chunk) = chunk else { return };
        let interruption = || state.behaviour.read(|behaviour| behaviour.interruption(service));
        while let Some(Transfer { after, then, .. }) = interruption()
            && sent + chunk.len() > after
        {
            let before = chunk.split_to(after.saturating_sub(sent));
            sent += before.len();
            if !before.is_empty() && sending.send(Ok(before)).await.is_err() {
                return;
            }
            state.requests.update(|requests| requests[number].interrupted = true);
            match then {
                Then::Cut => return cut(sending).await,
                Then::Pause => state.behaviour.reached(|now| !now.pauses(service)).await,
            }
        }
        sent += chunk.len();
        if sending.send(Ok(chunk)).await.is_err() {
            return;
        }
    }
}

impl Behaviour {
    fn interruption(&self, service: Option<Service>) -> Option<Transfer> {
        self.transfer.filter(|transfer| service == Some(transfer.service))
    }

    fn pauses(&self, service: Option<Service>) -> bool {
        self.interruption(service).is_some_and(|transfer| transfer.then == Then::Pause)
    }
}

impl Moved {
    /// Where a URI of the repository is now.
    fn target(&self, uri: &hyper::Uri) -> Option<String> {
        let rest = uri.path_and_query()?.as_str().strip_prefix(&self.from)?;
        rest.starts_with('/').then(|| format!("{}{rest}", self.to))
    }
}

impl Service {
    /// Of a request that transfers something.
    fn of(request: &hyper::Request<Incoming>) -> Option<Self> {
        if request.method() != Method::POST {
            None
        } else if request.uri().path().ends_with("/git-upload-pack") {
            Some(Self::Fetch)
        } else if request.uri().path().ends_with("/git-receive-pack") {
            Some(Self::Push)
        } else {
            None
        }
    }
}

impl Request {
    fn of(request: &hyper::Request<Incoming>) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            method: request.method().to_string(),
            path: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            authorization: request.headers().get(AUTHORIZATION).map(text),
            interrupted: false,
        }
    }
}

/// A response that says what it says in one header.
fn said(status: StatusCode, header: hyper::header::HeaderName, value: &str) -> Response<Streamed> {
    let mut response = Response::new(Streamed::complete(Bytes::new()));
    *response.status_mut() = status;
    response.headers_mut().insert(header, value.parse().expect("a legal value"));
    response
}
