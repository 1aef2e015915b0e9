//! A Kubernetes for tests: `tests/cluster/cluster`, in namespaces of its own, or the cluster that `KUBECONFIG` names.
//!
//! ```ignore
//! Cluster::any().test(async |kubernetes| {
//!     let namespace = kubernetes.namespace("a-pod-runs").await;
//!     namespace.create(&pod::restricted("hello", kubernetes.image("probe"), &["true"])).await;
//!     namespace.wait::<Pod>("hello", "succeed", pod::succeeded).await;
//! });
//! ```
//!
//! `./test` starts one cluster for all tests and names it in `CAISSON_TEST_CLUSTER`. A test that is started without it uses
//! the one that `tests/cluster/cluster up` left, else starts one that ends with it. A test that breaks things starts its own.
//!
//! Guarantees: the test's thread, and the threads and processes that it starts, are in the cluster's network, so that
//! servers which the test binds are hosts outside for the pods. A cluster that a test started ends with the test's process,
//! however that ends. A failing test prints what its namespace held.

mod dump;
mod namespace;
mod outside;
pub(crate) mod pod;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, setns};

pub(crate) use namespace::Namespace;
pub(crate) use outside::OutsideAddress;

/// The script that makes clusters.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/cluster");

/// Where clusters keep their state; as in the script.
const STATES: &str = "/tmp/caisson-clusters";

/// Its registries: one that anybody may pull from, and one that asks for a name and a password. As in `tests/cluster/node`
/// and `tests/cluster/images`.
const REGISTRY: &str = "198.51.100.2";
const PRIVATE_REGISTRY: PrivateRegistry =
    PrivateRegistry { host: "198.51.100.3", user: "puller", password: "only-for-tests" };

/// A running cluster. Ends when dropped if this test started it.
pub(crate) struct Cluster {
    place: Place,
    process: Option<Child>,
}

enum Place {
    /// One of ours, and its state directory.
    Ours(PathBuf),
    /// Somebody's, by kubeconfig: no host outside is ours there, and no daemon.
    Foreign(PathBuf),
}

impl Cluster {
    /// Whatever cluster the tests run on.
    pub(crate) fn any() -> Self {
        if let Some(state) = variable("CAISSON_TEST_CLUSTER") {
            return Self { place: Place::Ours(state.into()), process: None };
        }
        if let Some(kubeconfig) = foreign() {
            return Self { place: Place::Foreign(kubeconfig), process: None };
        }
        let daily = Path::new(&states()).join("dev");
        if is_alive(&daily) {
            return Self { place: Place::Ours(daily), process: None };
        }
        Self::start("test")
    }

    /// The cluster, if it is one of ours; see [`Self::can_be_ours`].
    pub(crate) fn ours(needed_for: &str) -> Option<Self> {
        Self::can_be_ours(needed_for).then(Self::any)
    }

    /// Whether the tests run on a cluster of ours. Otherwise says that the test is skipped, and why: only on somebody's
    /// cluster may that happen.
    #[expect(clippy::print_stdout, reason = "the reason of a skipped test is for who reads its output")]
    pub(crate) fn can_be_ours(needed_for: &str) -> bool {
        let ours = foreign().is_none();
        if !ours {
            println!("skipped on the cluster of KUBECONFIG: it needs {needed_for}");
        }
        ours
    }

