//! Versioned records between the runner and the supervisor, over one byte stream.
//!
//! Pure: no IO, no clock, nothing of the other modules. The stream is a unix socket locally and loopback TCP in a pod,
//! so no file descriptor ever travels with a record.
//!
//! # Wire format, version 1
//!
//! ```text
//! frame   := length (u32, big endian, of body) kind (u8) body
//! kind    := 1 control: one JSON header, at most 64 KiB
//!          | 2 data:    the next bytes of the payload that the last header announced, 1 byte to 1 MiB
//! record  := one control frame, then data frames until the announced payload is complete
//! ```
//!
//! A header holds numbers and fixed words only. Every text that comes from a person, a secret or an agent (arguments,
//! environment, prompt, token, output) travels as payload: it needs no escaping, stays byte-exact, and can't show up in
//! the message of a JSON error.
//!
//! # Order
//!
//! | runner → supervisor | supervisor → runner |
//! |---|---|
//! | [`ToSupervisor::Hello`], once: everything is prepared, and this token proves who asks | |
//! | | [`ToRunner::Launch`], once; a second one counts as losing the supervisor |
//! | [`ToSupervisor::Started`], unless the start failed | |
//! | [`ToSupervisor::Output`], only if the launch asks for live output | [`ToRunner::Stop`], any number, the first decides |
//! | [`ToSupervisor::Exited`], exactly once, last; then the runner closes and ends | |
//!
//! A closed or half-closed stream means that the peer is lost. A stop before the launch ends the runner without a report.

mod decoder;
mod frame;
mod launch;
mod record;
mod report;
mod token;

pub use decoder::{DecodeError, Decoder};
pub use frame::{MAX_CONTROL, MAX_DATA};
pub use launch::{Launch, LaunchError, LaunchFile, Limits, MAX_DURATION, Stdin};
pub use record::{EncodeError, Record, Stop, StopReason, Stream, ToRunner, ToSupervisor};
pub use report::{
    Ended, ExecReport, Exit, Outcome, StreamReport, SystemCode, SystemCodeError, TerminationMethod,
};
pub use token::Token;

/// Version of the records. Both ends are the same binary in practice; the supervisor refuses any other number.
pub const VERSION: u32 = 1;

/// Longest tail of one output stream, in bytes (16 MiB): the protocol's own ceiling of `max_output_bytes`.
pub const MAX_TAIL: u64 = 16 << 20;

/// Longest payload of one record, in bytes: two tails.
pub const MAX_PAYLOAD: u64 = 2 * MAX_TAIL;

#[cfg(test)]
mod tests;
