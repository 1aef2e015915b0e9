//! The custom resources on a real API server: what it takes, prunes and refuses, whoever writes.

use caisson::api::crd::crds;
use caisson::api::{AgentCliDefinition, AgentCliTask};
use hyper::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Client, Error, ResourceExt as _};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Namespace};

#[test]
fn the_api_server_holds_the_rules_of_a_task() {
    Cluster::any().test(async |kubernetes| {
        install(&kubernetes.client).await;
        let namespace = kubernetes.namespace("task-rules").await;
        let tasks = Tasks::of(&namespace);

        let misspelt =
            json!({"definition": {"name": "demo"}, "prompt": "p", "dryRn": true, "limits": {"timeot": "1m"}});
        let refusal = tasks.refused("misspelt", &misspelt).await;
        assert!(refusal.contains(r#"unknown field "spec.dryRn""#), "{refusal}");
        assert!(refusal.contains(r#"unknown field "spec.limits.timeot""#), "{refusal}");
        // Who asks for no validation loses the fields that nobody knows, and no other.
        let pruned =
            serde_json::to_value(tasks.create("misspelt", &misspelt, "Ignore").await.unwrap().spec).unwrap();
        assert!(pruned.get("dryRn").is_none() && pruned["prompt"] == "p", "{pruned}");

        for (name, spec, why) in [
            (
                "two",
                json!({"prompt": "p", "promptFrom": {"configMapKeyRef": {"name": "n", "key": "k"}}}),
                "exactly one of prompt and promptFrom",
            ),
            ("none", json!({}), "exactly one of prompt and promptFrom"),
            ("long", json!({"prompt": "p", "limits": {"timeout": "25h"}}), "spec.limits.timeout"),
            (
                "large",
                json!({"prompt": "p", "limits": {"maxOutputBytes": "9Mi"}}),
                "spec.limits.maxOutputBytes",
            ),
            ("few", json!({"prompt": "p", "limits": {"processes": 0}}), "spec.limits.processes"),
        ] {
            let mut spec = spec;
            spec["definition"] = json!({"name": "demo"});
            let refusal = tasks.refused(name, &spec).await;
            assert!(refusal.contains(why), "{name}: {refusal}");
        }

        let good = json!({"definition": {"name": "demo"}, "prompt": "p"});
        tasks.create("good", &good, "Strict").await.unwrap();
        let other = Patch::Merge(json!({"spec": {"prompt": "q"}}));
        let refusal =
            tasks.tasks.patch("good", &PatchParams::default(), &other).await.unwrap_err().to_string();
        assert!(refusal.contains("spec is immutable: create a new task"), "{refusal}");
        namespace.delete().await;
    });
}

#[test]
fn what_a_status_says_for_good_stays() {
    Cluster::any().test(async |kubernetes| {
        install(&kubernetes.client).await;
        let namespace = kubernetes.namespace("status-rules").await;
        let tasks = Tasks::of(&namespace);
        tasks.create("task", &json!({"definition": {"name": "demo"}, "prompt": "p"}), "Strict").await.unwrap();
        let launch = |attempt: u32, instance: &str| {
            json!({"launch": {"attempt": attempt, "at": "2026-01-01T00:00:00Z", "podName": "pod", "grant": {
                "podUid": "5f0c6e1e-0000-4000-8000-000000000000", "instance": instance, "at": "2026-01-01T00:00:00Z"}}})
        };
        tasks.status("task", &json!({"launch": {"attempt": 2, "at": "2026-01-01T00:00:00Z", "podName": "pod"}})).await.unwrap();
        let refusal = tasks.status("task", &launch(2, "one")).await.unwrap_err().to_string();
        assert!(refusal.contains("a grant needs the approval that is required"), "{refusal}");
        let mut granted = launch(2, "one");
        granted["approval"] = json!({"required": false});
        tasks.status("task", &granted).await.unwrap();

        for (status, why) in [
            (json!({"launch": {"attempt": 1}}), "attempt never falls"),
            (json!({"launch": {"attempt": 3}}), "a granted attempt is the last"),
            (launch(2, "two"), "the grant is given once"),
            (json!({"launch": {"grant": null}}), "the grant is given once"),
        ] {
            let refusal = tasks.status("task", &status).await.unwrap_err().to_string();
            assert!(refusal.contains(why), "{status}: {refusal}");
        }
        namespace.delete().await;
    });
}

#[test]
fn the_shipped_definitions_are_taken_strictly() {
    Cluster::any().test(async |kubernetes| {
        install(&kubernetes.client).await;
        let definitions: Api<AgentCliDefinition> = Api::all(kubernetes.client.clone());
        for name in ["claude-code", "codex", "demo"] {
            let path = format!("{}/definitions/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            let manifest: Value = serde_saphyr::from_str(&text).unwrap();
            // A dry run, since definitions are no namespace's: another test's could be in the way.
            let parameters = PatchParams::apply("test").validation_strict().dry_run();
            definitions.patch(name, &parameters, &Patch::Apply(&manifest)).await.unwrap();
        }
    });
}

/// Both resources; several tests may do so at once.
async fn install(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds() {
        let name = crd.name_any();
        api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&crd)).await.unwrap();
        let established = await_condition(api.clone(), &name, is_crd_established());
        tokio::time::timeout(crate::wait::PATIENCE, established).await.unwrap().unwrap();
    }
}

/// Tasks as kubectl writes them, with the API server's validation of fields.
struct Tasks {
    client: Client,
    tasks: Api<AgentCliTask>,
}

impl Tasks {
    fn of(namespace: &Namespace) -> Self {
        Self { client: namespace.client.clone(), tasks: namespace.api() }
    }

    async fn create(&self, name: &str, spec: &Value, validation: &str) -> Result<AgentCliTask, Error> {
        let url = format!("{}?fieldValidation={validation}", self.tasks.resource_url());
        let request = Request::post(url).header("content-type", "application/json");
        self.client.request(request.body(manifest(name, spec).to_string().into_bytes()).unwrap()).await
    }

    /// Why the API server doesn't take it.
    async fn refused(&self, name: &str, spec: &Value) -> String {
        self.create(name, spec, "Strict").await.expect_err("it isn't refused").to_string()
    }

    async fn status(&self, name: &str, status: &Value) -> Result<AgentCliTask, Error> {
        self.tasks.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await
    }
}

fn manifest(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "caisson.dev/v1alpha1", "kind": "AgentCliTask", "metadata": {"name": name}, "spec": spec})
}
