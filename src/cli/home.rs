//! Where this user keeps things, after the XDG base directory specification.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the command line takes from its environment, read once.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Folder of the user's own definitions.
    pub(super) definitions: Option<PathBuf>,
    /// Folder for the state of runs.
    pub(super) state: Option<PathBuf>,
    /// The search path for programs.
    pub(super) search_path: OsString,
    /// The user's name, for approvals of their own.
    pub(super) user: String,
}

impl Home {
    pub(super) fn of_process() -> Self {
        let under = |variable: &str, default: &str| {
            let chosen = env(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            chosen
                .or_else(|| Some(PathBuf::from(env("HOME")?).join(default)))
                .map(|base| base.join("caisson"))
        };
        Self {
            definitions: under("XDG_CONFIG_HOME", ".config").map(|config| config.join("definitions")),
            state: under("XDG_STATE_HOME", ".local/state"),
            search_path: env("PATH").unwrap_or_default(),
            user: user(),
        }
    }
}

fn user() -> String {
    let entry = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    entry.map_or_else(|| nix::unistd::getuid().to_string(), |user| user.name)
}

#[expect(clippy::disallowed_methods, reason = "the one place where the command line reads its environment")]
fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
