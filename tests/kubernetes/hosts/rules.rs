//! Which fault strikes which request.

use hyper::{Method, Uri};

use crate::support::hosts::api_proxy::call::{Call, Match, Verb};
use crate::support::hosts::api_proxy::rules::{Fault, Rule, Rules, Stage};

fn call(method: &str, uri: &str) -> Call {
    Call::parse(&method.parse::<Method>().expect("a method"), &uri.parse::<Uri>().expect("a URI"))
}

#[test]
fn a_request_is_read_as_the_api_server_reads_it() {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    for (method, uri, verb, resource, namespace, name) in [
        ("GET", "/version", Get, "", "", ""),
        ("GET", "/api/v1", Get, "", "", ""),
        ("GET", "/apis/apps/v1", Get, "", "", ""),
        ("GET", "/api/v1/nodes", List, "nodes", "", ""),
        ("GET", "/api/v1/nodes/a", Get, "nodes", "", "a"),
        ("GET", "/api/v1/namespaces", List, "namespaces", "", ""),
        ("GET", "/api/v1/namespaces/a", Get, "namespaces", "", "a"),
        ("PUT", "/api/v1/namespaces/a/finalize", Update, "namespaces/finalize", "", "a"),
        ("GET", "/api/v1/pods?limit=5", List, "pods", "", ""),
        ("GET", "/api/v1/namespaces/a/pods?limit=5&watch=true", Watch, "pods", "a", ""),
        ("GET", "/api/v1/namespaces/a/pods?watch=1", Watch, "pods", "a", ""),
        ("GET", "/api/v1/namespaces/a/pods?watch=false", List, "pods", "a", ""),
        ("GET", "/api/v1/namespaces/a/pods?fieldSelector=watch", List, "pods", "a", ""),
        ("POST", "/api/v1/namespaces/a/pods", Create, "pods", "a", ""),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", Create, "pods/eviction", "a", "b"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/b", Update, "deployments", "a", "b"),
        ("PATCH", "/apis/caisson.dev/v1/namespaces/a/runs/b/status?x=y", Patch, "runs/status", "a", "b"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", Delete, "pods", "a", "b"),
        ("DELETE", "/api/v1/namespaces/a/pods", DeleteCollection, "pods", "a", ""),
    ] {
        let read = call(method, uri);
        assert_eq!(
            (read.verb, &read.resource[..], &read.namespace[..], &read.name[..]),
            (verb, resource, namespace, name),
            "{method} {uri}"
        );
        assert_eq!((read.method.as_str(), &read.path[..]), (method, uri));
    }
}

#[test]
fn a_match_is_as_narrow_as_it_says() {
    let create = call("POST", "/api/v1/namespaces/a/pods");
    let patch = call("PATCH", "/api/v1/namespaces/a/pods/b/status");
    let list = call("GET", "/api/v1/namespaces/b/pods");
    let watch = call("GET", "/api/v1/pods?watch=true");
    for (matches, expected) in [
        (Match::any(), [true, true, true, true]),
        (Match::writes(), [true, true, false, false]),
        (Match::any().method(Method::GET), [false, false, true, true]),
        (Match::any().path("/api/v1/namespaces/a/"), [true, true, false, false]),
        (Match::any().resource("pods"), [true, false, true, true]),
        (Match::any().namespace("a"), [true, true, false, false]),
        (Match::any().name("b"), [false, true, false, false]),
        (Match::of(Verb::Watch, "pods"), [false, false, false, true]),
        (Match::of(Verb::List, "pods"), [false, false, true, false]),
        (Match::of(Verb::Patch, "pods/status"), [false, true, false, false]),
        (Match::of(Verb::Patch, "pods"), [false, false, false, false]),
        (Match::writes().resource("pods").namespace("b"), [false, false, false, false]),
    ] {
        let actual = [&create, &patch, &list, &watch].map(|call| matches.matches(call));
        assert_eq!(actual, expected, "{matches:?}");
    }
}

#[test]
fn the_first_rule_strikes_until_it_has_struck_as_often_as_it_may() {
    let create = call("POST", "/api/v1/namespaces/a/pods");
    let mut rules = Rules::default();
    rules.add(Rule::new(Match::of(Verb::Delete, "pods"), Fault::Drop));
    let twice = rules.add(Rule::new(Match::any(), Fault::status(500)).times(2));
    let always = rules.add(Rule::new(Match::any(), Fault::LoseReply));
    let mut strike = || rules.strike(&create, Stage::Request, &[]);
    assert_eq!(strike(), Some((twice, Fault::status(500))));
    assert_eq!(strike(), Some((twice, Fault::status(500))));
    assert_eq!(strike(), Some((always, Fault::LoseReply)));
    assert_eq!(strike(), Some((always, Fault::LoseReply)));

    assert!(rules.holds(twice), "what it struck may still be held");
    let changes = rules.changes();
    rules.lift(twice);
    rules.lift(always);
    assert!(!rules.holds(twice) && rules.changes() != changes);
    assert_eq!(rules.strike(&create, Stage::Request, &[]), None);
    let another = rules.add(Rule::new(Match::any(), Fault::Drop));
    assert!(![twice, always].contains(&another));
}

#[test]
fn a_stream_is_struck_by_faults_of_watches_only_and_once_by_each() {
    let watch = call("GET", "/api/v1/pods?watch=true");
    let mut rules = Rules::default();
    let refusal = rules.add(Rule::new(Match::any(), Fault::status(503)));
    let stall = rules.add(Rule::new(Match::any(), Fault::StallWatch));
    let cut = rules.add(Rule::new(Match::any(), Fault::CutWatch));
    assert_eq!(rules.strike(&watch, Stage::Request, &[]), Some((refusal, Fault::status(503))));
    assert_eq!(rules.strike(&watch, Stage::Stream, &[]), Some((stall, Fault::StallWatch)));
    assert_eq!(rules.strike(&watch, Stage::Stream, &[stall]), Some((cut, Fault::CutWatch)));
    assert_eq!(rules.strike(&watch, Stage::Stream, &[stall, cut]), None);
    let expiry = rules.add(Rule::new(Match::any(), Fault::ExpireWatch));
    assert_eq!(rules.strike(&watch, Stage::Stream, &[stall, cut]), Some((expiry, Fault::ExpireWatch)));
}
