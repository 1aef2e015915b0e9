//! Hosts outside the cluster, on public-looking addresses, as pods see them: a git server, the model API, a slow registry.

use std::fs;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::LogParams;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Kubernetes, Namespace, OutsideAddress, pod};
use crate::support::agent_cli::AgentCli;
use crate::support::hosts::api_proxy::ApiProxy;
use crate::support::hosts::api_proxy::call::Match;
use crate::support::hosts::api_proxy::rules::{Fault, Rule};
use crate::support::hosts::git_server::GitServer;
use crate::support::hosts::server::Endpoint;
use crate::support::hosts::tls::Authority;
use crate::support::model_api::{ModelApi, Turn};

/// Where a pod finds the certificate of the cluster's authority.
const AUTHORITY: &str = "/etc/authority/ca.crt";

#[test]
fn a_pod_clones_from_a_git_server_outside() {
    let Some(cluster) = Cluster::ours("hosts outside") else { return };
    cluster.test(async |kubernetes| {
        let namespace = namespace_that_trusts(&kubernetes, "git-server").await;
        let address = kubernetes.outside_address();
        let repositories = tempfile::tempdir().unwrap();
        let server = GitServer::start(https(&kubernetes, &address), repositories.path());
        commit(&server.create("project.git"), "greeting", "hello\n");

        let clone =
            format!("git clone --quiet {} /tmp/clone && cat /tmp/clone/greeting", server.url("project.git"));
        let mut cloner = pod::restricted_value("cloner", kubernetes.image("caisson"), &["sh", "-c", &clone]);
        trust(&mut cloner, &[("GIT_SSL_CAINFO", AUTHORITY), ("HOME", "/tmp")]);
        namespace.create_object(&pod::from(cloner)).await;
        namespace.succeeds("cloner").await;

        assert_eq!(log(&namespace, "cloner").await, "hello\n");
        namespace.delete().await;
    });
}

#[test]
fn real_cli_claude_code_works_in_a_pod() {
    works_in_a_pod("claude-code", "NODE_EXTRA_CA_CERTS", |api| {
        AgentCli::shipped("claude-code", "test-key").environment(api.claude_code_environment())
    });
}

#[test]
fn real_cli_codex_works_in_a_pod() {
    works_in_a_pod("codex", "SSL_CERT_FILE", |api| {
        // The pod is the sandbox; Codex's own needs what a restricted pod hasn't.
        AgentCli::shipped("codex", "test-key")
            .without("--sandbox=workspace-write")
            .arguments(["--sandbox=danger-full-access".to_owned()])
            .arguments(api.codex_arguments())
    });
}

/// A CLI, told by a variable which authority to trust, writes a file as the model outside says and reports its last words.
fn works_in_a_pod(image: &str, trusting: &str, cli: impl FnOnce(&ModelApi) -> AgentCli + Send) {
    let Some(cluster) = Cluster::ours("hosts outside") else { return };
    cluster.test(async |kubernetes| {
        let address = kubernetes.outside_address();
        let script = [Turn::write("greeting", "hello\n"), Turn::text("Done.")];
        let api = ModelApi::start_on(https(&kubernetes, &address), script);
        let cli = cli(&api);

        let output = run_in_pod(&kubernetes, image, &cli, (trusting, AUTHORITY)).await;

        let (said, greeting) = output.trim_end().rsplit_once('\n').expect("more than one line");
        assert_eq!(greeting, "hello");
        assert_eq!(cli.read(said).text, "Done.");
    });
}

