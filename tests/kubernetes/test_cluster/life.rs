//! The life of test clusters: side by side, and what is left when they end.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::{Cluster, is_alive, pod};

#[test]
fn two_clusters_run_side_by_side_and_leave_nothing() {
    if !Cluster::can_be_ours("clusters of its own") {
        return;
    }
    let [first, second] = ["first", "second"].map(Cluster::start);
    for cluster in [&first, &second] {
        cluster.test(async |kubernetes| {
            let namespace = kubernetes.namespace("side-by-side").await;
            let probe = kubernetes.image("probe");
            namespace.create_object(&pod::restricted("same-name", probe, &["sleep", "1000"])).await;
            namespace.wait::<Pod>("same-name", "run", pod::running).await;
        });
    }
    let traces = [Traces::of(&first), Traces::of(&second)];
    assert_ne!(traces[0].processes, traces[1].processes);
    let [of_first, of_second] = traces;

    drop(first);

    of_first.assert_gone();
    assert!(is_alive(&of_second.state), "the other cluster ended too");
    second.test(async |kubernetes| {
        let namespace = kubernetes.namespace("still-there").await;
        namespace.create_object(&pod::restricted("one-more", kubernetes.image("probe"), &["true"])).await;
        namespace.succeeds("one-more").await;
    });
    drop(second);
    of_second.assert_gone();
}

/// What a killed test leaves: a state directory and control groups, without a process. The next run removes it, and
/// nothing of a cluster that runs.
#[test]
fn what_a_killed_cluster_left_is_removed_by_the_next() {
    if !Cluster::can_be_ours("clusters of its own") {
        return;
    }
    // Other tests' clusters look for leftovers too, but not here.
    let states = tempfile::tempdir().unwrap();
    let living = Cluster::start_in(states.path(), "living");
    let mut killed = Cluster::start_in(states.path(), "killed");
    killed.test(async |kubernetes| {
        let namespace = kubernetes.namespace("killed").await;
        namespace
            .create_object(&pod::restricted("last", kubernetes.image("probe"), &["sleep", "1000"]))
            .await;
        namespace.wait::<Pod>("last", "run", pod::running).await;
    });
    let traces = Traces::of(&killed);

    let mut script = killed.disown();
    kill(Pid::from_raw(script.id().cast_signed()), Signal::SIGKILL).unwrap();
    assert_eq!(script.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));

    // Only the kernel is left to end the rest.
    traces.wait_for_processes_to_end();
    assert!(traces.state.is_dir(), "there is nothing to remove");
    living.script(&["clean"]);
    traces.assert_gone();
    assert!(is_alive(living.state()), "a running cluster was removed");
    living.test(async |kubernetes| {
        kubernetes.client.apiserver_version().await.unwrap();
    });
}

/// What a running cluster has on the machine.
struct Traces {
    state: PathBuf,
    processes: BTreeSet<Process>,
    cgroups: Vec<PathBuf>,
}

/// A process, told apart from a later one with the same id by when it started, in clock ticks after the machine did.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    id: i32,
    started: u64,
}

impl Process {
    /// `None` if there is none of that id.
    fn of(id: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The second field is in parentheses and may hold anything; the 22nd is the start. proc_pid_stat(5).
        let (_, rest) = stat.rsplit_once(") ")?;
        Some(Self { id, started: rest.split(' ').nth(19)?.parse().ok()? })
    }

    fn is_alive(&self) -> bool {
        Self::of(self.id).is_some_and(|now| now == *self)
    }
}

impl Traces {
    fn of(cluster: &Cluster) -> Self {
        let process_1 = cluster.process_1().unwrap();
        let state = cluster.state().to_owned();
        let cgroups = cgroups_of(&state);
        let daemons = processes_in(&fs::read_link(format!("/proc/{process_1}/ns/pid")).unwrap());
        // Containers have process namespaces of their own.
        let containers: BTreeSet<_> = cgroups.iter().flat_map(|group| processes_of(group)).collect();
        // At the least, by `tests/cluster/node`; and a pause process and a container.
        assert!(daemons.len() >= 10 && containers.len() >= 2, "{daemons:?} {containers:?}");
        let processes = daemons.into_iter().chain(containers).filter_map(Process::of).collect();
        Self { state, processes, cgroups }
    }

    fn wait_for_processes_to_end(&self) {
        let ended = || self.alive().is_empty() && !is_alive(&self.state);
        crate::wait::until("its processes to end", || format!("{:?}", self.alive()), ended);
    }

    fn assert_gone(&self) {
        let alive = self.alive();
        assert!(alive.is_empty(), "{alive:?} are left");
        assert!(!self.state.exists(), "{} is left", self.state.display());
        let left: Vec<_> = self.cgroups.iter().filter(|group| group.exists()).collect();
        assert!(left.is_empty(), "{left:?} are left");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*self.state.to_string_lossy()), "{mounts}");
    }

    fn alive(&self) -> Vec<&Process> {
        self.processes.iter().filter(|process| process.is_alive()).collect()
    }
}

/// The processes in a process namespace.
fn processes_in(namespace: &Path) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|id: &i32| fs::read_link(format!("/proc/{id}/ns/pid")).is_ok_and(|its| its == namespace))
        .collect()
}

/// The processes in a control group and those below it.
fn processes_of(group: &Path) -> Vec<i32> {
    let script = r#"find "$0" -name cgroup.procs -exec cat {} +"#;
    let output = Command::new("sh").args(["-c", script]).arg(group).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|id| id.parse().unwrap()).collect()
}

fn cgroups_of(state: &Path) -> Vec<PathBuf> {
    let name = format!("caisson-test-{}", state.file_name().unwrap().to_string_lossy());
    let output = Command::new("find")
        .args(["/sys/fs/cgroup", "-maxdepth", "2", "-type", "d", "-name", &name])
        .output()
        .unwrap();
    let groups: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(PathBuf::from).collect();
    assert!(!groups.is_empty(), "no control group is named {name}");
    groups
}
