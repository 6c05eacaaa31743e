//! The command `pdes-replay`.
#![deny(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// Asks for large pages: the state of many ranks is read in no order, and small pages make each read look for its page, too. Where
/// there are few ranks, it gets small ones (`cli/pages.rs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
