//! What tests of the whole binary share: a person's account, a command line, a terminal, repositories, processes, waiting.

pub mod account;
pub mod command;
pub mod process;
pub mod repo;
pub mod terminal;
pub mod wait;

pub use account::Account;
pub use command::{Caisson, Finished, Running};
pub use repo::Repo;
