//! Where the supervisors of a local run reach its controller.

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::api::Code;
use crate::core::outcome::Failure;
use crate::core::plan::RunId;
use crate::protocol::Stream;
use crate::redact::Redacted;
use crate::supervisor::Report;
use crate::supervisor::control::{Control, Order, Ready};

/// A piece of live output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Where it was written to.
    pub stream: Stream,
    /// What was written, redacted.
    pub text: Redacted,
}

/// What a supervisor wants of the controller.
pub(super) enum Request {
    Launch { run: RunId, reply: oneshot::Sender<Result<Order, Failure>> },
    Report { run: RunId, report: Box<Report> },
    Live(Live),
}

/// Puts supervisors' requests into the controller's queue.
pub(super) struct Hub {
    requests: mpsc::UnboundedSender<Request>,
}

impl Hub {
    pub(super) fn new(requests: mpsc::UnboundedSender<Request>) -> Self {
        Self { requests }
    }

    /// A controller that is gone wants nothing any more.
    fn send(&self, request: Request) {
        let _ = self.requests.send(request);
    }
}

#[async_trait]
impl Control for Hub {
    async fn launch(&self, run: &RunId, _ready: Ready) -> Result<Order, Failure> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Launch { run: run.clone(), reply });
        answer.await.unwrap_or(Err(Failure { code: Code::ControlLost, system_code: None }))
    }

    async fn report(&self, run: &RunId, report: Report) {
        self.send(Request::Report { run: run.clone(), report: Box::new(report) });
    }

    fn live(&self, _run: &RunId, stream: Stream, text: Redacted) {
        self.send(Request::Live(Live { stream, text }));
    }
}
