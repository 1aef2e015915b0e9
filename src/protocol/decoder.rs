//! Bytes to records, incrementally, from a peer that isn't trusted.

use super::frame::{self, Kind, PREFIX};
use super::{LaunchError, MAX_PAYLOAD, Record};

/// Turns a stream of bytes, cut anywhere, into records of one direction.
///
/// # Guarantees
/// - No input makes it panic, and how the input is cut doesn't change what comes out.
/// - It holds at most one header and one payload. Memory grows with bytes that arrived, never with a length that was
///   only announced, and never beyond the bound given to [`Decoder::new`].
/// - After an error it stays failed: a stream that went wrong once has no trustworthy frame boundary any more.
pub struct Decoder<R: Record> {
    max_payload: u64,
    state: State,
    /// A header whose payload is still arriving.
    pending: Option<Pending<R>>,
}

struct Pending<R: Record> {
    header: R::Header,
    payload: Vec<u8>,
    /// Bytes of payload that are still to come.
    missing: u64,
}

enum State {
    /// Inside a frame's prefix, of which this much is known.
    Prefix { bytes: [u8; PREFIX], known: usize },
    /// Inside a control frame's body.
    Control { body: Vec<u8>, missing: usize },
    /// Inside a data frame's body.
    Data { missing: usize },
    /// The stream is broken.
    Failed,
}

const START: State = State::Prefix { bytes: [0; PREFIX], known: 0 };

/// Why a stream of records is unusable. Names sizes and kinds, never content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A frame of no known kind.
    #[error("unknown kind of frame {code}")]
    UnknownKind {
        /// The kind's code.
        code: u8,
    },
    /// A frame that is empty or longer than its kind may be ([`MAX_CONTROL`](super::MAX_CONTROL),
    /// [`MAX_DATA`](super::MAX_DATA)).
    #[error("frame of {bytes} bytes is empty or too large")]
    FrameSize {
        /// The announced length.
        bytes: u32,
    },
    /// A header where payload was due, or payload that no header announced.
    #[error("frame out of order")]
    OutOfOrder,
    /// A record that announces more payload than the bound.
    #[error("record announces {bytes} bytes of payload, more than {max}")]
    PayloadTooLarge {
        /// The announced length.
        bytes: u64,
        /// The decoder's bound.
        max: u64,
    },
    /// A header that isn't the JSON of a known record. What is wrong isn't repeated, since it would quote the peer.
    #[error("malformed record header at byte {column}")]
    MalformedHeader {
        /// Where the parser stopped.
        column: usize,
    },
    /// A payload that doesn't divide as its header says.
    #[error("record payload does not match its header")]
    WrongPayload,
    /// A launch that nobody could start.
    #[error("launch can not be started")]
    Launch(#[source] LaunchError),
    /// An earlier error made the stream unusable.
    #[error("stream already failed")]
    AlreadyFailed,
}

impl<R: Record> Default for Decoder<R> {
    fn default() -> Self {
        Self::new(MAX_PAYLOAD)
    }
}

impl<R: Record> Decoder<R> {
    /// A decoder that accepts payloads of at most `max_payload` bytes per record.
    ///
    /// A supervisor that knows its launch can set it to twice the output limit, or one data frame if that is more.
    #[must_use]
    pub const fn new(max_payload: u64) -> Self {
        Self { max_payload, state: START, pending: None }
    }

    /// Consumes `input` up to the end of the next record, or all of it.
    ///
    /// Call it until it gives `None`; `input` is empty then and the rest of the record is still to come.
    ///
    /// # Errors
    /// The peer broke the protocol; the stream is to be closed.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<R>, DecodeError> {
        let result = self.advance(input);
        if result.is_err() {
            self.state = State::Failed;
            self.pending = None;
        }
        result
    }

    /// Whether the stream stands between two records, so that its end here isn't an end in the middle.
    #[must_use]
    pub const fn is_between_records(&self) -> bool {
        matches!(self.state, State::Prefix { known: 0, .. }) && self.pending.is_none()
    }

    /// Bytes allocated for what is still incomplete.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let header = if let State::Control { body, .. } = &self.state { body.capacity() } else { 0 };
        header + self.pending.as_ref().map_or(0, |pending| pending.payload.capacity())
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<R>, DecodeError> {
        loop {
            let record = match &mut self.state {
                State::Failed => return Err(DecodeError::AlreadyFailed),
                State::Prefix { bytes, known } => {
                    let part = take(input, PREFIX - *known);
                    for (slot, byte) in bytes.iter_mut().skip(*known).zip(part) {
                        *slot = *byte;
                    }
                    *known += part.len();
                    if *known < PREFIX {
                        return Ok(None);
                    }
                    self.state = begin(*bytes, self.pending.as_ref().map(|pending| pending.missing))?;
                    None
                }
                State::Control { body, missing } => {
                    let part = take(input, *missing);
                    body.extend_from_slice(part);
                    *missing -= part.len();
                    if *missing > 0 {
                        return Ok(None);
                    }
                    let body = std::mem::take(body);
                    self.state = START;
                    self.begin_record(&body)?
                }
                State::Data { missing } => {
                    let pending = self.pending.as_mut().ok_or(DecodeError::OutOfOrder)?;
                    let part = take(input, *missing);
                    pending.payload.extend_from_slice(part);
                    pending.missing -= part.len() as u64;
                    *missing -= part.len();
                    if *missing > 0 {
                        return Ok(None);
                    }
                    self.state = START;
                    self.finish_record()?
                }
            };
            if record.is_some() {
                return Ok(record);
            }
        }
    }

    fn begin_record(&mut self, body: &[u8]) -> Result<Option<R>, DecodeError> {
        let header: R::Header = serde_json::from_slice(body)
            .map_err(|error| DecodeError::MalformedHeader { column: error.column() })?;
        let missing = R::announced(&header);
        if missing > self.max_payload {
            return Err(DecodeError::PayloadTooLarge { bytes: missing, max: self.max_payload });
        }
        self.pending = Some(Pending { header, payload: Vec::new(), missing });
        self.finish_record()
    }

    /// The pending record, if all of its payload is here.
    fn finish_record(&mut self) -> Result<Option<R>, DecodeError> {
        match self.pending.take_if(|pending| pending.missing == 0) {
            Some(complete) => R::assemble(complete.header, complete.payload).map(Some),
            None => Ok(None),
        }
    }
}

/// Checks a frame's prefix. `due` is how much payload is missing, if a header announced any.
fn begin(prefix: [u8; PREFIX], due: Option<u64>) -> Result<State, DecodeError> {
    let (kind, bytes) = frame::read_prefix(prefix);
    let kind = kind.ok_or(DecodeError::UnknownKind { code: prefix[PREFIX - 1] })?;
    let missing = usize::try_from(bytes)
        .ok()
        .filter(|length| (1..=kind.limit()).contains(length))
        .ok_or(DecodeError::FrameSize { bytes })?;
    match (kind, due) {
        (Kind::Control, None) => Ok(State::Control { body: Vec::new(), missing }),
        (Kind::Data, Some(due)) if u64::from(bytes) <= due => Ok(State::Data { missing }),
        _ => Err(DecodeError::OutOfOrder),
    }
}

/// Splits off up to `length` bytes.
fn take<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (part, rest) = input.split_at(length.min(input.len()));
    *input = rest;
    part
}

impl<R: Record> std::fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("max_payload", &self.max_payload)
            .field("between_records", &self.is_between_records())
            .finish_non_exhaustive()
    }
}
