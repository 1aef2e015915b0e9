//! Pods of the test cluster: admission, images, daemons.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{LogParams, PostParams};
use serde_json::json;

use crate::cluster::{Cluster, pod};

#[test]
fn a_pod_runs_under_pod_security_restricted() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("pod-security").await;
        let probe = kubernetes.image("probe");
        namespace.create_object(&pod::restricted("hello", probe, &["sh", "-c", "id -u; echo hello"])).await;

        namespace.succeeds("hello").await;

        let log = namespace.api::<Pod>().logs("hello", &LogParams::default()).await.unwrap();
        assert_eq!(log, "10001\nhello\n");
        namespace.delete().await;
    });
}

#[test]
fn a_privileged_pod_is_refused() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("pod-security").await;
        let mut privileged = pod::restricted_value("root", kubernetes.image("probe"), &["true"]);
        privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});

        let refusal =
            namespace.api::<Pod>().create(&PostParams::default(), &pod::from(privileged)).await.unwrap_err();

        assert!(refusal.to_string().contains("violates PodSecurity \"restricted"), "{refusal}");
        namespace.delete().await;
    });
}

#[test]
fn an_image_that_is_missing_gives_err_image_pull() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("missing-image").await;
        let (repository, _) = kubernetes.image("probe").rsplit_once(':').unwrap();
        namespace.create_object(&pod::restricted("missing", &format!("{repository}:none"), &["true"])).await;

        namespace.wait::<Pod>("missing", "fail to pull", pull_fails("not found")).await;

        namespace.delete().await;
    });
}

#[test]
fn a_registry_that_wants_a_password_gives_the_image_to_who_has_it() {
    let Some(cluster) = Cluster::ours("a registry with passwords") else { return };
    cluster.test(async |kubernetes| {
        let namespace = kubernetes.namespace("image-password").await;
        let (_, repository) = kubernetes.image("probe").split_once('/').unwrap();
        let registry = kubernetes.private_registry();
        for (name, password) in [("right", registry.password), ("wrong", "wrong")] {
            let auths = json!({"auths": {registry.host: {"username": registry.user, "password": password}}});
            let secret: Secret = serde_json::from_value(json!({
                "metadata": {"name": name},
                "type": "kubernetes.io/dockerconfigjson",
                "stringData": {".dockerconfigjson": auths.to_string()},
            }))
            .unwrap();
            namespace.create_object(&secret).await;
            let image = format!("{}/{repository}", registry.host);
            let mut puller = pod::restricted_value(name, &image, &["true"]);
            puller["spec"]["imagePullSecrets"] = json!([{"name": name}]);
            // The node has the image as soon as one pod pulled it.
            puller["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
            namespace.create_object(&pod::from(puller)).await;
        }

        namespace.succeeds("right").await;
        namespace.wait::<Pod>("wrong", "fail to pull", pull_fails("401 Unauthorized")).await;

        namespace.delete().await;
    });
}

#[test]
fn a_daemon_that_was_killed_starts_again() {
    if !Cluster::can_be_ours("a cluster of its own") {
        return;
    }
    let cluster = Cluster::start("daemons");
    cluster.test(async |kubernetes| {
        let namespace = kubernetes.namespace("daemons").await;
        let probe = kubernetes.image("probe");
        namespace.create_object(&pod::restricted("before", probe, &["sleep", "1000"])).await;
        namespace.wait::<Pod>("before", "run", pod::running).await;

        for daemon in ["kubelet", "containerd"] {
            cluster.script(&["kill", daemon]);
            cluster.script(&["start", daemon]);
        }

        namespace.create_object(&pod::restricted("after", probe, &["true"])).await;
        namespace.succeeds("after").await;
        let before = namespace.api::<Pod>().get("before").await.unwrap();
        assert!(pod::running(Some(&before)), "{:?}", before.status);
    });
}

/// The kubelet says `ErrImagePull` after each try, with the registry's answer.
fn pull_fails(answer: &'static str) -> impl Fn(Option<&Pod>) -> bool {
    move |pod| {
        pod::waits_because(pod).is_some_and(|(reason, why)| reason == "ErrImagePull" && why.contains(answer))
    }
}
