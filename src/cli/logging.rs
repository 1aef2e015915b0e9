//! `CAISSON_LOG`: what caisson itself does, for whoever looks for a fault in it. Nothing is logged unless it asks.

use std::io;

use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use super::terminal::Terminal;

/// The variable that turns logs on, in the syntax of `tracing`'s `EnvFilter`: `debug`, `caisson::controller=trace`.
const VARIABLE: &str = "CAISSON_LOG";

/// Logs to standard error as far as the environment asks for it.
///
/// # Guarantees
/// Only events of caisson's own are written, and those hold identifiers, states, codes, counts and durations, never text. What a
/// dependency would log at a level that nobody thought of stays out whatever the filter says.
pub(super) fn start(terminal: Terminal) {
    let Some(directives) = requested() else { return };
    let Ok(filter) = EnvFilter::try_new(directives) else {
        terminal.tell(&format!(
            "{VARIABLE} is not a filter such as debug or caisson::supervisor=trace; nothing is logged\n"
        ));
        return;
    };
    let own = filter_fn(|metadata| metadata.target().split("::").next() == Some(env!("CARGO_CRATE_NAME")));
    let layer =
        fmt::layer().with_writer(io::stderr).with_ansi(terminal.lively).with_filter(filter).with_filter(own);
    // It is the first and only one.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

#[expect(clippy::disallowed_methods, reason = "logs are wanted before anything else is read")]
fn requested() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|directives| !directives.is_empty())
}
