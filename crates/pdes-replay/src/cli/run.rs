//! The main command: a replay.

use anyhow::{Context, Result};
use pdes_core::Progress;
use pdes_replay::{Config, Job, Report, Scene};

use super::arguments::RunArguments;
use super::{Misuse, progress, summary};

/// Replays what the arguments say and prints the result.
pub(crate) fn run(arguments: &RunArguments) -> Result<()> {
    let job = job(arguments)?;
    check_report(&job)?;
    let scene = load(&job, arguments.quiet)?;
    for warning in scene.warnings() {
        tracing::warn!("{warning}");
    }
    let trace = scene.trace();
    tracing::info!(
        "replaying {} actions of {} ranks on {} ({}), {} thread(s)",
        trace.actions(),
        trace.ranks(),
        job.platform,
        job.model.name(),
        job.threads
    );
    let counters = Progress::new(job.threads);
    let outcome =
        progress::watch_replay(&counters, trace.actions(), arguments.quiet, || scene.replay(&counters))?;
    let report = Report::new(&scene, &outcome);
    if let Some(path) = &job.report {
        report.write(path).with_context(|| format!("the report {}", path.display()))?;
        tracing::info!("wrote the report {}", path.display());
    }
    summary::print(&report, &outcome, arguments.quiet)?;
    Ok(())
}

/// Puts the configuration file and the flags together.
fn job(arguments: &RunArguments) -> Result<Job> {
    let mut config = match &arguments.config {
        Some(path) => Config::from_path(path)?,
        None => Config::default(),
    };
    if arguments.config.is_none() && arguments.trace.is_none() && arguments.set.is_empty() {
        let hint = "nothing to replay: give --config FILE, or --trace PATH and --platform FILE (see --help)";
        return Err(Misuse(hint.to_owned()).into());
    }
    for assignment in &arguments.set {
        config.set(assignment)?;
    }
    let paths = [
        ("trace", "path", &arguments.trace),
        ("platform", "file", &arguments.platform),
        ("output", "report", &arguments.report),
    ];
    for (section, key, path) in paths {
        if let Some(path) = path {
            config.set_path(section, key, path);
        }
    }
    if let Some(model) = &arguments.model {
        config.insert("network", "model", model.as_str().into());
    }
    if let Some(threads) = arguments.threads {
        config.insert("engine", "threads", threads.into());
    }
    Ok(config.resolve()?)
}

/// A long run should not end with a report that cannot be written.
fn check_report(job: &Job) -> Result<()> {
    let Some(path) = &job.report else { return Ok(()) };
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) {
        anyhow::bail!("the report {}: its directory does not exist; create it first", path.display());
    }
    Ok(())
}

fn load(job: &Job, quiet: bool) -> Result<Scene> {
    tracing::info!("reading {}", job.trace.display());
    let actions = std::sync::atomic::AtomicU64::new(0);
    Ok(progress::watch_load(&actions, quiet, || Scene::load_watched(job, &actions))?)
}
