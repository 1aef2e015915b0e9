//! The network of the test cluster: what policies block, and that nothing leads outside.

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, LogParams};
use serde_json::json;

use crate::cluster::{Cluster, pod};

/// Says of one connection after the other whether it was possible.
const KNOCK: &str = r#"while true; do
  if nc -w 1 "$0" "$1" </dev/null 2>/dev/null; then echo open; else echo shut; fi
  sleep 0.2
done"#;

#[test]
fn a_network_policy_blocks_pods_and_hosts_outside() {
    let Some(cluster) = Cluster::ours("hosts outside") else { return };
    cluster.test(async |kubernetes| {
        let namespace = kubernetes.namespace("network-policy").await;
        let probe = kubernetes.image("probe");
        let outside = kubernetes.outside_address();
        let host = TcpListener::bind((outside.ip(), 8080)).unwrap();
        let accepting = std::thread::spawn(move || while host.accept().is_ok() {});
        let listen = ["sh", "-c", "while true; do nc -l -p 8080 </dev/null >/dev/null; done"];
        namespace.create_object(&pod::restricted("server", probe, &listen)).await;
        let server = namespace.wait::<Pod>("server", "run", pod::running).await.unwrap();
        for (name, address) in [("to-pod", pod::address(&server)), ("to-host", outside.ip().to_string())] {
            let knock = ["sh", "-c", KNOCK, &address, "8080"];
            namespace.create_object(&pod::restricted(name, probe, &knock)).await;
            namespace.wait::<Pod>(name, "run", pod::running).await;
        }
        let clients = ["to-pod", "to-host"];
        let says = async |word: &'static str| {
            for client in clients {
                namespace
                    .eventually(&format!("{client} to find it {word}"), async || {
                        let last = LogParams { tail_lines: Some(1), ..LogParams::default() };
                        let log = namespace.api::<Pod>().logs(client, &last).await.ok()?;
                        (log.trim() == word).then_some(())
                    })
                    .await;
            }
        };
        says("open").await;

        let policy: NetworkPolicy = serde_json::from_value(json!({
            "metadata": {"name": "nothing-out"},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"]},
        }))
        .unwrap();
        namespace.create_object(&policy).await;
        says("shut").await;

        namespace.api::<NetworkPolicy>().delete("nothing-out", &DeleteParams::default()).await.unwrap();
        says("open").await;

        namespace.delete().await;
        drop(accepting);
    });
}

/// The listener is on the machine, outside the namespaces, at each IPv4 address that the machine has.
#[test]
fn nothing_outside_the_namespaces_is_reachable_from_a_pod() {
    let Some(cluster) = Cluster::ours("a machine that it runs on") else { return };
    let machine = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = machine.local_addr().unwrap().port();
    let addresses = addresses();
    assert!(addresses.len() > 1, "the machine has no network that a pod could reach");
    for address in &addresses {
        assert!(reaches(*address, port), "{address} isn't the machine's");
        machine.accept().unwrap();
    }
    cluster.test(async |kubernetes| {
        // The node itself first, through which the pods' traffic would go.
        for address in &addresses {
            assert!(!reaches(*address, port), "{address} is reachable from the node");
        }
        let namespace = kubernetes.namespace("nothing-outside").await;
        // Besides: the way out that doesn't exist, and an address of no network here.
        let mut targets: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        targets.extend(["10.99.0.254".to_owned(), "203.0.113.1".to_owned()]);
        let knock =
            format!(r#"for address; do nc -w 2 "$address" {port} </dev/null && echo "$address"; done; true"#);
        let mut command = vec!["sh", "-c", &knock, "sh"];
        command.extend(targets.iter().map(String::as_str));
        namespace.create_object(&pod::restricted("curious", kubernetes.image("probe"), &command)).await;

        namespace.succeeds("curious").await;

        let reached = namespace.api::<Pod>().logs("curious", &LogParams::default()).await.unwrap();
        let refused = reached.lines().filter(|line| line.starts_with("nc: ")).count();
        assert_eq!((refused, reached.lines().count()), (targets.len(), targets.len()), "{reached}");
        namespace.delete().await;
    });
    machine.set_nonblocking(true).unwrap();
    assert!(machine.accept().is_err(), "something connected");
}

/// The IPv4 addresses of the machine; the cluster has no other.
fn addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().unwrap();
    interfaces.filter_map(|each| Some(IpAddr::from(each.address?.as_sockaddr_in()?.ip()))).collect()
}

/// Whether a connection from this thread's network arrives.
fn reaches(address: IpAddr, port: u16) -> bool {
    TcpStream::connect_timeout(&(address, port).into(), Duration::from_secs(2)).is_ok()
}
