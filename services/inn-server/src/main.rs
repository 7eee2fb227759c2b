//! `inn`: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    inn_server::cli::main()
}
