//! A namespace per test, and waiting in it.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::{Condition, await_condition};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{dump, pod};
use crate::wait::PATIENCE;

/// A namespace that ends with the test. What it held is printed if the test fails in one of its waits.
pub(crate) struct Namespace {
    /// An administrator's client.
    pub(crate) client: Client,
    /// Its name: the test's with something that no other run has.
    pub(crate) name: String,
}

impl Namespace {
    pub(super) async fn create(client: Client, test: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{test}-{}-{number}", std::process::id());
        let object: NamespaceObject = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {
                "caisson.dev/test": test,
                "pod-security.kubernetes.io/enforce": "restricted",
            }},
        }))
        .expect("a namespace");
        let namespaces = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.expect("a namespace can be made");
        let namespace = Self { client, name };
        // Pods are refused until it exists.
        namespace
            .wait::<ServiceAccount>("default", "exist", |account: Option<&ServiceAccount>| account.is_some())
            .await;
        namespace
    }

    /// The objects of one kind in it.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Makes an object.
    ///
    /// # Panics
    /// If the API server refuses it.
    pub(crate) async fn create_object<K>(&self, object: &K) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        self.api().create(&PostParams::default(), object).await.expect("the API server takes the object")
    }

    /// Waits until an object fulfils a condition, and returns it.
    ///
    /// # Panics
    /// With what the namespace holds, if it doesn't in time.
    pub(crate) async fn wait<K>(&self, name: &str, what: &str, condition: impl Condition<K>) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let waited = tokio::time::timeout(PATIENCE, await_condition(self.api::<K>(), name, condition)).await;
        match waited {
            Ok(Ok(object)) => object,
            Ok(Err(error)) => self.fail(&format!("{name} couldn't be watched: {error}")).await,
            Err(_) => self.fail(&format!("waited in vain for {name} to {what}")).await,
        }
    }

    /// Waits until a pod has succeeded, and no longer if it fails.
    ///
    /// # Panics
    /// With what the namespace holds, if it fails or doesn't end in time.
    pub(crate) async fn succeeds(&self, pod: &str) {
        let ended = self.wait::<Pod>(pod, "succeed", pod::ended).await;
        if !pod::succeeded(ended.as_ref()) {
            self.fail(&format!("{pod} failed")).await;
        }
    }

    /// Asks again and again, for what can't be watched, until there is an answer.
    ///
    /// # Panics
    /// With what the namespace holds, if there is none in time.
    pub(crate) async fn eventually<T>(&self, what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
        match tokio::time::timeout(PATIENCE, ask_until_answered(ask)).await {
            Ok(answer) => answer,
            Err(_) => self.fail(&format!("waited in vain for {what}")).await,
        }
    }

    /// Fails the test with what the namespace holds.
    pub(crate) async fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{}", dump::namespace(&self.client, &self.name).await);
    }

    /// Removes it, without waiting for its pods.
    pub(crate) async fn delete(self) {
        let namespaces: Api<NamespaceObject> = Api::all(self.client);
        namespaces
            .delete(&self.name, &DeleteParams::default().grace_period(0))
            .await
            .expect("a namespace can be deleted");
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a condition")]
async fn ask_until_answered<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
