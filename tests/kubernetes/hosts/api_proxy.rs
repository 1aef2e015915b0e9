//! The proxy between kube's client and an API server that only remembers what it was asked.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use super::{endpoint, on_loopback};
use crate::support::hosts::api_proxy::call::{Call, Match, Verb};
use crate::support::hosts::api_proxy::rules::{Fault, Rule};
use crate::support::hosts::api_proxy::{ApiProxy, Record};
use crate::support::hosts::monitor::Monitor;
use crate::support::hosts::server::{Server, Streamed};
use crate::support::hosts::tls::Authority;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

/// The object that the API server never has time for.
const UNAVAILABLE: &str = "unavailable";

/// Answers every request with an object, and a watch with the events that the test has it send.
struct Upstream {
    server: Server,
    seen: Arc<Seen>,
}

struct Seen {
    /// Each request with its credentials.
    requests: Monitor<Vec<(Call, Option<String>)>>,
    events: Monitor<Vec<String>>,
    /// How many watches are open.
    watching: Monitor<usize>,
}

impl Upstream {
    fn start(authority: &Authority) -> Self {
        let seen = Arc::new(Seen {
            requests: Monitor::new(Vec::new()),
            events: Monitor::new(Vec::new()),
            watching: Monitor::new(0),
        });
        let server = Server::start(endpoint(authority), {
            let seen = Arc::clone(&seen);
            move |request| {
                let seen = Arc::clone(&seen);
                async move { Ok(serve(&seen, &request)) }
            }
        });
        Self { server, seen }
    }

    /// What reaches it, with a token for who has none.
    fn config(&self, authority: &Authority) -> Config {
        let mut config = Config::new(self.server.url().parse().expect("a URL"));
        let pem = authority.pem().lines().filter(|line| !line.starts_with("---")).collect::<String>();
        let der = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, pem).expect("PEM is base64");
        config.root_cert = Some(vec![der]);
        config.auth_info.token = Some("the-proxy's".to_owned().into());
        config
    }

    fn asked(&self, matches: &Match) -> usize {
        self.seen.requests.read(|requests| requests.iter().filter(|(call, _)| matches.matches(call)).count())
    }

    fn credentials(&self) -> Vec<Option<String>> {
        self.seen
            .requests
            .read(|requests| requests.iter().map(|(_, credentials)| credentials.clone()).collect())
    }

    /// Sends bytes of a watch's answer, which need not be whole events.
    fn send(&self, bytes: &str) {
        self.seen.events.update(|events| events.push(bytes.to_owned()));
    }
}

fn serve(seen: &Arc<Seen>, request: &Request<Incoming>) -> Response<Streamed> {
    let call = Call::parse(request.method(), request.uri());
    let credentials =
        request.headers().get(AUTHORIZATION).map(|value| value.to_str().expect("text").to_owned());
    seen.requests.update(|requests| requests.push((call.clone(), credentials)));
    if call.verb != Verb::Watch {
        let status = match (call.verb, &call.name[..]) {
            (Verb::Create, _) => StatusCode::CREATED,
            (_, UNAVAILABLE) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let mut response = Response::new(Streamed::complete(object.to_string()));
        *response.status_mut() = status;
        return response;
    }
    let (sending, body) = Streamed::channel();
    let seen = Arc::clone(seen);
    seen.watching.update(|watching| *watching += 1);
    tokio::spawn(async move {
        let watch = async {
            for sent in 0.. {
                seen.events.reached(|events| events.len() > sent).await;
                let event = seen.events.read(|events| events[sent].clone());
                sending.send(Ok(event.into())).await.expect("a watch that is left is not sent to");
            }
        };
        tokio::select! {
            biased;
            () = sending.closed() => {}
            () = watch => {}
        }
        seen.watching.update(|watching| *watching -= 1);
    });
    Response::new(body)
}

/// An upstream with a proxy in front of it.
struct World {
    upstream: Upstream,
    proxy: Arc<ApiProxy>,
}

impl World {
    fn new() -> Self {
        let authority = Authority::fresh("cluster");
        let upstream = Upstream::start(&authority);
        // The proxy's clients don't trust the API server's authority, and need not.
        let proxy = ApiProxy::start(endpoint(&Authority::fresh("proxy")), upstream.config(&authority));
        Self { upstream, proxy: Arc::new(proxy) }
    }

    /// One that doesn't try twice.
    fn client(&self) -> Client {
        let mut config = self.proxy.config();
        config.default_retry = false;
        Client::try_from(config).expect("a client can be made")
    }

    fn create(&self) -> tokio::task::JoinHandle<kube::Result<ConfigMap>> {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client());
        tokio::spawn(async move { api.create(&PostParams::default(), &ConfigMap::default()).await })
    }

    async fn created(&self) -> kube::Result<ConfigMap> {
        self.create().await.expect("it doesn't panic")
    }

    async fn watch(&self) -> Watch {
        let request = Request::get(WATCH).body(Body::empty()).expect("a request");
        let response = self.client().send(request).await.expect("the watch opens");
        assert_eq!(response.status(), StatusCode::OK);
        Watch { body: response.into_body(), text: String::new() }
    }

    /// One record, of a watch that a fault has struck.
    async fn struck(&self, count: usize, fault: &Fault) {
        self.proxy.until_each(count, &watches(), |record| record.faults.contains(fault)).await;
    }
}