    /// A cluster of this test's own. Its name is `name` with something that no other run has.
    ///
    /// # Panics
    /// With what the script said if it doesn't boot.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_in(Path::new(&states()), name)
    }

    /// The same with another directory for state directories. Leftovers are looked for there alone.
    pub(crate) fn start_in(states: &Path, name: &str) -> Self {
        let mut command = Command::new(SCRIPT);
        command
            .arg("run")
            .args(["--name", &format!("{name}-{}", std::process::id())])
            .env("CAISSON_TEST_STATE", states);
        if let Some(kube) = variable("CAISSON_TEST_KUBE") {
            command.args(["--kube", &kube]);
        }
        // The script ends the cluster when its standard input does, which the kernel sees to if this process is killed.
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("tests/cluster/cluster starts");
        let mut state = String::new();
        let output = process.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut state).expect("the script's output can be read");
        assert!(!state.trim().is_empty(), "the cluster {name} didn't boot");
        Self { place: Place::Ours(state.trim().into()), process: Some(process) }
    }

    /// Runs a test on a thread in the cluster's network.
    ///
    /// # Panics
    /// With what the test panicked, and if the network can't be joined, which needs root.
    pub(crate) fn test(&self, test: impl AsyncFnOnce(Kubernetes) + Send) {
        let on_thread = || {
            if let Some(process) = self.process_1() {
                let network = File::open(format!("/proc/{process}/ns/net")).expect("the cluster runs");
                setns(network, CloneFlags::CLONE_NEWNET).expect("joining a network needs root");
            }
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(async { test(Kubernetes::connect(self).await).await });
        };
        std::thread::scope(|scope| scope.spawn(on_thread).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    /// A command of the script about this cluster, such as `kill kubelet`.
    ///
    /// # Panics
    /// If the script fails.
    pub(crate) fn script(&self, arguments: &[&str]) -> String {
        let output = Command::new(SCRIPT)
            .args(arguments)
            .env("CAISSON_TEST_CLUSTER", self.state())
            .env("CAISSON_TEST_STATE", self.state().parent().expect("it is in a directory"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .expect("the script starts");
        assert!(output.status.success(), "cluster {arguments:?} failed: {}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The process in which its namespaces are, as this process's namespace counts.
    pub(crate) fn process_1(&self) -> Option<i32> {
        let Place::Ours(state) = &self.place else { return None };
        let id = std::fs::read_to_string(state.join("init.pid")).expect("the cluster runs");
        Some(id.trim().parse().expect("a process id"))
    }

    /// The script's process, whose end this value no longer sees to.
    ///
    /// # Panics
    /// If this test didn't start the cluster.
    pub(crate) fn disown(&mut self) -> Child {
        self.process.take().expect("this test started the cluster")
    }

    /// The state directory.
    ///
    /// # Panics
    /// On somebody's cluster.
    pub(crate) fn state(&self) -> &Path {
        match &self.place {
            Place::Ours(state) => state,
            Place::Foreign(_) => panic!("only our own cluster has a state directory: use Cluster::ours"),
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        match &self.place {
            Place::Ours(state) => state.join("admin.kubeconfig"),
            Place::Foreign(path) => path.clone(),
        }
    }

    /// The images' references by their names. `tests/cluster/images/build` prints such a list, for registries of ours;
    /// for somebody's cluster `CAISSON_TEST_IMAGES` is a list with references that its nodes can pull.
    fn images(&self) -> BTreeMap<String, String> {
        let (path, registry) = match &self.place {
            Place::Ours(state) => (state.join("images"), format!("{REGISTRY}/")),
            Place::Foreign(_) => {
                let list = variable("CAISSON_TEST_IMAGES");
                (list.expect("CAISSON_TEST_IMAGES lists images for your cluster").into(), String::new())
            }
        };
        let text = std::fs::read_to_string(&path).expect("the images were built");
        let words = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), format!("{registry}{}", words.next()?)))
        };
        text.lines().filter_map(words).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let status = process.wait().expect("the script can be waited for");
            assert!(status.success() || std::thread::panicking(), "the cluster left something: {status}");
        }
    }
}

/// What a test on a cluster has.
pub(crate) struct Kubernetes {
    /// An administrator's client.
    pub(crate) client: kube::Client,
    /// What that client was made of.
    pub(crate) config: kube::Config,
    images: BTreeMap<String, String>,
    state: Option<PathBuf>,
}

impl Kubernetes {
    async fn connect(cluster: &Cluster) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).expect("the cluster has a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("the kubeconfig is complete");
        let state = match &cluster.place {
            Place::Ours(state) => Some(state.clone()),
            Place::Foreign(_) => None,
        };
        let client = kube::Client::try_from(config.clone()).expect("a client can be made");
        Self { client, config, images: cluster.images(), state }
    }

    /// The reference of an image of `tests/cluster/images`.
    ///
    /// # Panics
    /// If there is none of that name.
    pub(crate) fn image(&self, name: &str) -> &str {
        self.images.get(name).unwrap_or_else(|| panic!("no image {name}: {:?}", self.images))
    }

    /// The registry that asks for a password, with the same images.
    ///
    /// # Panics
    /// On somebody's cluster.
    pub(crate) fn private_registry(&self) -> PrivateRegistry {
        assert!(self.state.is_some(), "only our own cluster has a registry");
        PRIVATE_REGISTRY
    }

    /// A namespace of this test's own that enforces the Pod Security Standard `restricted`.
    pub(crate) async fn namespace(&self, name: &str) -> Namespace {
        Namespace::create(self.client.clone(), name).await
    }

    /// Certificate and key of the cluster's authority, which its nodes trust for every registry.
    ///
    /// # Panics
    /// On somebody's cluster.
    pub(crate) fn authority(&self) -> (PathBuf, PathBuf) {
        let keys = self.state.as_deref().expect("only our own cluster shows its keys").join("pki");
        (keys.join("ca.crt"), keys.join("ca.key"))
    }

    /// An address that no other test has, for servers that pods take for hosts outside.
    ///
    /// # Panics
    /// On somebody's cluster.
    pub(crate) fn outside_address(&self) -> OutsideAddress {
        OutsideAddress::allocate(self.state.as_deref().expect("only our own cluster has hosts outside"))
    }
}

/// See [`Kubernetes::private_registry`].
pub(crate) struct PrivateRegistry {
    pub(crate) host: &'static str,
    pub(crate) user: &'static str,
    pub(crate) password: &'static str,
}

/// Whether a cluster runs whose state is here: its process 1 and its daemons hold the lock. Looking is in nobody's way.
///
/// # Panics
/// If the lock can't be tried.
pub(crate) fn is_alive(state: &Path) -> bool {
    let Ok(lock) = File::open(state.join("lock")) else { return false };
    match Flock::lock(lock, FlockArg::LockSharedNonblock) {
        Ok(_) => false,
        Err((_, Errno::EWOULDBLOCK)) => true,
        Err((_, error)) => panic!("the lock of {} can't be tried: {error}", state.display()),
    }
}

/// The kubeconfig of somebody's cluster, if the tests run there.
fn foreign() -> Option<PathBuf> {
    let kubeconfig = variable("KUBECONFIG").map(PathBuf::from);
    kubeconfig.filter(|_| variable("CAISSON_TEST_CLUSTER").is_none())
}

/// The directory of all state directories.
pub(crate) fn states() -> String {
    variable("CAISSON_TEST_STATE").unwrap_or_else(|| STATES.to_owned())
}

#[expect(clippy::disallowed_methods, reason = "tests are configured by their environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
