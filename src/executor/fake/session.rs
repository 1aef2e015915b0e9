//! The pretended supervisor of one sandbox.

use std::sync::Arc;

use tokio::sync::watch;

use super::script::Script;
use super::{Fault, World};
use crate::api::LogMode;
use crate::core::decide::RunState;
use crate::core::outcome::{Failure, Outcome};
use crate::core::plan::RunId;
use crate::protocol::Stream;
use crate::supervisor::control::{Order, Ready};
use crate::supervisor::{Report, StopSignal};

pub(super) struct Session {
    pub(super) world: Arc<World>,
    pub(super) id: RunId,
    pub(super) script: Script,
    pub(super) state: watch::Sender<RunState>,
}

/// How a sandbox comes to its end.
enum Ending {
    /// With this to say.
    Reports(Box<Outcome>),
    /// Without a word.
    Dies,
    /// And nothing of it is left.
    Vanishes,
}

impl Session {
    /// The report comes before the state says that the sandbox ended, as everywhere.
    pub(super) async fn run(self, mut stop: StopSignal) {
        match self.live(&mut stop).await {
            Ending::Reports(outcome) => {
                self.report(&outcome).await;
                self.announce(RunState::Ended);
            }
            Ending::Dies => self.announce(RunState::Ended),
            Ending::Vanishes => self.world.forget(&self.id),
        }
    }

    async fn live(&self, stop: &mut StopSignal) -> Ending {
        if self.strikes(Fault::VanishesBeforeGrant) {
            return Ending::Vanishes;
        }
        if self.strikes(Fault::DiesBeforeGrant) {
            return Ending::Dies;
        }
        let answers = tokio::select! {
            // As in the real one: a grant that comes together with a stop is not used.
            biased;
            stop = stop.next() => vec![Err(Failure::stopped(stop.reason))],
            answers = self.ask() => answers,
        };
        if self.strikes(Fault::VanishesAtGrant) {
            return Ending::Vanishes;
        }
        let mut refusal = None;
        let mut order = None;
        for answer in answers {
            match answer {
                Ok(granted) => {
                    // Each grant starts an agent. That there is only one is for the controller to see to.
                    self.count_start();
                    order = Some(granted);
                }
                Err(failure) => refusal = refusal.or(Some(failure)),
            }
        }
        match (order, refusal) {
            (Some(order), _) => self.follow(&order, stop).await,
            (None, Some(failure)) => {
                Ending::Reports(Box::new(Outcome { failure: Some(failure), ..Outcome::default() }))
            }
            (None, None) => Ending::Dies,
        }
    }

    async fn ask(&self) -> Vec<Result<Order, Failure>> {
        let ask = || self.world.control.launch(&self.id, Ready { base: None });
        if self.strikes(Fault::LaunchTwice) {
            let (first, second) = tokio::join!(ask(), ask());
            vec![first, second]
        } else {
            vec![ask().await]
        }
    }

    async fn follow(&self, order: &Order, stop: &mut StopSignal) -> Ending {
        self.announce(RunState::Running);
        if order.logs == LogMode::Redacted && !self.script.says.is_empty() {
            self.world.control.live(&self.id, Stream::Stdout, self.script.text());
        }
        if self.strikes(Fault::VanishesAfterStart) {
            // Whoever watches may see that it ran.
            tokio::task::yield_now().await;
            return Ending::Vanishes;
        }
        let outcome = self.script.perform(order.limits.timeout.to_std(), stop).await;
        if self.strikes(Fault::OutcomeLost) { Ending::Dies } else { Ending::Reports(Box::new(outcome)) }
    }

    async fn report(&self, outcome: &Outcome) {
        let report = || Report { outcome: outcome.clone(), change: None };
        self.world.control.report(&self.id, report()).await;
        if self.strikes(Fault::OutcomeTwice) {
            self.world.control.report(&self.id, report()).await;
        }
    }

    fn strikes(&self, fault: Fault) -> bool {
        self.world.strikes(fault, &self.id)
    }

    fn announce(&self, state: RunState) {
        self.state.send_replace(state);
        self.world.announce(&self.id);
    }

    fn count_start(&self) {
        *self.world.state().starts.entry(self.id.clone()).or_default() += 1;
    }
}
