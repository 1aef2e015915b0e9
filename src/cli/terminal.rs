//! The three streams, and whether a person sits in front of them.

use std::io::{self, BufRead, IsTerminal, Write};

/// What the command line may assume about its streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    /// Whether a question can be asked: standard input and standard error are a terminal.
    pub(super) interactive: bool,
    /// Whether standard output takes colours.
    pub(super) colour: bool,
    /// Whether standard error is a terminal, so that a line may be rewritten.
    pub(super) lively: bool,
}

impl Terminal {
    pub(super) fn of_process() -> Self {
        let (stdin, stdout, stderr) =
            (io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal());
        let plain = no_colour();
        Self { interactive: stdin && stderr, colour: stdout && !plain, lively: stderr && !plain }
    }

    /// Writes a result. A reader that has gone away has seen enough.
    #[expect(clippy::unused_self, reason = "what is written depends on the terminal; so should the call")]
    pub(super) fn print(self, text: &str) {
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }

    /// Writes for the person who waits.
    #[expect(clippy::unused_self, reason = "what is written depends on the terminal; so should the call")]
    pub(super) fn tell(self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Asks a question that `y` or `yes` answers; anything else, also the end of input, is no.
    pub(super) fn confirm(self, question: &str) -> bool {
        self.tell(question);
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// Tells an error and what caused it, once, on one line.
    pub(super) fn complain(self, error: &dyn std::error::Error) {
        let mut line = format!("error: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            line.push_str(": ");
            line.push_str(&cause.to_string());
            source = cause.source();
        }
        line.push('\n');
        self.tell(&line);
    }
}

/// <https://no-color.org>: any value but an empty one.
#[expect(clippy::disallowed_methods, reason = "the one place where the terminal's conventions are read")]
fn no_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set("NO_COLOR") || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
