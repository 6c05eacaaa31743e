//! The commands that document the command line: manual pages, and completions for shells.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Arguments;

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut command = Arguments::command();
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}

/// Prints the manual page of the program, or writes one for each command into a directory.
pub(crate) fn man(directory: Option<&Path>) -> Result<()> {
    let command = Arguments::command();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return Ok(std::io::stdout().lock().write_all(&page)?);
    };
    clap_mangen::generate_to(command, directory).with_context(|| directory.display().to_string())
}
