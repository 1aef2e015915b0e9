//! Streaming redaction of known secrets, and the only text type that sinks accept.