fn creations() -> Match {
    Match::of(Verb::Create, "configmaps")
}

fn watches() -> Match {
    Match::of(Verb::Watch, "configmaps")
}

fn event(name: &str) -> String {
    format!("{}\n", json!({"type": "ADDED", "object": {"metadata": {"name": name}}}))
}

/// A watch as its client sees it.
struct Watch {
    body: Body,
    text: String,
}

impl Watch {
    /// The next line; an error if the connection ended without an end of the answer, `None` at its end.
    async fn line(&mut self) -> Result<Option<String>, kube::Error> {
        loop {
            if let Some(end) = self.text.find('\n') {
                let rest = self.text.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.text, rest)));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            self.text += std::str::from_utf8(&frame?.into_data().unwrap_or_default()).expect("text");
        }
    }

    async fn event(&mut self) -> String {
        self.line().await.expect("it is open").expect("it goes on")
    }

    /// Whether a line has arrived, after whatever else this thread has to do.
    async fn is_silent(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.line() => false,
            () = tokio::task::yield_now() => true,
        }
    }
}

fn status(result: kube::Result<ConfigMap>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason),
        other => panic!("no status: {other:?}"),
    }
}

/// An error that says nothing about what the API server did.
fn broken(result: &kube::Result<ConfigMap>) {
    assert!(matches!(result, Err(kube::Error::HyperError(_) | kube::Error::Service(_))), "{result:?}");
}

#[test]
fn what_no_rule_strikes_passes_with_its_own_credentials_or_the_proxys() {
    on_loopback(async || {
        let world = World::new();
        world.created().await.expect("it passes");
        let own = Client::try_from(world.proxy.config_with_token("one's-own")).expect("a client");
        Api::<ConfigMap>::default_namespaced(own).get("a").await.expect("it passes");
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        assert_eq!(world.upstream.credentials(), [bearer("the-proxy's"), bearer("one's-own")]);

        let records = world.proxy.records();
        let [Record { call, faults, status, abandoned }] = &records[..1] else { panic!("{records:?}") };
        assert!(creations().matches(call), "{call}");
        assert_eq!((faults.len(), *status, *abandoned), (0, Some(201), false));
    });
}

