//! A proxy in front of a Kubernetes API server that does what networks and API servers do on a bad day, when a test says
//! so. It speaks HTTP/1.1 over TLS.
//!
//! ```ignore
//! let proxy = ApiProxy::start(Endpoint::tls(address, authority.identity(&["10.99.0.1"])), upstream);
//! let client = kube::Client::try_from(proxy.config())?;
//! let rule = Rule::new(Match::of(Verb::Create, "pods"), Fault::LoseReply).times(1);
//! proxy.set(rule);
//! // … the next creation of a pod succeeds, and nobody is told …
//! proxy.until(1, &Match::of(Verb::Create, "pods")).await;
//! ```
//!
//! Guarantees: a request that a fault keeps from the API server never reaches it; each request is recorded, with the faults
//! that struck it, before any of them does; of several rules for a request the first that was set strikes; what passes
//! unharmed passes unchanged. Each request has a connection to the API server of its own.
//!
//! Caveats: no upgraded connections, so no exec, attach or port-forward. Watches are JSON: faults of a watch strike
//! between two lines.

pub(crate) mod call;
mod forward;
pub(crate) mod rules;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use serde_json::json;

use call::{Call, Match};
use rules::{Fault, Rule, RuleId, Rules, Stage};

use super::monitor::Monitor;
use super::server::{Endpoint, Server};
use super::tls;

/// A running proxy. See the module.
pub(crate) struct ApiProxy {
    endpoint: Endpoint,
    /// None while nothing listens.
    server: Mutex<Option<Server>>,
    state: Arc<State>,
}

/// What the connections share.
struct State {
    upstream: kube::Config,
    rules: Monitor<Rules>,
    records: Monitor<Vec<Record>>,
}

/// One request, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// What was asked.
    pub(crate) call: Call,
    /// What struck it so far. A watch may be struck more than once.
    pub(crate) faults: Vec<Fault>,
    /// The status with which the API server itself answered, if it has.
    pub(crate) status: Option<u16>,
    /// Whether the client left before it had a response.
    pub(crate) abandoned: bool,
}

/// While it lives, connections to the proxy are refused.
pub(crate) struct Outage<'a>(&'a ApiProxy);

impl ApiProxy {
    /// Forwards to the API server that `upstream` names. The credentials there are for requests that have none.
    ///
    /// # Panics
    /// If `endpoint` isn't one with TLS.
    pub(crate) fn start(endpoint: Endpoint, mut upstream: kube::Config) -> Self {
        assert!(endpoint.identity().is_some(), "an API server speaks TLS");
        // A proxy that retries would hide what it is for.
        upstream.default_retry = false;
        let state = Arc::new(State {
            upstream,
            rules: Monitor::new(Rules::default()),
            records: Monitor::new(Vec::new()),
        });
        let server = listen(endpoint, &state);
        Self { endpoint: server.endpoint().clone(), server: Mutex::new(Some(server)), state }
    }

    /// What a client without credentials of its own needs.
    pub(crate) fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.endpoint.url().parse().expect("a proxy's URL is one"));
        config.root_cert = Some(vec![tls::der(self.authority()).to_vec()]);
        config
    }

    /// What a client with a token needs.
    pub(crate) fn config_with_token(&self, token: &str) -> kube::Config {
        let mut config = self.config();
        config.auth_info.token = Some(token.to_owned().into());
        config
    }

    /// Writes a kubeconfig file for another process, with a token if it has one.
    pub(crate) fn write_kubeconfig(&self, path: &Path, token: Option<&str>) {
        let cluster = json!({
            "server": self.endpoint.url(),
            "certificate-authority-data": BASE64_STANDARD.encode(self.authority()),
        });
        let user = token.map_or(json!({}), |token| json!({"token": token}));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": cluster}],
            "users": [{"name": "proxy", "user": user}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        });
        // JSON is YAML.
        fs::write(path, kubeconfig.to_string()).expect("a kubeconfig can be written");
    }

    /// Adds a rule, after all others. It strikes until it has struck as often as it says, or is lifted.
    pub(crate) fn set(&self, rule: Rule) -> RuleId {
        self.state.rules.update(|rules| rules.add(rule))
    }

    /// Removes a rule, and lets go on what it holds.
    pub(crate) fn lift(&self, rule: RuleId) {
        self.state.rules.update(|rules| rules.lift(rule));
    }

    /// Ends every connection and refuses new ones.
    pub(crate) fn outage(&self) -> Outage<'_> {
        drop(self.server().take().expect("there is one outage at a time"));
        Outage(self)
    }

    /// All requests so far, in order of arrival.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.state.records.read(Clone::clone)
    }

    /// The requests of a match so far.
    pub(crate) fn matching(&self, matches: &Match) -> Vec<Record> {
        self.records().into_iter().filter(|record| matches.matches(&record.call)).collect()
    }

    /// Returns the first `count` requests of a match once there are as many.
    pub(crate) async fn until(&self, count: usize, matches: &Match) -> Vec<Record> {
        self.until_each(count, matches, |_| true).await
    }

    /// The same once `condition` also holds for each of them, such as that the API server has answered.
    pub(crate) async fn until_each(
        &self,
        count: usize,
        matches: &Match,
        condition: impl Fn(&Record) -> bool,
    ) -> Vec<Record> {
        let what = awaited(count, matches);
        self.state.records.until(&what, |records| reached(records, count, matches, &condition)).await;
        self.matching(matches).into_iter().take(count).collect()
    }

    fn authority(&self) -> &str {
        &self.endpoint.identity().expect("a proxy speaks TLS").authority
    }

    fn server(&self) -> std::sync::MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Outage<'_> {
    fn drop(&mut self) {
        *self.0.server() = Some(listen(self.0.endpoint.clone(), &self.0.state));
    }
}

fn listen(endpoint: Endpoint, state: &Arc<State>) -> Server {
    let state = Arc::clone(state);
    Server::start(endpoint, move |request| forward::answer(Arc::clone(&state), request))
}

fn awaited(count: usize, matches: &Match) -> String {
    format!("{count} requests of {matches:?}")
}

fn reached(records: &[Record], count: usize, matches: &Match, condition: impl Fn(&Record) -> bool) -> bool {
    let matching = records.iter().filter(|record| matches.matches(&record.call));
    matching.take(count).filter(|record| condition(record)).count() == count
}

impl State {
    /// Records a request with the fault that strikes it at once, if any.
    fn record(&self, call: &Call) -> (usize, Option<(RuleId, Fault)>) {
        let struck = self.rules.update(|rules| rules.strike(call, Stage::Request, &[]));
        let faults = struck.iter().map(|(_, fault)| fault.clone()).collect();
        let number = self.records.update(|records| {
            records.push(Record { call: call.clone(), faults, status: None, abandoned: false });
            records.len() - 1
        });
        (number, struck)
    }

    /// The next fault of a watch that is open, if any; recorded.
    fn strike_stream(&self, number: usize, call: &Call, struck: &mut Vec<RuleId>) -> Option<(RuleId, Fault)> {
        let next = self.rules.update(|rules| rules.strike(call, Stage::Stream, struck));
        if let Some((rule, fault)) = &next {
            struck.push(*rule);
            self.records.update(|records| records[number].faults.push(fault.clone()));
        }
        next
    }

    fn answered(&self, number: usize, status: StatusCode) {
        self.records.update(|records| records[number].status = Some(status.as_u16()));
    }

    fn abandoned(&self, number: usize) {
        self.records.update(|records| records[number].abandoned = true);
    }

    async fn lifted(&self, rule: RuleId) {
        self.rules.reached(|rules| !rules.holds(rule)).await;
    }
}
