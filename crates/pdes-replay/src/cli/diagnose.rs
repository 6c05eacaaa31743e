//! The command that diagnoses a run: efficiencies, problems, and what mending them would gain.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use outputs::{FileRoles, is_stdout};
use pdes_core::Cluster;
#[cfg(feature = "pictures")]
use pdes_replay::RunSpec;
use pdes_replay::{Config, DiagnosedRun, Diagnosis, DiagnosisError, Pop, Problem, Rule, RuleError};

use super::arguments::{ReplayFlags, with_input};
use super::processes::agree;
use super::{Misuse, check_suffix, explain, files, goal, large_pages, require_pictures, run, summary};

/// Name that stands for any problem.
const ANY_PROBLEM: &str = "problem";
/// Refusal of `--tolerance` for a recorded run.
const NO_NETWORK: &str = "--tolerance is about a replay on a network: name a platform with --platform";

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArguments {
    /// Configuration, if its name ends in .toml, or else a trace.
    #[arg(value_name = "CONFIG|TRACE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    run: ReplayFlags,
    /// Own rules (TOML), beside those of the program; one with the name of one of the program takes its place.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Replays the hypothesis of each problem, and prints how much time the program would save.
    #[arg(long)]
    gain: bool,
    /// File for the diagnosis (JSON); without a name stdout, and the text goes to stderr.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// File for the efficiencies as TALP writes them (JSON), for TALP-Pages.
    #[arg(long, value_name = "FILE")]
    talp: Option<PathBuf>,
    /// Diagnosis (JSON) of another run; scaling is that from the first one; may be repeated.
    #[arg(long, value_name = "FILE")]
    reference: Vec<PathBuf>,
    /// Finds how much slower the network could be, by about forty replays.
    #[arg(long)]
    tolerance: bool,
    /// File for the diagnosis as a page (HTML).
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Exits with 1 if a problem has more than this share of the time of all ranks, such as 'late sender>5%', or 'problem>5%' for any; may
    /// be repeated.
    #[arg(long, value_name = "NAME>PERCENT", value_parser = parse_limit)]
    fail_on: Vec<Limit>,
}

/// Largest share of a problem.
#[derive(Clone, Debug)]
struct Limit {
    name: String,
    share: f64,
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    let expected =
        || format!("found {text:?}, expected the name of a problem and percents, such as 'late sender>5%'");
    let (name, share) = text.split_once('>').ok_or_else(expected)?;
    let percents: f64 = share.trim().trim_end_matches('%').trim_end().parse().map_err(|_| expected())?;
    if name.trim().is_empty() || !(0.0..=100.0).contains(&percents) {
        return Err(expected());
    }
    Ok(Limit { name: name.trim().to_owned(), share: percents / 100.0 })
}

/// Replays the trace on all processes of a cluster; the first one prints the diagnosis.
pub(crate) fn run(arguments: &DiagnoseArguments, quiet: bool, cluster: &mut Cluster) -> Result<()> {
    let (rules, config) = agree(cluster, read(arguments))?;
    let (diagnosed, config) = agree(cluster, diagnosed_run(config))?;
    tracing::info!("reading {}", diagnosed.spec().trace);
    large_pages::set_large_pages(true);
    let diagnosis = Diagnosis::of(cluster, &diagnosed, &rules);
    let diagnosis = diagnosis.map_err(|error| match error {
        DiagnosisError::Rule { .. } | DiagnosisError::NoTimes => Misuse(error.to_string()).into(),
        error => anyhow::Error::from(error),
    });
    let finished = agree(cluster, diagnosis)?
        .map_or(Ok(()), |found| finish(arguments, found, (&diagnosed, &config), quiet));
    agree(cluster, finished)
}

/// Returns the title of a page: the trace, and what decides the times of a replay.
#[cfg(feature = "pictures")]
fn title(run: &DiagnosedRun) -> String {
    let RunSpec { trace, platform, model, preset, .. } = run.spec();
    match run {
        DiagnosedRun::Replay(_) => format!("{trace} on {platform} ({}, preset {})", model.key, preset.key),
        DiagnosedRun::Recorded(_) => format!("{trace}, as recorded"),
    }
}

