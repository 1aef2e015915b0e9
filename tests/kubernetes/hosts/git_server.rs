//! Real git against the git server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap};

use super::{ADDRESS, endpoint};
use crate::support::hosts::git_server::cgi::Head;
use crate::support::hosts::git_server::{GitServer, Moved, Service, Then, Transfer, basic};
use crate::support::hosts::server::Endpoint;
use crate::support::hosts::tls::Authority;
use crate::support::netns::loopback_only;
use crate::wait;

/// More than the list of references takes, less than the pack.
const PART: usize = 50_000;

/// A person with a directory, who trusts one authority.
struct Person {
    directory: tempfile::TempDir,
}

impl Person {
    fn trusting(authority: &Authority) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("authority.pem"), authority.pem()).expect("an empty directory");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// git in a directory of theirs, without anything that asks or that comes from the machine.
    fn git(&self, directory: &str, arguments: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path(directory)).args(arguments).stdin(Stdio::null());
        git.env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0");
        git.env("GIT_SSL_CAINFO", self.path("authority.pem"))
            .env("HOME", self.directory.path())
            .env("LC_ALL", "C");
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Ada").env(format!("GIT_{role}_EMAIL"), "ada@example.org");
        }
        git
    }

    fn clone(&self, url: &str, name: &str) -> Output {
        self.git(".", &["clone", "--quiet", url, name]).output().expect("git starts")
    }

    /// A repository with one commit, whose pack is longer than [`PART`].
    fn repository(&self, name: &str) {
        fs::create_dir(self.path(name)).expect("a new name");
        succeeded(
            &self.git(name, &["init", "--quiet", "--initial-branch=main"]).output().expect("git starts"),
        );
        fs::write(self.path(name).join("noise"), noise(4 * PART)).expect("a new file");
        succeeded(&self.git(name, &["add", "noise"]).output().expect("git starts"));
        succeeded(&self.git(name, &["commit", "--quiet", "--message=noise"]).output().expect("git starts"));
    }

    fn push(&self, name: &str, url: &str) -> Output {
        self.git(name, &["push", "--quiet", url, "main"]).output().expect("git starts")
    }

    fn head(&self, name: &str) -> String {
        let output = self.git(name, &["rev-parse", "refs/heads/main"]).output().expect("git starts");
        succeeded(&output);
        String::from_utf8(output.stdout).expect("a commit's name")
    }
}

