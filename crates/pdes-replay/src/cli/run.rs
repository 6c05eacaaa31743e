//! The main command: replays a trace, on one process or distributed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result};
use outputs::{FileRoles, is_stdout};
use pdes_core::{Cluster, Progress};
use pdes_replay::{
    Config, ConfigError, Execution, ExecutionMode, Feature, Outcome, Parameters, Report, RunError, RunSpec,
    Simulation, StopHandle,
};
use toml::{Table, Value};
use trace_mmap::Trace;

use super::arguments::RunArguments;
use super::processes::agree;
use super::{INTERRUPTED_STATUS, Misuse, files, goal, large_pages, progress, summary, timeline};

/// Below this number of ranks their state fits in the caches of a core: large pages would take memory and save no time.
const LARGE_PAGE_RANKS: u64 = 512;

/// Runs the replay that the arguments describe on all processes of a cluster; the first one prints the result.
pub(crate) fn run(arguments: &RunArguments, quiet: bool, cluster: &mut Cluster) -> Result<()> {
    let (is_first, processes) = (cluster.member() == 0, cluster.members());
    let config = agree(cluster, config(arguments))?;
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    agree(cluster, roles.check().map_err(|conflict| Misuse::from(conflict).into()))?;
    if goal::is_loggops(&config) {
        agree(cluster, if is_first { goal::check_features(&config, processes) } else { Ok(()) })?;
        return goal::run(&config, quiet);
    }
    let trace = config.text("trace", "path").map(PathBuf::from);
    let configuration = config.relevant();
    // A wrong name of the trace comes before a missing platform.
    let resolved = config.resolve().map_err(|error| match error {
        ConfigError::Value { section: "platform", .. } => trace.and_then(unreadable).unwrap_or(error.into()),
        error => error.into(),
    });
    let spec = agree(cluster, resolved)?;
    agree(cluster, if is_first { check_outputs(&spec) } else { Ok(()) })?;
    let simulation = load(&spec, |actions| Simulation::load_on(cluster, &spec, actions))?;
    let execution = simulation.execution(processes);
    let checked = execution.check().map_err(|why| Misuse(why.to_string()).into());
    agree(cluster, if is_first { checked } else { Ok(()) })?;
    log_start(&simulation, &execution, processes);
    agree(cluster, if is_first { timeline::log_estimate(&simulation).map_err(Into::into) } else { Ok(()) })?;
    let simulation = stop_at_signals(simulation)?;
    let outcome = replay(&simulation, |counters| simulation.run(cluster, counters))?;
    let finished = outcome.map_or(Ok(()), |mut outcome| {
        if simulation.spec().delays {
            tracing::info!("replaying without some of the jobs, to find out who delays whom");
            outcome.delays = Some(answers::delays(simulation.spec(), &outcome)?);
            outcome.link_blame = simulation.link_blame()?;
        }
        finish(&simulation, &outcome, configuration, quiet)
    });
    agree(cluster, finished)
}

/// Returns the error of a trace that cannot be read.
fn unreadable(trace: PathBuf) -> Option<anyhow::Error> {
    let error = std::fs::metadata(&trace).err()?;
    Some(anyhow::Error::from(error).context(trace.display().to_string()))
}

/// Writes the profile, prints the result, and removes the checkpoint.
fn finish(simulation: &Simulation, outcome: &Outcome, configuration: Table, quiet: bool) -> Result<()> {
    let spec = simulation.spec();
    if let Some(path) = &spec.profile {
        tracing::info!("replaying again for the profile");
        let written = if simulation.execution(1).mode == ExecutionMode::Uncontended {
            replay(simulation, |counters| simulation.profile(outcome, counters))?.write(path)
        } else {
            replay(simulation, |counters| simulation.profile_regions(counters))?.write(path)
        };
        written.with_context(|| format!("the profile {}", path.display()))?;
        tracing::info!("wrote the profile {}", path.display());
    }
    print(simulation, outcome, configuration, quiet)?;
    // The checkpoint is removed last: until the results are written, it is the only way to recover them.
    spec.checkpoints.as_ref().map_or(Ok(()), |checkpoints| Ok(checkpoints.remove()?))
}

