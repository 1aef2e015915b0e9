//! The digest: what a reviewer approves.

use serde::Serialize;

use super::canonical;
use crate::api::{AgentCliTaskSpec, Release};

/// Everything that an approval is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// UID of the task, so that an approval can't be carried to a task of the same name. Local runs have [`LOCAL_UID`].
    pub uid: &'a str,
    /// Namespace of the task; empty in a local run.
    pub namespace: &'a str,
    /// Name of the task.
    pub name: &'a str,
    /// The whole spec.
    pub spec: &'a AgentCliTaskSpec,
    /// SHA-256 of the prompt, wherever it stands.
    pub prompt_sha256: &'a str,
    /// Hash of the definition's contract.
    pub contract_hash: &'a str,
    /// What would be started.
    pub release: &'a Release,
}

/// UID of every local task: the same file gives the same digest, so that it can be approved on a second command line.
pub const LOCAL_UID: &str = "local";

/// The hash that an approval names. Any change of what would run changes it.
pub fn digest(subject: &Subject<'_>) -> String {
    let Subject { uid, namespace, name, spec, prompt_sha256, contract_hash, release } = *subject;
    canonical::hash(&Approved {
        format: "caisson.dev/digest/v1",
        uid,
        namespace,
        name,
        spec,
        prompt_sha256,
        contract_hash,
        release,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Approved<'a> {
    format: &'static str,
    uid: &'a str,
    namespace: &'a str,
    name: &'a str,
    spec: &'a AgentCliTaskSpec,
    prompt_sha256: &'a str,
    contract_hash: &'a str,
    release: &'a Release,
}

#[cfg(test)]
mod tests;
