//! The executor in memory.

use std::sync::Arc;
use std::time::Duration;

use caisson::core::plan::RunId;
use caisson::executor::Executor;
use caisson::executor::fake::{FakeExecutor, Lasts, Script};
use caisson::supervisor::control::Control;

use crate::agents::Agent;
use crate::subjects::Subject;

pub struct Fake(FakeExecutor);

impl Subject for Fake {
    const NAME: &'static str = "fake";
    const PAUSED: bool = true;

    fn new(control: Arc<dyn Control>) -> Self {
        Self(FakeExecutor::new(control))
    }

    fn executor(&self) -> Arc<dyn Executor> {
        Arc::new(self.0.clone())
    }

    fn program(&self, uid: &str, agent: &Agent) -> String {
        let brief = Script { lasts: Lasts::For(Duration::from_millis(1)), ..Script::default() };
        let script = match agent {
            Agent::Exit(code) => Script { exit_code: *code, ..brief },
            Agent::DieBySignal => Script { exit_code: -1, ..brief },
            Agent::Print(text) => Script { says: (*text).to_owned(), ..brief },
            Agent::WriteFile(_) => Script { files: 1, ..brief },
            Agent::WaitUntilStopped => Script { lasts: Lasts::UntilStopped, ..brief },
            Agent::IgnoreSigterm => Script { lasts: Lasts::UntilStopped, ignores_sigterm: true, ..brief },
        };
        self.0.script(uid, script);
        "agent".to_owned()
    }

    fn starts(&self, run: &RunId) -> usize {
        self.0.starts_of(run)
    }

    fn remains(&self, run: &RunId) -> Vec<String> {
        self.0.sandboxes().iter().filter(|sandbox| *sandbox == run).map(ToString::to_string).collect()
    }
}
