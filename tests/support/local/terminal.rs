//! A real terminal with a command in it.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::pty::openpty;

use super::command::{Caisson, Collected};
use super::wait;

/// What a person types as the end of input.
pub const END_OF_INPUT: &[u8] = b"\x04";
/// What Ctrl-C sends.
pub const CONTROL_C: &[u8] = b"\x03";

/// A command whose three streams are one terminal, which it also controls.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Collected,
}

impl Terminal {
    /// Starts a command in a session of its own: without one, Ctrl-C would reach nobody.
    pub fn start(caisson: &Caisson) -> Self {
        let pty = openpty(None, None).unwrap();
        let side = || Stdio::from(pty.slave.try_clone().unwrap());
        let inner = &caisson.command;
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = inner.get_current_dir() {
            command.current_dir(directory);
        }
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        drop(command);
        let keyboard = File::from(pty.master);
        let screen = Collected::of(keyboard.try_clone().unwrap());
        Self { child, keyboard, screen }
    }

    pub fn until_shown(&self, what: &str) {
        wait::until(what, || self.screen.text(), || self.screen.text().contains(what));
    }

    pub fn send(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Waits for the end; how it ended and everything that was on the screen.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let mut status = None;
        wait::until(
            "the end",
            || self.screen.text(),
            || {
                status = self.child.try_wait().unwrap();
                status.is_some() && self.screen.is_over()
            },
        );
        (status.unwrap(), self.screen.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
