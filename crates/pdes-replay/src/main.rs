//! The command `pdes-replay`.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// Asks for large pages: the state of many ranks is read in no order, and small pages make each read look for its page, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
