//! From an outcome's facts to the one code that names what went wrong.

use super::outcome::{End, Execution, Failure, Outcome};
use crate::api::Code;
use crate::protocol::SystemCode;

/// Why a run did not succeed; `None` when it did.
///
/// What ended the agent from outside comes first, then what the agent itself reported, then its exit code: a success envelope
/// followed by exit 1 is `nonzero-exit`, an error envelope with exit 0 is `agent-reported-error`.
pub fn classify(outcome: &Outcome) -> Option<Failure> {
    let Some(execution) = &outcome.execution else {
        // Without an agent there is no success; a report that names no failure breaks the protocol.
        return Some(
            outcome.failure.clone().unwrap_or(Failure { code: Code::InvalidExecResult, system_code: None }),
        );
    };
    let reading = outcome.reading.as_ref();
    ended_from_outside(execution)
        .map(|code| failure(code, execution.system_code.as_ref()))
        .or_else(|| outcome.failure.clone())
        .or_else(|| {
            reading.is_some_and(|reading| reading.failed).then(|| failure(Code::AgentReportedError, None))
        })
        .or_else(|| {
            (execution.exit_code != Some(0))
                .then(|| failure(Code::NonzeroExit, execution.system_code.as_ref()))
        })
        .or_else(|| {
            (!reading.is_some_and(|reading| reading.parsed)).then(|| failure(Code::ParseOutputFailed, None))
        })
}

fn ended_from_outside(execution: &Execution) -> Option<Code> {
    match execution.end {
        End::Exited => None,
        End::SpawnFailed => Some(Code::SpawnFailed),
        End::TimedOut => Some(Code::Timeout),
        End::Cancelled => Some(Code::Cancelled),
        End::Retired => Some(Code::DefinitionRetired),
        End::Interrupted => Some(Code::Evicted),
        End::ControlLost => Some(Code::ControlLost),
        End::ProcessLimit => Some(Code::ExecFailed),
        End::TerminationFailed => Some(Code::TerminationFailed),
    }
}

fn failure(code: Code, system_code: Option<&SystemCode>) -> Failure {
    Failure { code, system_code: system_code.cloned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::StreamFacts;
    use crate::core::outcome::Reading;

    #[test]
    fn one_code_names_what_went_wrong() {
        // end, exit code, parsed, failed → code
        let table = [
            (End::Exited, Some(0), true, false, None),
            (End::Exited, Some(0), true, true, Some(Code::AgentReportedError)),
            (End::Exited, Some(1), true, true, Some(Code::AgentReportedError)),
            (End::Exited, Some(1), true, false, Some(Code::NonzeroExit)),
            (End::Exited, Some(-1), false, false, Some(Code::NonzeroExit)),
            (End::Exited, Some(0), false, false, Some(Code::ParseOutputFailed)),
            (End::Exited, None, true, false, Some(Code::NonzeroExit)),
            (End::TimedOut, Some(-1), true, false, Some(Code::Timeout)),
            (End::TimedOut, Some(0), true, false, Some(Code::Timeout)),
            (End::Cancelled, Some(-1), false, false, Some(Code::Cancelled)),
            (End::Retired, Some(-1), false, false, Some(Code::DefinitionRetired)),
            (End::Interrupted, Some(-1), false, false, Some(Code::Evicted)),
            (End::ControlLost, Some(-1), false, false, Some(Code::ControlLost)),
            (End::ProcessLimit, Some(-1), false, false, Some(Code::ExecFailed)),
            (End::TerminationFailed, None, false, false, Some(Code::TerminationFailed)),
            (End::SpawnFailed, None, false, false, Some(Code::SpawnFailed)),
        ];
        for (end, exit_code, parsed, failed, expected) in table {
            let outcome = Outcome {
                execution: Some(execution(end, exit_code)),
                reading: Some(Reading { parsed, failed, ..Reading::default() }),
                ..Outcome::default()
            };
            assert_eq!(
                classify(&outcome).map(|failure| failure.code),
                expected,
                "{end:?} {exit_code:?} {parsed} {failed}"
            );
        }
    }

    #[test]
    fn a_failure_beside_the_agent_comes_before_what_the_agent_says() {
        let mut outcome = Outcome::before_start(Code::WorkspaceFailed, SystemCode::new("REVISION_NOT_FOUND"));
        assert_eq!(classify(&outcome).unwrap().system_code.unwrap().as_str(), "REVISION_NOT_FOUND");
        outcome.failure = None;
        assert_eq!(classify(&outcome).unwrap().code, Code::InvalidExecResult);
        outcome.failure = Some(Failure { code: Code::DiskFull, system_code: None });
        outcome.execution = Some(execution(End::Exited, Some(1)));
        assert_eq!(classify(&outcome).unwrap().code, Code::DiskFull);
    }

    fn execution(end: End, exit_code: Option<i32>) -> Execution {
        let (stdout, stderr) = (StreamFacts::default(), StreamFacts::default());
        Execution {
            end,
            exit_code,
            system_code: None,
            termination_method: None,
            stdout,
            stderr,
            duration_ms: 1,
        }
    }
}
