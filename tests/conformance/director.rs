//! Whoever the supervisors answer to: it writes down what they say, and answers when the test says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use async_trait::async_trait;
use caisson::core::decide::RunState;
use caisson::core::outcome::{Failure, Outcome};
use caisson::core::plan::RunId;
use caisson::executor::Executor;
use caisson::protocol::Stream;
use caisson::redact::Redacted;
use caisson::supervisor::Report;
use caisson::supervisor::control::{Control, Order, Ready};
use tokio::sync::watch;

pub type Answer = Result<Order, Failure>;

#[derive(Default)]
pub struct Director {
    notes: Mutex<Notes>,
    /// Changes with every new answer.
    answered: watch::Sender<()>,
    executor: OnceLock<Weak<dyn Executor>>,
}

#[derive(Default)]
struct Notes {
    launches: HashMap<RunId, usize>,
    answers: HashMap<RunId, Answer>,
    reports: HashMap<RunId, Vec<Outcome>>,
    states_at_report: Vec<RunState>,
    live: HashMap<RunId, String>,
}

impl Director {
    /// Lets it look at the states of the runs that report.
    pub fn watch(&self, executor: &Arc<dyn Executor>) {
        assert!(self.executor.set(Arc::downgrade(executor)).is_ok(), "watched once");
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// Answers every request of this run, also one that waits already. Until then there is no answer.
    pub fn answer(&self, run: &RunId, answer: Answer) {
        self.notes().answers.insert(run.clone(), answer);
        self.answered.send_replace(());
    }

    /// How often the grant was asked for.
    pub fn launches(&self, run: &RunId) -> usize {
        self.notes().launches.get(run).copied().unwrap_or_default()
    }

    pub fn reports(&self, run: &RunId) -> Vec<Outcome> {
        self.notes().reports.get(run).cloned().unwrap_or_default()
    }

    /// The states that runs were in when they reported.
    pub fn states_at_report(&self) -> Vec<RunState> {
        self.notes().states_at_report.clone()
    }

    pub fn live(&self, run: &RunId) -> String {
        self.notes().live.get(run).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Control for Director {
    async fn launch(&self, run: &RunId, _ready: Ready) -> Answer {
        let mut answered = self.answered.subscribe();
        *self.notes().launches.entry(run.clone()).or_default() += 1;
        loop {
            if let Some(answer) = self.notes().answers.get(run).cloned() {
                return answer;
            }
            answered.changed().await.unwrap();
        }
    }

    async fn report(&self, run: &RunId, report: Report) {
        let state = match self.executor.get().and_then(Weak::upgrade) {
            Some(executor) => executor.observe(run).await.unwrap(),
            None => RunState::Absent,
        };
        let mut notes = self.notes();
        notes.states_at_report.push(state);
        notes.reports.entry(run.clone()).or_default().push(report.outcome);
    }

    fn live(&self, run: &RunId, _stream: Stream, text: Redacted) {
        self.notes().live.entry(run.clone()).or_default().push_str(text.as_str());
    }
}
