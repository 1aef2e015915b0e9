//! The way by which an executor asks its run's supervisor to end the run.

use std::time::Duration;

use tokio::sync::watch;

use crate::protocol::{Stop, StopReason};

/// A switch and its signal. `grace` is what the agent gets when the switch is dropped.
pub fn stop_channel(grace: Duration) -> (StopSwitch, StopSignal) {
    let (sender, receiver) = watch::channel(None);
    (
        StopSwitch(sender),
        StopSignal { asked: receiver, lost: Some(Stop { reason: StopReason::ControlLost, grace }) },
    )
}

/// Asks for the end of one run. Dropping it asks too: nobody controls the run any more.
#[derive(Debug)]
pub struct StopSwitch(watch::Sender<Option<Stop>>);

impl StopSwitch {
    /// Asks for the end. The first reason counts; a later request can shorten the grace, not lengthen it.
    pub fn ask(&self, stop: Stop) {
        self.0.send_if_modified(|asked| match asked {
            None => {
                *asked = Some(stop);
                true
            }
            Some(first) if stop.grace < first.grace => {
                first.grace = stop.grace;
                true
            }
            Some(_) => false,
        });
    }
}

/// Where a supervisor hears of it.
#[derive(Debug)]
pub struct StopSignal {
    asked: watch::Receiver<Option<Stop>>,
    /// What a dropped switch means, until it was told.
    lost: Option<Stop>,
}

impl StopSignal {
    /// Waits for the next request: the first, or a shorter grace. Dropping the future loses none.
    pub async fn next(&mut self) -> Stop {
        loop {
            if self.asked.changed().await.is_err() {
                return match self.lost.take() {
                    Some(stop) => stop,
                    None => std::future::pending().await,
                };
            }
            if let Some(stop) = *self.asked.borrow_and_update() {
                return stop;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stop(reason: StopReason, seconds: u64) -> Stop {
        Stop { reason, grace: Duration::from_secs(seconds) }
    }

    #[tokio::test]
    async fn the_first_reason_counts_and_the_grace_only_shrinks() {
        let (switch, mut signal) = stop_channel(Duration::ZERO);
        switch.ask(stop(StopReason::Retired, 5));
        assert_eq!(signal.next().await, stop(StopReason::Retired, 5));
        switch.ask(stop(StopReason::Cancelled, 9));
        switch.ask(stop(StopReason::Interrupted, 0));
        assert_eq!(signal.next().await, stop(StopReason::Retired, 0));
    }

    #[tokio::test]
    async fn a_dropped_switch_is_told_once() {
        let (switch, mut signal) = stop_channel(Duration::from_secs(3));
        drop(switch);
        assert_eq!(signal.next().await, stop(StopReason::ControlLost, 3));
        let again = tokio::time::timeout(Duration::ZERO, signal.next()).await;
        assert!(again.is_err(), "it is told once");
    }
}
