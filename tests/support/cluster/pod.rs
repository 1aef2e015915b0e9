//! Pods of tests, and what can be waited for.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// A pod with one container, `main`, as Pod Security `restricted` wants it.
pub(crate) fn restricted(name: &str, image: &str, command: &[&str]) -> Pod {
    from(restricted_value(name, image, command))
}

/// The same to add to.
pub(crate) fn restricted_value(name: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["127.0.0.1"]},
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "main",
                "image": image,
                "command": command,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "1Gi"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "512Mi"}}],
        },
    })
}

/// # Panics
/// If it isn't a pod.
pub(crate) fn from(value: Value) -> Pod {
    serde_json::from_value(value).expect("a pod")
}

fn phase(pod: Option<&Pod>) -> Option<&str> {
    pod?.status.as_ref()?.phase.as_deref()
}

/// All containers ended with exit code 0.
pub(crate) fn succeeded(pod: Option<&Pod>) -> bool {
    phase(pod) == Some("Succeeded")
}

/// It has ended, well or not.
pub(crate) fn ended(pod: Option<&Pod>) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

/// Its containers run.
pub(crate) fn running(pod: Option<&Pod>) -> bool {
    phase(pod) == Some("Running")
}

/// Why its container doesn't start yet: a reason such as `ErrImagePull`, and what the kubelet adds.
pub(crate) fn waits_because(pod: Option<&Pod>) -> Option<(String, String)> {
    let status = pod?.status.as_ref()?.container_statuses.as_ref()?.first()?;
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    Some((waiting.reason.clone()?, waiting.message.clone().unwrap_or_default()))
}

/// The address of its network.
///
/// # Panics
/// Before it has one.
pub(crate) fn address(pod: &Pod) -> String {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    ip.expect("a running pod has an address")
}
