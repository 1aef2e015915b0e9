//! Conditions: typed, each with a documented reason. There is no phase.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Code;
use crate::redact::Redacted;

/// One observation about an object.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word; the reference lists all.
    pub reason: Reason,
    /// Why, for people.
    #[schemars(with = "String", length(max = 32_768))]
    #[serde(default, deserialize_with = "Redacted::deserialize_stored")]
    pub message: Redacted,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// Generation that this was observed for.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It doesn't.
    False,
    /// Not known (yet).
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a condition is about.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The task and its definition are sound and fit each other.
    Validated,
    /// What would run is approved, or needs no approval.
    Approved,
    /// The task was let in by idempotency, rate and concurrency.
    Admitted,
    /// The agent's network is limited, and that was proven.
    EgressEnforced,
    /// The workspace stands at its commit.
    WorkspaceReady,
    /// The agent did what it was asked to. Unknown while the task is active.
    Succeeded,
    /// Nothing will change any more.
    Finished,
    /// Work goes on (kstatus).
    Reconciling,
    /// Nothing goes on until someone acts (kstatus).
    Stalled,
    /// Tasks may use this definition.
    Ready,
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident,)+) => {
        /// Why a condition has its status. A failure's reason is its code's, such as `NonzeroExit`.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
            /// A failure.
            Failure(Code),
            /// A reason of another release.
            Other(String),
        }

        impl Reason {
            /// Every reason of its own with what it means; those of failures are the codes'.
            pub const DOCUMENTED: &[(&'static str, &'static str)] = &[$((stringify!($variant), concat!($($doc),+))),+];

            /// The reason as one word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                    Self::Failure(code) => code.reason(),
                    Self::Other(text) => text,
                }
            }

            fn parse(text: &str) -> Self {
                match text {
                    $(stringify!($variant) => Self::$variant,)+
                    _ => Code::ALL
                        .iter()
                        .find(|code| code.reason() == text)
                        .map_or_else(|| Self::Other(text.to_owned()), |code| Self::Failure(*code)),
                }
            }
        }
    };
}

reasons! {
    /// Everything that can be checked before a start is in order.
    Valid,
    /// The definition needs no approval.
    NotRequired,
    /// Nobody has approved the digest yet.
    WaitingForApproval,
    /// An approval names another digest than the present one.
    ApprovalStale,
    /// The digest is approved by someone who may.
    Approved,
    /// The caller of a local run approved it for themselves.
    SelfApproved,
    /// Not asked yet, because an earlier gate hasn't been passed.
    NotReached,
    /// Let in.
    Admitted,
    /// Egress is limited, and a probe proved it.
    Proven,
    /// The executor can't limit egress; the preview says so.
    NotEnforced,
    /// The workspace is being made.
    Preparing,
    /// The workspace is ready.
    WorkspacePrepared,
    /// Nothing has been started yet.
    Pending,
    /// The sandbox is being started.
    Starting,
    /// The agent runs.
    Running,
    /// The agent is being ended.
    Stopping,
    /// A dry run: the preview is the result.
    DryRun,
    /// The result of an earlier task with the same idempotency key.
    Replayed,
    /// Done as asked.
    Succeeded,
    /// The task is still active.
    Active,
    /// Terminal.
    Finished,
    /// Moving on by itself.
    Progressing,
    /// Waiting for a person.
    WaitingForPerson,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

impl JsonSchema for Reason {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Reason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "minLength": 1, "maxLength": 1024})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_its_text_whatever_release_wrote_it() {
        let failures = Code::ALL.iter().map(|code| Reason::Failure(*code));
        let documented = Reason::DOCUMENTED.iter().map(|(name, _)| Reason::parse(name));
        for reason in failures.chain(documented).chain([Reason::Other("FromTomorrow".to_owned())]) {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), reason);
        }
        assert!(
            Reason::DOCUMENTED
                .iter()
                .all(|(name, _)| !matches!(Reason::parse(name), Reason::Other(_) | Reason::Failure(_)))
        );
    }
}
