//! `trace generate`: archives of known programs.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use clap::Args;
use netmodel::quantity::Speed;
use pdes_replay::ProgramArguments;
use trace_tools::Export;

use super::super::progress;

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Archive that is written; with the name FILE.goal its schedule, FILE.dim for Dimemas.
    #[arg(short, long, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
    /// Number of data files, each for an equal part of the ranks.
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    shards: u32,
    /// Speed at which computations become the times of a schedule [flop/s].
    #[arg(id = "schedule_speed", long = "speed", global = true, value_name = "SPEED", value_parser = super::super::arguments::parse_rate::<Speed>)]
    speed: Option<f64>,
}

/// Writes the archive that the arguments describe.
pub(super) fn run(arguments: &GenerateArguments) -> Result<String> {
    let Some(output) = &arguments.output else {
        return Err(super::super::Misuse("name the archive to write with --output FILE".to_owned()).into());
    };
    let export = Export::of(output);
    if arguments.speed.is_some() && export.is_none() {
        let hint =
            "--speed is for other formats, such as --output FILE.goal; of an archive give it to the replay";
        return Err(super::super::Misuse(hint.to_owned()).into());
    }
    let folder = export.map(|_| tempfile::tempdir()).transpose()?;
    let archive = &folder.as_ref().map_or(output.clone(), |folder| folder.path().join("program.pdt"));
    let generator = arguments.program.generator()?;
    let done = AtomicU64::new(0);
    let write =
        || -> Result<_> { Ok(arguments.program.write(&*generator, archive, arguments.shards, &done)?) };
    let summary = progress::watch_count(&done, generator.ranks().into(), "ranks", write)?;
    let described = match export {
        Some(export) => super::write_export(export, archive, output, arguments.speed)?,
        None => super::describe_archive(output, &summary),
    };
    let notes = generator.notes().into_iter().map(|note| note + "\n");
    Ok(described + &notes.collect::<String>())
}
