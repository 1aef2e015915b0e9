//! Versioned records between the runner and the supervisor.