/// Makes the first interrupt (Ctrl-C, SIGTERM) stop a replay with a checkpoint, if it writes any; the second one ends it at once.
fn stop_at_signals(simulation: Simulation) -> Result<Simulation> {
    if simulation.spec().checkpoints.is_none() {
        return Ok(simulation);
    }
    let (stop, is_first) = (StopHandle::default(), AtomicBool::new(true));
    let asked = stop.clone();
    let handler = move || {
        if !is_first.swap(false, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED_STATUS.into());
        }
        tracing::info!("ending with a checkpoint; interrupt again to end at once");
        asked.request();
    };
    ctrlc::set_handler(handler).context("handling signals")?;
    Ok(simulation.with_stop(stop))
}

/// Logs the warnings, the size of a run, and hints about its distribution.
fn log_start(simulation: &Simulation, execution: &Execution, processes: usize) {
    for warning in simulation.warnings() {
        tracing::warn!("{warning}");
    }
    let (spec, trace) = (simulation.spec(), simulation.trace());
    tracing::info!(
        "replaying {} actions of {} ranks on {} ({}), {processes} process(es) with {} thread(s)",
        total(simulation, Trace::actions),
        total(simulation, |trace| trace.ranks().into()),
        spec.platform,
        spec.model.key,
        spec.threads
    );
    let surplus = simulation.surplus_processes();
    if surplus > 0 {
        tracing::info!(
            "{surplus} of {processes} processes wait, because their hosts have no cores for them; set parallel.oversubscribe to let \
             them work, too"
        );
    }
    tracing::debug!(
        "loaded in {:.3} s, with {} reading thread(s)",
        simulation.load_time().as_secs_f64(),
        spec.reading_threads
    );
    tracing::debug!("parameters {}", Parameters::describe(simulation));
    if let Some(why) = execution.obstacle(Feature::Processes) {
        tracing::info!("all ranks and the network stay on one process: {why}");
    }
    if let Some(busy) = simulation.processes_of_regions().filter(|busy| *busy < processes - surplus) {
        tracing::warn!(
            "the ranks lie in too few regions for {processes} processes: {} of them have nothing to do",
            processes - surplus - busy
        );
    }
    if processes > 1 && trace.is_in_memory() {
        tracing::info!(
            "each process reads the whole text of the trace; an archive (trace convert) is mapped instead"
        );
    }
}

fn replay<T>(simulation: &Simulation, replay: impl FnOnce(&Progress) -> Result<T, RunError>) -> Result<T> {
    large_pages::set_large_pages(total(simulation, |trace| trace.ranks().into()) >= LARGE_PAGE_RANKS);
    let counters = Progress::new(simulation.spec().threads);
    Ok(progress::watch_replay(&counters, total(simulation, Trace::actions), || replay(&counters))?)
}

/// Returns the sum of a number over the traces of all programs.
fn total(simulation: &Simulation, number: impl Fn(&Trace) -> u64) -> u64 {
    simulation.loaded_programs().map(|(_, trace, _)| number(trace)).fold(0, u64::saturating_add)
}

/// Prints the result and writes the report.
fn print(simulation: &Simulation, outcome: &Outcome, configuration: Table, quiet: bool) -> Result<()> {
    timeline::log_summary(simulation.spec(), outcome);
    simulation.outcome_warnings(outcome).iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut report = Report { configuration: Some(configuration), ..Report::new(simulation, outcome) };
    if simulation.spec().report.is_some() {
        let known = report.warnings.len();
        report.add_ideal_machines(simulation, outcome).context("a replay on an ideal machine")?;
        report.warnings[known..].iter().for_each(|warning| tracing::warn!("{warning}"));
    }
    report.add_failures(simulation, outcome).context("the job on hosts that die")?;
    report.sections.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Some(path) = &simulation.spec().report {
        report.write(path).with_context(|| format!("the report {}", path.display()))?;
        tracing::info!("wrote the report {}", path.display());
    }
    let timeline = simulation.spec().timeline.as_ref().map(|plan| &plan.path);
    let outputs = [
        simulation.spec().report.as_ref(),
        simulation.spec().profile.as_ref(),
        simulation.spec().certificate.as_ref(),
        timeline,
    ];
    let has_stdout = outputs.into_iter().flatten().any(|path| is_stdout(path));
    summary::print(&report, outcome, quiet, has_stdout)
}

