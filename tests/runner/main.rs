//! The runner with real processes: the real binary, a real socket and a small supervisor of the tests' own.

mod delivery;
mod ending;
mod output;
mod protection;
mod support;
