//! `git http-backend`, git's own CGI program: one process group a request, streamed both ways.

use std::io;
use std::path::Path;
use std::process::Stdio;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// What git may ask of a server's environment besides what a CGI request says.
const CONFIGURATION: &[(&str, &str)] = &[
    // Without a user it would be off.
    ("http.receivepack", "true"),
    // The repositories are the test's, whoever runs it.
    ("safe.directory", "*"),
    // It would outlive the request.
    ("receive.autogc", "false"),
];

/// The start of a CGI response.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    /// 200 if the program names none.
    pub(crate) status: StatusCode,
    /// All of its headers but `Status`.
    pub(crate) headers: HeaderMap,
    /// How many bytes it takes, with the empty line that ends it.
    pub(crate) length: usize,
}

impl Head {
    /// `None` as long as it isn't complete.
    ///
    /// # Panics
    /// If a line isn't a header.
    pub(crate) fn parse(output: &[u8]) -> Option<Self> {
        let (end, separator) = [&b"\r\n\r\n"[..], b"\n\n"]
            .into_iter()
            .filter_map(|separator| Some((find(output, separator)?, separator)))
            .min_by_key(|(end, _)| *end)?;
        let mut head =
            Self { status: StatusCode::OK, headers: HeaderMap::new(), length: end + separator.len() };
        for line in std::str::from_utf8(&output[..end]).expect("headers are text").lines() {
            let (name, value) = line.split_once(':').expect("a CGI header has a colon");
            let value = value.trim();
            if name.eq_ignore_ascii_case("status") {
                let code = value.split(' ').next().and_then(|code| code.parse().ok());
                head.status = code.expect("a CGI status starts with a number");
            } else {
                let name: HeaderName = name.parse().expect("a CGI header has a name");
                head.headers.append(name, value.parse().expect("a CGI header has a legal value"));
            }
        }
        Some(head)
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// A response whose body is still being made. The drop ends the processes that make it.
pub(super) struct Output {
    pub(super) head: Head,
    pending: Bytes,
    stdout: ChildStdout,
    group: Group,
}

impl Output {
    /// The next bytes of the body, `None` at its end.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        if !self.pending.is_empty() {
            return Ok(Some(std::mem::take(&mut self.pending)));
        }
        let mut buffer = Vec::with_capacity(16 << 10);
        let length = self.stdout.read_buf(&mut buffer).await?;
        if length == 0 {
            self.group.leader.wait().await?;
            return Ok(None);
        }
        Ok(Some(buffer.into()))
    }
}

/// A program with whatever it started.
struct Group {
    leader: Child,
    id: Pid,
}

impl Drop for Group {
    fn drop(&mut self) {
        // Until it is waited for, the group's number can't be another's.
        if matches!(self.leader.try_wait(), Ok(None)) {
            let _ = killpg(self.id, Signal::SIGKILL);
        }
    }
}

/// Starts the program with a request and returns once it has said how it answers.
///
/// # Errors
/// If it ended before it said that.
pub(super) async fn answer(repositories: &Path, request: Request<Incoming>) -> io::Result<Output> {
    let (parts, body) = request.into_parts();
    let mut command = Command::new("git");
    command.arg("http-backend").process_group(0).kill_on_drop(true).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    #[expect(clippy::disallowed_methods, reason = "git is where the test's own PATH says")]
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("GIT_PROJECT_ROOT", repositories).env("GIT_HTTP_EXPORT_ALL", "1");
    command.envs([
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("HOME", "/nonexistent"),
    ]);
    command.env("GIT_CONFIG_COUNT", CONFIGURATION.len().to_string());
    for (number, (key, value)) in CONFIGURATION.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command.env("REQUEST_METHOD", parts.method.as_str()).env("REMOTE_ADDR", "127.0.0.1");
    command.env("PATH_INFO", parts.uri.path()).env("QUERY_STRING", parts.uri.query().unwrap_or_default());
    for (variable, header) in [
        ("CONTENT_TYPE", CONTENT_TYPE),
        ("CONTENT_LENGTH", CONTENT_LENGTH),
        ("HTTP_CONTENT_ENCODING", CONTENT_ENCODING),
        ("GIT_PROTOCOL", HeaderName::from_static("git-protocol")),
    ] {
        let value = parts.headers.get(header).map(HeaderValue::to_str);
        command.envs(value.and_then(Result::ok).map(|value| (variable, value)));
    }
    let mut child = command.spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).expect("a new child has an id");
    let stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    let group = Group { leader: child, id: Pid::from_raw(id) };
    tokio::spawn(feed(stdin, body));
    let mut output = Vec::new();
    let head = loop {
        if stdout.read_buf(&mut output).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(head) = Head::parse(&output) {
            break head;
        }
    };
    let pending = Bytes::from(output.split_off(head.length));
    Ok(Output { head, pending, stdout, group })
}

/// Until either side ends: the program may not want all of it, and the client may leave.
async fn feed(mut stdin: ChildStdin, mut body: Incoming) {
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data()
            && stdin.write_all(&data).await.is_err()
        {
            return;
        }
    }
}