#[test]
fn another_process_finds_all_it_needs_in_a_kubeconfig_file() {
    on_loopback(async || {
        let world = World::new();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("kubeconfig");
        world.proxy.write_kubeconfig(&path, Some("a-token"));
        let kubeconfig = Kubeconfig::read_from(&path).expect("it is a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("it is complete")).expect("a client");
        Api::<ConfigMap>::default_namespaced(client).get("a").await.expect("it passes");
        assert_eq!(world.upstream.credentials(), [Some("Bearer a-token".to_owned())]);
    });
}

#[test]
fn a_request_is_refused_as_often_as_the_rule_says() {
    on_loopback(async || {
        let world = World::new();
        world.proxy.set(Rule::new(creations(), Fault::status(409)).times(1));
        let exists = Fault::status_with_reason(409, "AlreadyExists");
        let forever = world.proxy.set(Rule::new(creations(), exists.clone()));
        assert_eq!(status(world.created().await), (409, "Conflict".to_owned()));
        for _ in 0..3 {
            assert_eq!(status(world.created().await), (409, "AlreadyExists".to_owned()));
        }
        assert_eq!(world.upstream.asked(&Match::any()), 0);
        assert_eq!(world.proxy.matching(&creations())[3].faults, [exists]);

        world.proxy.lift(forever);
        world.created().await.expect("it passes");
    });
}

#[test]
fn a_refusal_says_when_to_try_again() {
    on_loopback(async || {
        let world = World::new();
        world.proxy.set(Rule::new(Match::any(), Fault::too_many_requests(7)).times(1));
        let request = Request::get("/version").body(Body::empty()).expect("a request");
        let response = world.client().send(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "7");
        let body: Value = serde_json::from_slice(&collected(response).await).expect("JSON");
        assert_eq!((&body["kind"], &body["reason"]), (&json!("Status"), &json!("TooManyRequests")));
        assert_eq!((&body["code"], &body["details"]["retryAfterSeconds"]), (&json!(429), &json!(7)));
    });
}

async fn collected(response: Response<Body>) -> Bytes {
    response.into_body().collect().await.expect("a whole body").to_bytes()
}

#[test]
fn a_request_that_is_dropped_never_arrives() {
    on_loopback(async || {
        let world = World::new();
        world.proxy.set(Rule::new(creations(), Fault::Drop).times(1));
        broken(&world.created().await);
        assert_eq!(world.upstream.asked(&Match::any()), 0);
        world.created().await.expect("it passes");
    });
}

#[test]
fn a_write_whose_answer_is_lost_was_done() {
    on_loopback(async || {
        let world = World::new();
        world.proxy.set(Rule::new(Match::writes(), Fault::LoseReply).times(1));
        broken(&world.created().await);
        assert_eq!(world.upstream.asked(&creations()), 1);
        let record = world.proxy.until(1, &creations()).await.remove(0);
        assert_eq!((record.faults, record.status), (vec![Fault::LoseReply], Some(201)));
        world.created().await.expect("it passes");
    });
}

#[test]
fn a_request_is_held_until_the_rule_is_lifted() {
    on_loopback(async || {
        let world = World::new();
        let rule = world.proxy.set(Rule::new(creations(), Fault::HoldRequest).times(1));
        let held = world.create();
        world.proxy.until(1, &creations()).await;
        world.created().await.expect("the next one overtakes it");
        assert_eq!(world.upstream.asked(&creations()), 1);
        assert!(!held.is_finished());

        world.proxy.lift(rule);
        held.await.expect("it doesn't panic").expect("it passes");
        assert_eq!(world.upstream.asked(&creations()), 2);
    });
}

#[test]
fn a_held_request_goes_with_its_client() {
    on_loopback(async || {
        let world = World::new();
        let rule = world.proxy.set(Rule::new(creations(), Fault::HoldRequest));
        let held = world.create();
        world.proxy.until(1, &creations()).await;
        held.abort();
        world.proxy.until_each(1, &creations(), |record| record.abandoned).await;
        world.proxy.lift(rule);
        world.created().await.expect("the next one passes");
        assert_eq!(world.upstream.asked(&creations()), 1);
    });
}

#[test]
fn an_answer_is_held_until_the_rule_is_lifted() {
    on_loopback(async || {
        let world = World::new();
        let rule = world.proxy.set(Rule::new(creations(), Fault::HoldReply).times(1));
        let held = world.create();
        world.proxy.until_each(1, &creations(), |record| record.status == Some(201)).await;
        world.created().await.expect("the next one overtakes it");
        assert!(!held.is_finished());

        world.proxy.lift(rule);
        held.await.expect("it doesn't panic").expect("it passes");
    });
}

#[test]
fn a_stalled_watch_goes_on_where_it_stopped() {
    on_loopback(async || {
        let world = World::new();
        let mut watch = world.watch().await;
        world.upstream.send(&event("a"));
        assert_eq!(watch.event().await, event("a"));

        let stall = world.proxy.set(Rule::new(watches(), Fault::StallWatch));
        world.struck(1, &Fault::StallWatch).await;
        world.upstream.send(&event("b"));
        for _ in 0..3 {
            world.created().await.expect("it passes, and whatever else would");
        }
        assert!(watch.is_silent().await);
        // Those opened meanwhile are struck too.
        let mut another = world.watch().await;
        world.struck(2, &Fault::StallWatch).await;
        assert!(another.is_silent().await);

        world.proxy.lift(stall);
        world.upstream.send(&event("c"));
        assert_eq!([watch.event().await, watch.event().await], [event("b"), event("c")]);
        assert_eq!([another.event().await, another.event().await], [event("a"), event("b")]);
    });
}

#[test]
fn a_watch_is_cut_between_events() {
    on_loopback(async || {
        let world = World::new();
        let mut watch = world.watch().await;
        let (start, rest) = (&event("a")[..9], &event("a")[9..]);
        world.upstream.send(start);
        world.proxy.until_each(1, &watches(), |record| record.status.is_some()).await;
        while watch.text.is_empty() {
            let frame = watch.body.frame().await.expect("it goes on").expect("it is open");
            watch.text += std::str::from_utf8(&frame.into_data().expect("data")).expect("text");
        }
        world.proxy.set(Rule::new(watches(), Fault::CutWatch).times(1));
        world.upstream.send(rest);
        assert_eq!(watch.event().await, event("a"));
        watch.line().await.expect_err("the connection ends");

        assert_eq!(world.watch().await.event().await, event("a"), "once is once");
    });
}

#[test]
fn a_stalled_watch_can_be_cut() {
    on_loopback(async || {
        let world = World::new();
        world.proxy.set(Rule::new(watches(), Fault::StallWatch));
        let mut watch = world.watch().await;
        world.struck(1, &Fault::StallWatch).await;
        world.proxy.set(Rule::new(watches(), Fault::CutWatch));
        watch.line().await.expect_err("the connection ends");
        world.struck(1, &Fault::CutWatch).await;
    });
}

#[test]
fn an_expired_watch_says_so_and_ends() {
    on_loopback(async || {
        let world = World::new();
        world.upstream.send(&event("a"));
        let mut watch = world.watch().await;
        assert_eq!(watch.event().await, event("a"));
        world.proxy.set(Rule::new(watches(), Fault::ExpireWatch).times(1));
        let last: Value = serde_json::from_str(&watch.event().await).expect("JSON");
        assert_eq!((&last["type"], &last["object"]["kind"]), (&json!("ERROR"), &json!("Status")));
        assert_eq!((&last["object"]["code"], &last["object"]["reason"]), (&json!(410), &json!("Expired")));
        assert_eq!(watch.line().await.expect("it ends as it should"), None);

        assert_eq!(world.watch().await.event().await, event("a"), "once is once");
    });
}

#[test]
fn a_watch_that_its_client_leaves_is_left_upstream() {
    on_loopback(async || {
        let world = World::new();
        let watch = world.watch().await;
        assert_eq!(world.upstream.seen.watching.read(|watching| *watching), 1);
        drop(watch);
        world.upstream.seen.watching.until("the watch to end", |watching| *watching == 0).await;
    });
}

#[test]
fn an_outage_refuses_connections_and_ends_those_there_are() {
    on_loopback(async || {
        let world = World::new();
        let mut watch = world.watch().await;
        let outage = world.proxy.outage();
        watch.line().await.expect_err("the connection ends");
        broken(&world.created().await);
        assert_eq!(world.proxy.records().len(), 1, "nobody listens");
        drop(outage);
        world.created().await.expect("it passes");
    });
}

#[test]
fn what_the_api_server_refuses_is_refused_once() {
    on_loopback(async || {
        let world = World::new();
        let api = Api::<ConfigMap>::default_namespaced(world.client());
        api.get(UNAVAILABLE).await.expect_err("it is refused");
        assert_eq!(world.upstream.asked(&Match::any()), 1);
        assert_eq!(world.proxy.records()[0].status, Some(503));
    });
}

#[test]
fn an_api_server_that_is_down_is_no_answer() {
    on_loopback(async || {
        let mut world = World::new();
        let authority = Authority::fresh("cluster");
        world.upstream = Upstream::start(&authority);
        broken(&world.created().await);
        assert_eq!(world.proxy.records()[0].status, None);
    });
}
