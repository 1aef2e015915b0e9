//! The connection to the supervisor: records in, records out, never blocking.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Clock;
use super::error::RunnerError;
use super::guard::{Signals, Told};
use crate::protocol::{Decoder, Record as _, ToRunner, ToSupervisor, Token};

/// How long the runner waits for its token and for someone who listens.
pub(super) const APPEAR: Duration = Duration::from_secs(10);

/// Between two attempts to connect.
const RETRY_MILLIS: u16 = 20;

/// From this much unsent output on, in bytes (1 MiB), nothing more is read from the agent.
const CONGESTED: usize = 1 << 20;

/// A connection, or what is left of one.
#[derive(Debug)]
pub(super) struct Link {
    socket: Option<UnixStream>,
    decoder: Decoder<ToRunner>,
    unsent: Vec<u8>,
    sent: usize,
}

impl Link {
    /// Connects, trying again until [`APPEAR`] has passed.
    pub(super) fn connect(path: &Path, signals: &Signals, clock: Clock) -> Result<Self, RunnerError> {
        loop {
            let source = match UnixStream::connect(path) {
                Ok(socket) => {
                    let prepare = |source| RunnerError::Prepare { step: "use the socket", source };
                    socket.set_nonblocking(true).map_err(prepare)?;
                    let socket = Some(socket);
                    return Ok(Self { socket, decoder: Decoder::default(), unsent: Vec::new(), sent: 0 });
                }
                Err(source) => source,
            };
            if clock.now() >= APPEAR {
                return Err(RunnerError::NoSupervisor { path: path.to_owned(), source });
            }
            wait_readable(signals.as_fd(), RETRY_MILLIS).map_err(|source| RunnerError::Wait { source })?;
            if signals.take() == Some(Told::Interrupted) {
                return Err(RunnerError::Interrupted);
            }
        }
    }

    /// The socket and what to wait for on it, unless it is lost.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let flags =
            if self.is_flushed() { PollFlags::POLLIN } else { PollFlags::POLLIN | PollFlags::POLLOUT };
        self.socket.as_ref().map(|socket| (socket.as_fd(), flags))
    }

    /// Whether nothing waits to be sent.
    pub(super) const fn is_flushed(&self) -> bool {
        self.unsent.len() == self.sent
    }

    /// Whether the supervisor is gone.
    pub(super) const fn is_lost(&self) -> bool {
        self.socket.is_none()
    }

    /// Whether the supervisor reads more slowly than the agent writes.
    pub(super) const fn is_congested(&self) -> bool {
        self.unsent.len() - self.sent >= CONGESTED
    }

    /// Queues a record. Live output that is far beyond congestion is dropped: after the agent's end it is read whether
    /// or not the supervisor keeps up, and the tails have it.
    pub(super) fn send(&mut self, record: &ToSupervisor) -> Result<(), RunnerError> {
        let is_surplus =
            matches!(record, ToSupervisor::Output { .. }) && self.unsent.len() - self.sent >= 2 * CONGESTED;
        if self.is_lost() || is_surplus {
            return Ok(());
        }
        record.encode(&mut self.unsent).map_err(|source| RunnerError::Encode { source })
    }

    /// Sends what the socket takes now.
    pub(super) fn flush(&mut self) {
        while let (Some(socket), Some(rest @ [_, ..])) = (&mut self.socket, self.unsent.get(self.sent..)) {
            match socket.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.socket = None,
            }
        }
        if self.is_flushed() || self.sent >= CONGESTED {
            self.unsent.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reads once and gives the records that are complete. A closed or broken stream makes the link lost.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Vec<ToRunner> {
        let mut records = Vec::new();
        let Some(socket) = &mut self.socket else { return records };
        let count = match socket.read(buffer) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return records;
            }
            Err(_) => 0,
        };
        let mut rest = buffer.get(..count).unwrap_or_default();
        let mut is_sound = count > 0;
        while is_sound && !rest.is_empty() {
            match self.decoder.decode(&mut rest) {
                Ok(record) => records.extend(record),
                Err(_) => is_sound = false,
            }
        }
        if !is_sound {
            self.socket = None;
        }
        records
    }

    /// Ends a flushed connection.
    pub(super) fn close(self) {
        if let Some(socket) = self.socket {
            // The supervisor has everything; that it may be gone already changes nothing.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }
}

/// Reads the token from its file, or from standard input within [`APPEAR`].
pub(super) fn read_token(file: Option<&Path>, clock: Clock) -> Result<Token, RunnerError> {
    let error = |source| RunnerError::Token { source };
    let mut bytes = [0; Token::BYTES];
    if let Some(path) = file {
        File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(error)?;
        return Ok(Token::from_bytes(bytes));
    }
    let mut stdin = io::stdin().lock();
    let mut known = 0;
    while let Some(room @ [_, ..]) = bytes.get_mut(known..) {
        let left = APPEAR.saturating_sub(clock.now()).as_millis();
        if !wait_readable(stdin.as_fd(), u16::try_from(left).unwrap_or(u16::MAX)).map_err(error)? {
            return Err(error(io::ErrorKind::TimedOut.into()));
        }
        match stdin.read(room).map_err(error)? {
            0 => return Err(error(io::ErrorKind::UnexpectedEof.into())),
            count => known += count,
        }
    }
    Ok(Token::from_bytes(bytes))
}

/// Waits until there is something to read; `false` when the time is up.
fn wait_readable(descriptor: BorrowedFd<'_>, millis: u16) -> io::Result<bool> {
    let mut set = [PollFd::new(descriptor, PollFlags::POLLIN)];
    match poll(&mut set, PollTimeout::from(millis)) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
