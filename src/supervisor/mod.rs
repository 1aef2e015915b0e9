//! Beside the agent, out of its reach: prepares the workspace, asks for the grant, follows the runner, reports the outcome.
//!
//! In a pod it is a container of its own; without one it runs inside `caisson`, beside the executor. What comes from the runner
//! is untrusted, and so is the tree that the agent leaves.

pub mod control;
mod launch;
mod notes;
pub mod output;
mod sandbox;
mod session;
mod stop;
pub mod workspace;

pub use sandbox::{Programs, Sandbox};
pub use session::{Report, Runner, supervise};
pub use stop::{StopSignal, StopSwitch, stop_channel};
