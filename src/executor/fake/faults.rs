//! What can go wrong around a run, on demand and counted.

use std::sync::{Mutex, PoisonError};

/// One kind of fault. Each strikes on occasions of its own: a call, an event, or a moment in a sandbox's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// `ensure` does nothing and answers with an error.
    EnsureFails,
    /// `ensure` brings the sandbox up and answers with an error all the same.
    EnsureAmbiguous,
    /// `observe` answers with an error.
    ObserveFails,
    /// `observe` answers what it answered last for this run; at first that there is none.
    ObserveStale,
    /// `stop` does nothing and answers with an error.
    StopFails,
    /// `remove` does nothing and answers with an error.
    RemoveFails,
    /// The watch doesn't tell of a change.
    EventLost,
    /// The sandbox is gone before its supervisor asks for the grant.
    VanishesBeforeGrant,
    /// The sandbox ends without a word before its supervisor asks for the grant.
    DiesBeforeGrant,
    /// The sandbox is gone after the answer to the request for the grant and before its agent starts.
    VanishesAtGrant,
    /// The sandbox is gone while its agent runs.
    VanishesAfterStart,
    /// Two instances ask for the grant at the same time; the second one doesn't report.
    LaunchTwice,
    /// The supervisor ends without reporting.
    OutcomeLost,
    /// The supervisor reports, then reports again.
    OutcomeTwice,
}

impl Fault {
    /// Every fault.
    pub const ALL: &[Self] = &[
        Self::EnsureFails,
        Self::EnsureAmbiguous,
        Self::ObserveFails,
        Self::ObserveStale,
        Self::StopFails,
        Self::RemoveFails,
        Self::EventLost,
        Self::VanishesBeforeGrant,
        Self::DiesBeforeGrant,
        Self::VanishesAtGrant,
        Self::VanishesAfterStart,
        Self::LaunchTwice,
        Self::OutcomeLost,
        Self::OutcomeTwice,
    ];
}

/// A fault on its next occasion, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    fault: Fault,
    uid: Option<String>,
    skip: usize,
    times: usize,
}

impl Injection {
    /// This fault, once.
    pub const fn of(fault: Fault) -> Self {
        Self { fault, uid: None, skip: 0, times: 1 }
    }

    /// Only after so many occasions without it.
    #[must_use]
    pub const fn after(mut self, occasions: usize) -> Self {
        self.skip = occasions;
        self
    }

    /// On so many occasions in a row.
    #[must_use]
    pub const fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// For ever.
    #[must_use]
    pub const fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Only around the task of this UID.
    #[must_use]
    pub fn only(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    fn concerns(&self, fault: Fault, uid: &str) -> bool {
        self.fault == fault && self.uid.as_deref().is_none_or(|only| only == uid)
    }

    /// Takes one occasion, and says whether the fault strikes on it.
    fn take(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let strikes = self.times > 0;
        self.times -= usize::from(strikes);
        strikes
    }
}

/// The faults that are still to come.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<Injection>>);

impl Faults {
    pub(super) fn inject(&self, injection: Injection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(injection);
    }

    /// Whether `fault` strikes now. Asking is the occasion: every injection that it concerns counts it.
    pub(super) fn strikes(&self, fault: Fault, uid: &str) -> bool {
        let mut injections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut strikes = false;
        for injection in injections.iter_mut().filter(|injection| injection.concerns(fault, uid)) {
            strikes |= injection.take();
        }
        strikes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_on_the_occasions_that_were_named() {
        let faults = Faults::default();
        faults.inject(Injection::of(Fault::StopFails).after(1).times(2).only("a"));
        let strikes = |uid| faults.strikes(Fault::StopFails, uid);
        assert_eq!([strikes("a"), strikes("b"), strikes("a"), strikes("a")], [false, false, true, true]);
        assert!(!strikes("a"), "two times are over");
        assert!(!faults.strikes(Fault::EnsureFails, "a"), "another fault has occasions of its own");
    }
}