fn read(arguments: &DiagnoseArguments) -> Result<(Vec<Rule>, Config)> {
    let rules = match &arguments.rules {
        Some(path) => Rule::own_and_from_path(path).map_err(|error| match error {
            RuleError::Read { .. } => anyhow::Error::from(error),
            error => explain(path, "a file of rules", Misuse(error.to_string()).into()),
        })?,
        None => Rule::own(),
    };
    check_names(&arguments.fail_on, &rules)?;
    check_suffix(
        arguments.json.as_deref(),
        &["json"],
        "--json writes the diagnosis as JSON, --page as a page",
    )?;
    check_suffix(arguments.talp.as_deref(), &["json"], "--talp writes metrics as JSON")?;
    if let Some(page) = &arguments.page {
        check_suffix(Some(page), &["html", "htm"], "--page writes the diagnosis as a page, --json as JSON")?;
        require_pictures()?;
    }
    let config = run::config(&with_input(arguments.run.arguments(), arguments.input.as_deref())?)?;
    if goal::is_goal(&config) {
        let message = "a diagnosis is about MPI programs: expected a trace, found a GOAL schedule";
        return Err(Misuse(message.to_owned()).into());
    }
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    arguments.rules.iter().for_each(|path| roles.input("file of rules", path));
    arguments.reference.iter().for_each(|path| roles.input("reference", path));
    for (role, path) in
        [("diagnosis", &arguments.json), ("file of metrics", &arguments.talp), ("page", &arguments.page)]
    {
        path.iter().for_each(|path| roles.output(role, path));
    }
    roles.check().map_err(Misuse::from)?;
    Ok((rules, config))
}

/// Returns the run of a configuration, and the configuration with its platform.
fn diagnosed_run(mut config: Config) -> Result<(DiagnosedRun, Config)> {
    match DiagnosedRun::of(&mut config) {
        Ok(run) => Ok((run, config)),
        Err(DiagnosisError::Config(error)) => Err(error.into()),
        Err(DiagnosisError::Trace(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

/// Finds the gains, writes the results, and checks the limits.
fn finish(
    arguments: &DiagnoseArguments,
    mut diagnosis: Diagnosis,
    (diagnosed, config): (&DiagnosedRun, &Config),
    quiet: bool,
) -> Result<()> {
    diagnosis.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if arguments.gain {
        diagnosis.simulate_gains(config)?;
    }
    if arguments.tolerance {
        match diagnosed {
            DiagnosedRun::Replay(spec) => diagnosis.find_tolerance(spec)?,
            DiagnosedRun::Recorded(_) => return Err(Misuse(NO_NETWORK.to_owned()).into()),
        }
    }
    let reference = |path: &PathBuf| -> Result<(String, Pop)> {
        let pop = Pop::from_path(path).with_context(|| format!("the reference {}", path.display()));
        let pop = pop.map_err(|error| explain(path, "a diagnosis", error))?;
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), pop))
    };
    diagnosis.compare_with(arguments.reference.iter().map(reference).collect::<Result<_>>()?);
    if let Some(path) = &arguments.json {
        diagnosis.write_json(path).with_context(|| format!("the diagnosis {}", path.display()))?;
        tracing::info!("wrote the diagnosis {}", path.display());
    }
    if let Some(path) = &arguments.talp {
        diagnosis.write_talp(path).with_context(|| format!("the metrics {}", path.display()))?;
        tracing::info!("wrote the metrics {}", path.display());
    }
    #[cfg(feature = "pictures")]
    if let Some(path) = &arguments.page {
        diagnosis
            .write_page(&title(diagnosed), path)
            .with_context(|| format!("the page {}", path.display()))?;
        tracing::info!("wrote the page {}", path.display());
    }
    if !quiet {
        let mut text = String::new();
        diagnosis.write_text(&mut text)?;
        let outputs = [&arguments.json, &arguments.talp, &arguments.page];
        summary::write(&text, outputs.into_iter().flatten().any(|path| is_stdout(path)))?;
    }
    check_limits(&arguments.fail_on, &diagnosis)
}

/// Fails if a problem has more than its largest share.
fn check_limits(limits: &[Limit], diagnosis: &Diagnosis) -> Result<()> {
    for Limit { name, share } in limits {
        let is_meant = |problem: &&Problem| name == ANY_PROBLEM || problem.name == *name;
        let mut problems = diagnosis.problems.iter().filter(is_meant);
        if let Some(problem) = problems.find(|problem| problem.share > *share) {
            let (found, limit) = (100.0 * problem.share, 100.0 * share);
            bail!("{:?} has {found:.1} % of the time, expected at most {limit:.1} %", problem.name);
        }
    }
    Ok(())
}

/// Refuses limits for problems that no rule finds.
fn check_names(limits: &[Limit], rules: &[Rule]) -> Result<(), Misuse> {
    let is_known = |name: &str| name == ANY_PROBLEM || rules.iter().any(|rule| rule.name == name);
    match limits.iter().find(|limit| !is_known(&limit.name)) {
        None => Ok(()),
        Some(Limit { name, .. }) => {
            let known: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).chain([ANY_PROBLEM]).collect();
            Err(Misuse(format!("--fail-on: there is no problem {name:?}; expected of {}", known.join(", "))))
        }
    }
}
