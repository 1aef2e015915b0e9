//! Everything here runs real git over real files.

mod apply;
mod diff;
mod fetch;
mod fixture;
mod hostile;
mod local;
mod process;
mod property;
mod units;