#[test]
fn a_pod_waits_for_a_slow_registry() {
    let Some(cluster) = Cluster::ours("a registry of its own") else { return };
    cluster.test(async |kubernetes| {
        let namespace = kubernetes.namespace("slow-registry").await;
        let address = kubernetes.outside_address();
        let (registry, repository) = kubernetes.image("probe").split_once('/').unwrap();
        let mut upstream = kube::Config::new(format!("https://{registry}").parse().unwrap());
        upstream.root_cert = kubernetes.config.root_cert.clone();
        let slow = ApiProxy::start(https(&kubernetes, &address), upstream);
        let manifests = Match::any().path(&format!("/v2/{}", repository.replace(':', "/manifests/")));
        let rule = slow.set(Rule::new(manifests.clone(), Fault::HoldReply));
        let image = format!("{}/{repository}", address.ip());

        let mut patient = pod::restricted_value("patient", &image, &["true"]);
        // The node may have it already, from a test that had the same address.
        patient["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
        namespace.create_object(&pod::from(patient)).await;
        slow.until(1, &manifests).await;
        let waiting = namespace.wait::<Pod>("patient", "wait for its image", |pod: Option<&Pod>| {
            pod::waits_because(pod).is_some_and(|(reason, _)| reason == "ContainerCreating")
        });
        waiting.await;
        slow.lift(rule);

        namespace.succeeds("patient").await;
        namespace.delete().await;
    });
}

/// Port 443 of an address, with a certificate by the cluster's authority.
fn https(kubernetes: &Kubernetes, address: &OutsideAddress) -> Endpoint {
    let (certificate, key) = kubernetes.authority();
    let identity = Authority::load(&certificate, &key).identity(&[&address.ip().to_string()]);
    Endpoint::tls((address.ip(), 443), identity)
}

/// A namespace whose pods can mount the certificate of the cluster's authority.
async fn namespace_that_trusts(kubernetes: &Kubernetes, name: &str) -> Namespace {
    let namespace = kubernetes.namespace(name).await;
    let certificate = fs::read_to_string(kubernetes.authority().0).unwrap();
    let object: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "authority"}, "data": {"ca.crt": certificate}}))
            .unwrap();
    namespace.create_object(&object).await;
    namespace
}

/// Mounts that certificate, and sets variables.
fn trust(pod: &mut Value, variables: &[(&str, &str)]) {
    let spec = &mut pod["spec"];
    spec["volumes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "authority", "configMap": {"name": "authority"}}));
    let container = &mut spec["containers"][0];
    let mounts = container["volumeMounts"].as_array_mut().unwrap();
    mounts.push(json!({"name": "authority", "mountPath": "/etc/authority"}));
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    container["env"] = variables.into();
}

/// Runs a CLI from its image in an empty workspace, and returns its output and then the content of the file `greeting`.
async fn run_in_pod(kubernetes: &Kubernetes, name: &str, cli: &AgentCli, authority: (&str, &str)) -> String {
    let namespace = namespace_that_trusts(kubernetes, name).await;
    // What the CLI says besides its output is in the log only if it fails.
    let script =
        r#"cd /workspace && { "$@" 2>/tmp/stderr || { cat /tmp/stderr; exit 1; }; } && cat greeting"#;
    let line = cli.command_line("write a greeting");
    let mut command = vec!["sh", "-c", script, "sh"];
    command.extend(line.iter().map(String::as_str));
    let mut agent = pod::restricted_value("agent", kubernetes.image(name), &command);
    let variables = cli.variables();
    let mut all: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.extend([("HOME", "/agent"), ("TMPDIR", "/tmp"), authority]);
    trust(&mut agent, &all);
    for (volume, path) in [("workspace", "/workspace"), ("home", "/agent")] {
        let spec = &mut agent["spec"];
        spec["volumes"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": volume, "emptyDir": {"sizeLimit": "512Mi"}}));
        let mounts = spec["containers"][0]["volumeMounts"].as_array_mut().unwrap();
        mounts.push(json!({"name": volume, "mountPath": path}));
    }
    namespace.create_object(&pod::from(agent)).await;
    namespace.succeeds("agent").await;
    let output = log(&namespace, "agent").await;
    namespace.delete().await;
    output
}

async fn log(namespace: &Namespace, pod: &str) -> String {
    namespace.api::<Pod>().logs(pod, &LogParams::default()).await.unwrap()
}

/// Puts a first commit with one file on the branch `main` of a bare repository.
fn commit(bare: &Path, file: &str, content: &str) {
    let work = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .current_dir(work.path())
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    fs::write(work.path().join(file), content).unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=first"]);
    git(&["push", "--quiet", bare.to_str().unwrap(), "main"]);
}
