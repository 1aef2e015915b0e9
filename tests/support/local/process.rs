//! The processes of this machine, as `/proc` shows them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A process that has something to do with a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: String,
}

/// Every other process whose command line, environment or working directory names `root`: all that an account started,
/// whatever group, session or parent it has. Zombies have none of the three.
pub fn of(root: &Path) -> Vec<Process> {
    let needle = root.as_os_str().as_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let directory = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let places = [command.as_slice(), &environment, directory.as_os_str().as_bytes()];
        if places.iter().any(|place| contains(place, needle)) {
            found.push(Process { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") });
        }
    }
    found
}

/// Whether `text` has `needle` in it.
pub fn contains(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len()).any(|window| window == needle)
}
