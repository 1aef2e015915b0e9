//! Fetching, over git's file protocol: the same code as over https but for the address.

use super::fixture::{Sandbox, git};
use crate::supervisor::workspace::fetch::Remote;
use crate::supervisor::workspace::prepare::copy;
use crate::supervisor::workspace::{Repository, Source, prepare};

#[tokio::test]
async fn a_fetched_workspace_has_everything_of_its_own() {
    let origin = Sandbox::new();
    let source = origin.repository(&[("a", "one\n")]);
    let first = source.git(&["rev-parse", "HEAD"]);
    source.write("a", "two\n");
    let second = source.commit();
    source.git(&["update-ref", "refs/heads/-x", &first]);
    source.git(&["tag", "--annotate", "--message=tag", "v1", &first]);
    // A longer name with the same end must not be taken for it.
    source.git(&["update-ref", "refs/heads/refs/heads/topic", &first]);
    let url = format!("file://{}", source.root.display());
    for (revision, depth, expected, head, commits) in [
        (None, None, &second, "main", "2"),
        (None, Some(1), &second, "main", "1"),
        (Some("main"), None, &second, "main", "2"),
        (Some("-x"), None, &first, "-x", "1"),
        (Some("v1"), Some(1), &first, "(detached)", "1"),
        (Some(first.as_str()), Some(1), &first, "(detached)", "1"),
    ] {
        let sandbox = Sandbox::new();
        let layout = sandbox.layout();
        std::fs::create_dir_all(&layout.workspace).unwrap();
        let (base, _) = copy(&git(), &Remote::file(&url), revision, depth, &layout).await.unwrap();
        assert_eq!(base.to_string(), *expected, "{revision:?}");
        let tree = super::fixture::Tree { root: layout.workspace.clone() };
        let status = tree.git(&["status", "--branch", "--porcelain=v2"]);
        assert_eq!(status, format!("# branch.oid {expected}\n# branch.head {head}"), "{revision:?}");
        assert_eq!(tree.git(&["rev-list", "--count", "HEAD"]), commits, "{revision:?}");
        std::fs::remove_dir_all(&layout.private).unwrap();
        tree.git(&["fsck", "--strict"]);
        tree.commit();
    }
    for revision in ["absent", "topic", "main:refs/heads/x", "+main", "--upload-pack=touch x", ""] {
        let sandbox = Sandbox::new();
        let got = copy(&git(), &Remote::file(&url), Some(revision), None, &sandbox.layout()).await;
        assert_eq!(got.unwrap_err().system_code(), "REVISION_NOT_FOUND", "{revision}");
    }
    let gone = Remote::file("file:///nonexistent");
    let got = copy(&git(), &gone, None, None, &Sandbox::new().layout()).await;
    assert_eq!(got.unwrap_err().system_code(), "CLONE_FAILED");
}

#[tokio::test]
async fn only_plain_https_addresses_are_taken() {
    for address in [
        "http://host/a",
        "ext::sh -c touch% x",
        "file:///x",
        "https://",
        "https://u:p@host/a",
        "https://h/ x",
        "-x",
    ] {
        let source = Source {
            repository: Repository::Https(address.to_owned()),
            revision: None,
            depth: None,
            subdirectory: None,
        };
        let error = prepare(&git(), Some(&source), &Sandbox::new().layout()).await.unwrap_err();
        assert_eq!(error.system_code(), "ADDRESS_REFUSED", "{address}");
    }
    assert!(Remote::https("https://git.example:8443/team/a.git").is_ok());
}
