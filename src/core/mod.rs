//! The pure part.