/// Bytes that don't compress: a linear congruential generator's.
fn noise(length: usize) -> Vec<u8> {
    let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    std::iter::successors(Some(1), next).map(|state| state.to_be_bytes()[0]).take(length).collect()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

/// What a git that failed said.
fn failed(output: &Output) -> String {
    assert!(!output.status.success(), "git succeeded");
    said(output)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server with `project.git`, which has one commit, and a person who has pushed it from `project`.
fn served(test: impl FnOnce(&Authority, &GitServer, &Person) + Send) {
    loopback_only(|| {
        let authority = Authority::fresh("authority");
        let repositories = tempfile::tempdir().expect("a temporary directory");
        let server = GitServer::start(endpoint(&authority), repositories.path());
        server.create("project.git");
        let person = Person::trusting(&authority);
        person.repository("project");
        succeeded(&person.push("project", &server.url("project.git")));
        test(&authority, &server, &person);
    });
}

#[test]
fn what_was_pushed_is_cloned() {
    served(|_, server, person| {
        succeeded(&person.clone(&server.url("project.git"), "copy"));
        assert_eq!(person.head("copy"), person.head("project"));
        let asked: Vec<_> =
            server.requests().into_iter().map(|request| (request.method, request.path)).collect();
        for (method, path) in [
            ("GET", "/project.git/info/refs?service=git-receive-pack"),
            ("POST", "/project.git/git-receive-pack"),
            ("GET", "/project.git/info/refs?service=git-upload-pack"),
            ("POST", "/project.git/git-upload-pack"),
        ] {
            assert!(asked.contains(&(method.to_owned(), path.to_owned())), "{asked:?}");
        }
        assert!(server.requests().iter().all(|request| request.authorization.is_none()));
        // The protocol's second version: one for the references, one for the pack.
        assert_eq!(asked.iter().filter(|(_, path)| path == "/project.git/git-upload-pack").count(), 2);

        assert!(failed(&person.clone(&server.url("another.git"), "another")).contains("not found"));
    });
}

#[test]
fn a_name_is_as_good_as_an_address_and_another_authority_is_not() {
    served(|_, server, person| {
        let url = server.url("project.git").replace("127.0.0.2", "host.example.org");
        let port: String = url.chars().filter(char::is_ascii_digit).collect();
        let resolve = format!("http.curloptResolve=host.example.org:{port}:127.0.0.2");
        succeeded(&person.git(".", &["-c", &resolve, "clone", &url, "named"]).output().expect("git starts"));

        let stranger = Person::trusting(&Authority::fresh("another"));
        assert!(failed(&stranger.clone(&server.url("project.git"), "copy")).contains("certificate"));
    });
}

#[test]
fn a_password_is_asked_for_and_checked() {
    served(|_, server, person| {
        server.behave(|now| now.authorization = Some(basic("ada", "right")));
        let url = |user: &str| server.url("project.git").replace("https://", &format!("https://{user}@"));
        let before = server.requests().len();
        assert!(
            failed(&person.clone(&server.url("project.git"), "none")).contains("could not read Username")
        );
        assert!(failed(&person.clone(&url("ada:wrong"), "wrong")).contains("Authentication failed"));
        succeeded(&person.clone(&url("ada:right"), "right"));
        succeeded(&person.push("right", &url("ada:right")));

        let sent: Vec<_> = server.requests().drain(before..).map(|request| request.authorization).collect();
        // git sends a password only when asked for one.
        assert_eq!(sent[..4], [None, None, Some(basic("ada", "wrong")), None]);
        assert_eq!(sent.last(), Some(&Some(basic("ada", "right"))));
        assert!(!format!("{:?}", server.requests()).contains(&basic("ada", "right")));
    });
}

#[test]
fn a_repository_moves_to_another_path_host_or_scheme() {
    served(|authority, server, person| {
        let repositories = server.path("");
        let other = GitServer::start(
            Endpoint::tls(([127, 0, 0, 3], 0), authority.identity(&["127.0.0.3"])),
            &repositories,
        );
        let open = GitServer::start(Endpoint::plain((ADDRESS, 0)), &repositories);
        for (name, to) in [
            ("path", "/project.git".to_owned()),
            ("host", other.url("project.git")),
            ("scheme", open.url("project.git")),
        ] {
            server.behave(|now| now.moved = Some(Moved { from: "/old.git".to_owned(), to }));
            succeeded(&person.clone(&server.url("old.git"), name));
            assert_eq!(person.head(name), person.head("project"), "{name}");
        }
        assert!(!other.requests().is_empty() && !open.requests().is_empty());
        let prefix = Moved { from: "/old".to_owned(), to: "/project".to_owned() };
        server.behave(|now| now.moved = Some(prefix));
        assert!(failed(&person.clone(&server.url("old.git"), "prefix")).contains("not found"));
    });
}

#[test]
fn a_transfer_that_is_cut_fails_and_leaves_the_rest_alone() {
    served(|_, server, person| {
        server.behave(|now| {
            now.transfer = Some(Transfer { service: Service::Fetch, after: PART, then: Then::Cut });
        });
        let how = failed(&person.clone(&server.url("project.git"), "copy"));
        assert!(how.contains("RPC failed"), "the connection has ended, not the answer: {how}");
        let cut: Vec<_> = server.requests().into_iter().filter(|request| request.interrupted).collect();
        assert_eq!(
            cut.iter().map(|request| &request.path[..]).collect::<Vec<_>>(),
            ["/project.git/git-upload-pack"]
        );

        server.behave(|now| now.transfer = None);
        succeeded(&person.clone(&server.url("project.git"), "copy"));
    });
}

#[test]
fn a_push_is_done_though_its_answer_is_lost() {
    served(|_, server, person| {
        server.create("empty.git");
        server.behave(|now| {
            now.transfer = Some(Transfer { service: Service::Push, after: 0, then: Then::Cut });
        });
        failed(&person.push("project", &server.url("empty.git")));
        assert_eq!(
            fs::read_to_string(server.path("empty.git").join("refs/heads/main")).expect("it was pushed"),
            person.head("project")
        );
        succeeded(&person.clone(&server.url("empty.git"), "what-was-pushed"));
    });
}

#[test]
fn a_transfer_that_pauses_goes_on_when_it_may() {
    served(|_, server, person| {
        server.behave(|now| {
            now.transfer = Some(Transfer { service: Service::Fetch, after: PART, then: Then::Pause });
        });
        let mut clone = person
            .git(".", &["clone", "--quiet", &server.url("project.git"), "copy"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("git starts");
        server.block_until("a pause", |requests| requests.iter().any(|request| request.interrupted));
        assert!(clone.try_wait().expect("it is a child").is_none());
        server.behave(|now| now.transfer = None);
        succeeded(&clone.wait_with_output().expect("its output can be read"));
        assert_eq!(person.head("copy"), person.head("project"));
    });
}

#[test]
fn a_server_takes_its_transfers_along() {
    loopback_only(|| {
        let authority = Authority::fresh("authority");
        let repositories = tempfile::tempdir().expect("a temporary directory");
        let server = GitServer::start(endpoint(&authority), repositories.path());
        let hook = server.create("project.git").join("hooks/pre-receive");
        fs::write(&hook, "#!/bin/sh\necho waiting >&2\nexec tail -f /dev/null\n").expect("a new file");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let person = Person::trusting(&authority);
        person.repository("project");
        let mut push = person.git("project", &["push", &server.url("project.git"), "main"]);
        let mut push = push.stderr(Stdio::piped()).spawn().expect("git starts");
        let mut lines = BufReader::new(push.stderr.take().expect("it is piped")).lines();
        assert!(lines.any(|line| line.expect("text").contains("waiting")), "the hook runs");
        assert_ne!(serving(repositories.path()), Vec::<String>::new());
        drop(server);
        assert!(!push.wait().expect("it is a child").success());
        let left = || serving(repositories.path());
        wait::until("the hook to end", || format!("{:?}", left()), || left().is_empty());
    });
}

/// Processes that serve repositories of a directory. One that has ended and that nobody has asked about has no
/// environment any more.
fn serving(repositories: &Path) -> Vec<String> {
    let of_it = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let root = format!("GIT_PROJECT_ROOT={}", repositories.display()).into_bytes();
        environment.split(|byte| *byte == 0).any(|variable| variable == root)
    };
    let processes = fs::read_dir("/proc").expect("a list of processes");
    let found = processes.map(|entry| entry.expect("an entry").path()).filter(of_it);
    found.map(|process| process.display().to_string()).collect()
}

#[test]
fn a_push_that_the_server_refuses_says_why() {
    served(|_, server, person| {
        server.create("closed.git");
        server.refuse_pushes("closed.git", "closed for today");
        let why = failed(&person.push("project", &server.url("closed.git")));
        assert!(
            why.contains("remote: closed for today") && why.contains("pre-receive hook declined"),
            "{why}"
        );
        assert!(!server.path("closed.git").join("refs/heads/main").exists());
    });
}

#[test]
fn a_cgi_answer_starts_with_headers() {
    let head = |status, length| {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, "text/plain".parse().expect("legal"))]);
        Some(Head { status, headers, length })
    };
    for (output, expected) in [
        ("", None),
        ("Content-Type: text/plain\r\n", None),
        ("Content-Type: text/plain\r\n\r", None),
        ("Content-Type: text/plain\r\n\r\n", head(StatusCode::OK, 28)),
        ("Content-Type: text/plain\r\n\r\na\n\nb", head(StatusCode::OK, 28)),
        ("Content-Type: text/plain\n\na\r\n\r\nb", head(StatusCode::OK, 26)),
        ("Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\n", head(StatusCode::NOT_FOUND, 51)),
        ("content-type:text/plain\nstatus: 403\n\n", head(StatusCode::FORBIDDEN, 37)),
    ] {
        assert_eq!(Head::parse(output.as_bytes()), expected, "{output:?}");
    }
}
