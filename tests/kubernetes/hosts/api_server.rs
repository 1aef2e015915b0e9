//! The proxy in front of a real API server, and kube's watcher behind it.

use std::future::poll_fn;
use std::pin::{Pin, pin};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt as _};

use super::endpoint;
use crate::cluster::{Cluster, Kubernetes};
use crate::support::hosts::api_proxy::call::{Match, Verb};
use crate::support::hosts::api_proxy::rules::{Fault, Rule};
use crate::support::hosts::api_proxy::{ApiProxy, Record};
use crate::support::hosts::tls::Authority;

/// A proxy whose clients are administrators, as the test is.
fn proxy(kubernetes: &Kubernetes) -> ApiProxy {
    ApiProxy::start(endpoint(&Authority::fresh("proxy")), kubernetes.config.clone())
}

fn object(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// What a stream of kube's yields next.
async fn next<S: WatchStreamExt>(stream: &mut Pin<&mut S>) -> S::Item {
    poll_fn(|context| stream.as_mut().poll_next(context)).await.expect("a watcher never ends")
}

/// What a watcher says in one line.
fn said(event: Result<Event<ConfigMap>, watcher::Error>) -> String {
    match event {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(object)) => format!("init {}", object.name_any()),
        Ok(Event::InitDone) => "init done".to_owned(),
        Ok(Event::Apply(object)) => format!("apply {}", object.name_any()),
        Ok(Event::Delete(object)) => format!("delete {}", object.name_any()),
        Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
        Err(error) => format!("error {error}"),
    }
}

#[test]
fn a_watcher_survives_what_the_proxy_does_to_it() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("a-watcher-survives").await;
        let proxy = proxy(&kubernetes);
        let client = Client::try_from(proxy.config()).expect("a client can be made");
        let watches = Match::of(Verb::Watch, "configmaps").namespace(&namespace.name);
        // Every namespace has one of Kubernetes' own.
        let config = Config::default().fields("metadata.name!=kube-root-ca.crt");
        let mut stream = pin!(watcher(Api::<ConfigMap>::namespaced(client, &namespace.name), config));
        assert_eq!([said(next(&mut stream).await), said(next(&mut stream).await)], ["init", "init done"]);

        namespace.create_object(&object("a")).await;
        assert_eq!(said(next(&mut stream).await), "apply a");

        let stall = proxy.set(Rule::new(watches.clone(), Fault::StallWatch));
        let struck = |fault: Fault| move |record: &Record| record.faults.contains(&fault);
        proxy.until_each(1, &watches, struck(Fault::StallWatch)).await;
        let (b, c) = (object("b"), object("c"));
        namespace.create_object(&b).await;
        tokio::select! {
            event = next(&mut stream) => panic!("an event passed: {}", said(event)),
            _ = namespace.create_object(&c) => {}
        }
        proxy.lift(stall);
        assert_eq!([said(next(&mut stream).await), said(next(&mut stream).await)], ["apply b", "apply c"]);

        // A watcher takes a connection that ends for the end of a watch, and opens another.
        proxy.set(Rule::new(watches.clone(), Fault::CutWatch).times(1));
        proxy.until_each(1, &watches, struck(Fault::CutWatch)).await;
        namespace.create_object(&object("d")).await;
        assert_eq!(said(next(&mut stream).await), "apply d");
        assert_eq!(proxy.matching(&watches).len(), 2);

        proxy.set(Rule::new(watches.clone(), Fault::ExpireWatch).times(1));
        assert_eq!(said(next(&mut stream).await), "error 410");
        let mut relisted = Vec::new();
        while relisted.last().is_none_or(|last| last != "init done") {
            relisted.push(said(next(&mut stream).await));
        }
        assert_eq!(relisted, ["init", "init a", "init b", "init c", "init d", "init done"]);
        namespace.delete().await;
    });
}

#[test]
fn a_write_whose_answer_is_lost_is_there() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("an-answer-is-lost").await;
        let proxy = proxy(&kubernetes);
        let client = Client::try_from(proxy.config()).expect("a client can be made");
        let api = Api::<ConfigMap>::namespaced(client, &namespace.name);
        let creations = Match::of(Verb::Create, "configmaps").namespace(&namespace.name);
        proxy.set(Rule::new(creations.clone(), Fault::LoseReply).times(1));
        let lost = api.create(&PostParams::default(), &object("a")).await.expect_err("no answer");
        assert!(!matches!(lost, kube::Error::Api(_)), "{lost}");
        let again = api.create(&PostParams::default(), &object("a")).await.expect_err("it is there");
        assert!(matches!(&again, kube::Error::Api(status) if status.reason == "AlreadyExists"), "{again}");
        let statuses: Vec<_> = proxy.matching(&creations).into_iter().map(|record| record.status).collect();
        assert_eq!(statuses, [Some(201), Some(409)]);
        namespace.delete().await;
    });
}

#[test]
fn a_token_of_the_clients_own_counts_and_not_the_proxys_certificate() {
    Cluster::any().test(async |kubernetes| {
        let namespace = kubernetes.namespace("a-token-counts").await;
        let proxy = proxy(&kubernetes);
        let stranger = Client::try_from(proxy.config_with_token("nobody's")).expect("a client can be made");
        let refused = Api::<ConfigMap>::namespaced(stranger, &namespace.name).get("kube-root-ca.crt").await;
        assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), "{refused:?}");
        namespace.delete().await;
    });
}
