//! What a namespace held when a test failed.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, ResourceExt as _};

/// Lines of each container's log.
const LOG_LINES: i64 = 40;

/// Its events, and each pod with its state and the end of its logs. What can't be had says so.
pub(super) async fn namespace(client: &Client, name: &str) -> String {
    let mut text = format!("--- namespace {name}\n");
    match Api::<Event>::namespaced(client.clone(), name).list(&ListParams::default()).await {
        Ok(events) => {
            for event in events {
                let _ = writeln!(
                    text,
                    "event {}/{}: {} {} (x{})",
                    event.involved_object.kind.unwrap_or_default(),
                    event.involved_object.name.unwrap_or_default(),
                    event.reason.unwrap_or_default(),
                    event.message.unwrap_or_default(),
                    event.count.unwrap_or(1),
                );
            }
        }
        Err(error) => {
            let _ = writeln!(text, "events: {error}");
        }
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), name);
    match pods.list(&ListParams::default()).await {
        Ok(list) => {
            for pod in list {
                text.push_str(&describe(&pods, &pod).await);
            }
        }
        Err(error) => {
            let _ = writeln!(text, "pods: {error}");
        }
    }
    text
}

async fn describe(pods: &Api<Pod>, pod: &Pod) -> String {
    let name = pod.name_any();
    let status = serde_json::to_string_pretty(&pod.status).unwrap_or_default();
    let mut text = format!("--- pod {name}\n{status}\n");
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let parameters = LogParams {
            container: Some(container.name.clone()),
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        let log = pods.logs(&name, &parameters).await.unwrap_or_else(|error| format!("no log: {error}"));
        let _ = writeln!(text, "--- log of {name}/{}\n{log}", container.name);
    }
    text
}
