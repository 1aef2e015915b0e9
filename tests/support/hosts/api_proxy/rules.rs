//! Which fault strikes which request: rules are data, and choosing one is a function over them.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::call::{Call, Match};

/// What goes wrong for the requests of a match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    matches: Match,
    fault: Fault,
    times: Option<usize>,
}

/// What goes wrong. "Until lifted" is until the rule is lifted, which also lets go on what it holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Answered in place of the API server.
    Refuse(Refusal),
    /// The connection ends before the API server has the request.
    Drop,
    /// The API server does what was asked, and the connection ends before its answer.
    LoseReply,
    /// The API server doesn't have the request until lifted. A client that leaves takes its request along,
    /// which the record of it says.
    HoldRequest,
    /// The API server does what was asked; its answer waits until lifted.
    HoldReply,
    /// A watch: events wait until lifted, the connection stays open.
    StallWatch,
    /// A watch: the connection ends.
    CutWatch,
    /// A watch: an `ERROR` event with 410 Gone, after which it ends.
    ExpireWatch,
}

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    status: u16,
    reason: String,
    retry_after: Option<u32>,
}

/// A rule that a proxy has.
#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
}

/// The number of a rule, never used again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RuleId(usize);

/// The rules that a proxy has, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    active: Vec<Active>,
    changes: usize,
}

/// When in a request's life a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The request has arrived.
    Request,
    /// The API server answers it with a stream of events.
    Stream,
}

impl Rule {
    /// For each matching request until it is lifted; a watch fault also for each matching watch that is open already.
    pub(crate) fn new(matches: Match, fault: Fault) -> Self {
        Self { matches, fault, times: None }
    }

    /// For the next `times` matching requests only.
    #[must_use]
    pub(crate) fn times(self, times: usize) -> Self {
        Self { times: Some(times), ..self }
    }
}

impl Fault {
    /// An answer with an error status, with the reason that the API server gives with it.
    pub(crate) fn status(status: u16) -> Self {
        Self::Refuse(Refusal { status, reason: reason(status).to_owned(), retry_after: None })
    }

    /// The same where a status has several reasons, as 409 has `AlreadyExists` besides `Conflict`.
    pub(crate) fn status_with_reason(status: u16, reason: &str) -> Self {
        Self::Refuse(Refusal { status, reason: reason.to_owned(), retry_after: None })
    }

    /// 429 with `Retry-After` in seconds.
    pub(crate) fn too_many_requests(retry_after: u32) -> Self {
        let reason = reason(429).to_owned();
        Self::Refuse(Refusal { status: 429, reason, retry_after: Some(retry_after) })
    }

    fn stage(&self) -> Stage {
        match self {
            Self::StallWatch | Self::CutWatch | Self::ExpireWatch => Stage::Stream,
            _ => Stage::Request,
        }
    }
}

impl Refusal {
    /// What a watch gets whose resource version is too old.
    pub(super) fn expired() -> Self {
        Self { status: 410, reason: reason(410).to_owned(), retry_after: None }
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).expect("a test's status is one")
    }

    pub(super) fn retry_after(&self) -> Option<u32> {
        self.retry_after
    }

    /// The object `Status` that the API server would send.
    pub(super) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "a fault that a test has set", "reason": self.reason, "code": self.status,
        });
        if let Some(seconds) = self.retry_after {
            body["details"] = json!({"retryAfterSeconds": seconds});
        }
        body
    }
}

/// `metav1.StatusReason`.
fn reason(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

impl Rules {
    /// Adds a rule, after all others.
    pub(crate) fn add(&mut self, rule: Rule) -> RuleId {
        self.changes += 1;
        let id = RuleId(self.changes);
        self.active.push(Active { id, rule });
        id
    }

    /// Removes a rule. One that has struck as often as it may stays until then, for what it holds.
    pub(crate) fn lift(&mut self, id: RuleId) {
        self.changes += 1;
        self.active.retain(|active| active.id != id);
    }

    /// Whether a rule still holds what it struck.
    pub(crate) fn holds(&self, id: RuleId) -> bool {
        self.active.iter().any(|active| active.id == id)
    }

    /// How often rules were added or removed: another number, other rules.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// The first rule for a request at a stage, those in `struck` left out, and what it does; it has struck once more
    /// then.
    pub(crate) fn strike(&mut self, call: &Call, stage: Stage, struck: &[RuleId]) -> Option<(RuleId, Fault)> {
        let strikes = |active: &&mut Active| {
            active.rule.times != Some(0)
                && active.rule.fault.stage() == stage
                && active.rule.matches.matches(call)
                && !struck.contains(&active.id)
        };
        let active = self.active.iter_mut().find(strikes)?;
        active.rule.times = active.rule.times.map(|times| times - 1);
        Some((active.id, active.rule.fault.clone()))
    }
}
