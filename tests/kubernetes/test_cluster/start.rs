//! How the tests come to their cluster: what `./test` needs, and the cluster of `KUBECONFIG`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::Cluster;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/test");

/// With a program in the way that says something else than the real one.
#[test]
fn what_is_missing_is_said_in_one_line_before_anything_is_built() {
    for (program, script, line) in [
        (
            "go",
            "echo go1.25.0",
            "./test: go1.25.0 is too old to build the test cluster, Go 1.26 or newer is needed",
        ),
        ("go", "exit 1", "./test: no Go answers to `go env GOVERSION`, Go 1.26 or newer is needed"),
        ("unshare", "exit 1", "./test: namespaces are needed, and this machine doesn't let root make them"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let fake = directory.path().join(program);
        fs::write(&fake, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();

        for command in [&[][..], &["e2e", "kubernetes"], &["cluster"]] {
            let mut test = Command::new(SCRIPT);
            test.args(command).env("PATH", search_path(directory.path()));
            ends_at_once(test, line);
        }
    }
}

#[test]
fn without_root_nothing_is_built() {
    // In a user namespace that maps nobody, one isn't root, and may still read what root may.
    let mut test = Command::new("unshare");
    test.args(["--user", SCRIPT]);
    ends_at_once(test, "./test: root is needed: the tests run a real Kubernetes");
}

/// `./test` says one line, before it has printed that it does anything.
fn ends_at_once(mut test: Command, line: &str) {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    test.env("CARGO_TARGET_DIR", &target).env_remove("KUBECONFIG").stdin(Stdio::null());

    let output = test.output().unwrap();

    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with(line) && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "it began");
    assert_eq!(output.status.code(), Some(1));
    assert!(!target.exists(), "it built");
}

/// From inside our own cluster's network, as if it were anybody's.
#[test]
fn the_tests_run_on_the_cluster_of_kubeconfig_and_say_what_they_skip() {
    let Some(cluster) = Cluster::ours("a cluster that plays somebody's") else { return };
    let images = tempfile::NamedTempFile::new().unwrap();
    let ours = fs::read_to_string(cluster.state().join("images")).unwrap();
    fs::write(images.path(), ours.replace(" caisson/", " 198.51.100.2/caisson/")).unwrap();

    let output = Command::new("nsenter")
        .args(["--target", &cluster.process_1().unwrap().to_string(), "--net"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact", "test_cluster::pods::a_pod_runs_under_pod_security_restricted"])
        .arg("test_cluster::life::two_clusters_run_side_by_side_and_leave_nothing")
        .env_remove("CAISSON_TEST_CLUSTER")
        .env("KUBECONFIG", cluster.state().join("admin.kubeconfig"))
        .env("CAISSON_TEST_IMAGES", images.path())
        .output()
        .unwrap();

    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("skipped on the cluster of KUBECONFIG: it needs clusters of its own"), "{text}");
    assert!(text.contains("2 passed"), "{text}");
}

#[expect(clippy::disallowed_methods, reason = "where programs are is the machine's to say")]
fn search_path(first: &Path) -> std::ffi::OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(first.to_owned()).chain(std::env::split_paths(&own))).unwrap()
}
