//! The command that writes a commented configuration and a platform to begin with.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::Misuse;

/// Files that are written: name and content.
const FILES: [(&str, &str); 2] =
    [("run.toml", include_str!("init/run.toml")), ("platform.toml", include_str!("init/platform.toml"))];

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Directory of the files, which is created if necessary.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Writes the files, none of which may exist.
pub(crate) fn run(arguments: &InitArguments) -> Result<()> {
    let files = FILES.map(|(name, content)| (arguments.directory.join(name), content));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(Misuse(format!("{} exists: name another directory", path.display())).into());
    }
    for (path, content) in &files {
        outputs::write_file(path, content.as_bytes()).with_context(|| path.display().to_string())?;
        tracing::info!("wrote {}", path.display());
    }
    let config = files[0].0.display();
    tracing::info!("name a trace in {config}, then: pdes-replay run {config}");
    Ok(())
}
