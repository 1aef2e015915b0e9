//! The caisson binary.
fn main() {}
