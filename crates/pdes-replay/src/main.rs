//! The command `pdes-replay`.
#![deny(unsafe_code)]

mod cli;

use std::process::ExitCode;

/// Allocates large pages: the states of many ranks are read in random order, and each access to a small page would miss the TLB, too.
/// Replays of few ranks switch to small pages (`cli/pages.rs`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
