//! The caisson binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    caisson::cli::main()
}