/// Combines the configuration file and the flags.
pub(super) fn config(arguments: &RunArguments) -> Result<Config> {
    let config = match &arguments.config {
        Some(path) => Config::from_path(path)?,
        None => Config::default(),
    };
    if arguments.config.is_none() && arguments.trace.is_none() && arguments.set.is_empty() {
        let hint = "nothing to replay: give --config FILE, or --trace PATH and --platform FILE (see --help)";
        return Err(Misuse(hint.to_owned()).into());
    }
    with_flags(config, arguments)
}

/// Applies the flags to a configuration.
pub(super) fn with_flags(mut config: Config, arguments: &RunArguments) -> Result<Config> {
    // Settings of parts come after the flags: they may change the platform that a flag names.
    let is_part =
        |setting: &&String| setting.split('=').next().is_some_and(|name| name.matches('.').count() > 1);
    let (parts, whole): (Vec<&String>, Vec<&String>) = arguments.set.iter().partition(is_part);
    whole.iter().try_for_each(|setting| config.set(setting))?;
    let path =
        |path: &Option<PathBuf>| path.as_deref().map(|path| path.to_string_lossy().into_owned().into());
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let flags = [
        ("--trace", "trace", "path", path(&arguments.trace)),
        ("--speed", "trace", "speed", arguments.speed.as_deref().map(number)),
        ("--platform", "platform", "file", path(&arguments.platform)),
        ("--model", "network", "model", text(&arguments.model)),
        ("--threads", "engine", "threads", arguments.threads.map(Value::from)),
        ("--checkpoint", "checkpoint", "directory", path(&arguments.checkpoint)),
        ("--every", "checkpoint", "every", text(&arguments.every)),
        ("--slowdown", "jobs", "slowdown", arguments.slowdown.then_some(true.into())),
        ("--resume", "checkpoint", "resume", arguments.resume.then_some(true.into())),
        ("--report", "output", "report", path(&arguments.report)),
        ("--json", "output", "report", arguments.json.then(|| "-".into())),
        ("--profile", "output", "profile", path(&arguments.profile)),
        ("--certificate", "output", "certificate", path(&arguments.certificate)),
    ];
    for (flag, section, key, value) in flags.into_iter().chain(arguments.timeline.flags()) {
        if let Some(value) = value {
            config.set_flag(flag, section, key, value)?;
        }
    }
    parts.iter().try_for_each(|setting| config.set(setting))?;
    Ok(config)
}

/// Returns the value of a flag that is a number, or text with a unit.
pub(super) fn number(text: &str) -> Value {
    text.parse().map_or_else(|_| Value::from(text), |number: f64| number.into())
}

/// Creates the directories of outputs before the run, so that a long run does not end with a report that cannot be written.
pub(super) fn check_outputs(spec: &RunSpec) -> Result<()> {
    let timeline = spec.timeline.as_ref().map(|timeline| timeline.path.clone());
    for (what, path) in [
        ("report", &spec.report),
        ("profile", &spec.profile),
        ("certificate", &spec.certificate),
        ("timeline", &timeline),
    ] {
        path.as_ref().map_or(Ok(()), |path| check_output(what, path))?;
    }
    Ok(())
}

/// Checks that an output is no directory, and makes the one for it.
pub(super) fn check_output(what: &str, path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Misuse(format!(
            "the {what} {}: found a directory, expected the name of a file",
            path.display()
        ))
        .into());
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory
        .map_or(Ok(()), std::fs::create_dir_all)
        .with_context(|| format!("the directory of the {what} {}", path.display()))
}

fn load(spec: &RunSpec, load: impl FnOnce(&AtomicU64) -> Result<Simulation, RunError>) -> Result<Simulation> {
    tracing::info!("reading {}", spec.trace);
    let actions = AtomicU64::new(0);
    Ok(progress::watch_load(&actions, || load(&actions))?)
}
