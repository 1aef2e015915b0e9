//! Observe → decide → execute → report: the loops that carry out the core's plans.

pub mod local;
