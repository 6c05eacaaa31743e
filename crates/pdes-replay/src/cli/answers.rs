//! The common part of the commands that answer questions: a run, files for the answer, and the known error of the model.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use answers::{Answer, Caveat, Costs, CostsError};
use anyhow::{Context, Result};
use clap::Args;
use outputs::{FileRoles, is_stdout};
use pdes_core::Cluster;
use pdes_replay::{Config, available_threads};
use replay::file_kind::{PLATFORM, REPORT, recognize};

use super::arguments::{ReplayFlags, with_input};
use super::processes::agree;
use super::{Misuse, check_suffix, explain, files, goal, large_pages, require_pictures, run, summary};

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// Configuration, platform, report that carries a configuration, or trace.
    #[arg(value_name = "CONFIG|REPORT|TRACE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    run: ReplayFlags,
    /// Number of concurrent replays, from 1; by default the number of cores.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Comparison with measured times (pdes-replay validate --report), whose error the answer tells.
    #[arg(long, value_name = "FILE")]
    validation: Option<PathBuf>,
    /// File for the answer (JSON); without a name stdout, and the text goes to stderr.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// File for the answer as a page (HTML).
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

impl AnswerArguments {
    /// Returns the configuration of the run.
    pub(crate) fn config(&self) -> Result<Config> {
        check_suffix(self.json.as_deref(), &["json"], "--json writes the answer as JSON, --page as a page")?;
        if let Some(page) = &self.page {
            check_suffix(Some(page), &["html", "htm"], "--page writes the answer as a page, --json as JSON")?;
            require_pictures()?;
        }
        let mut arguments = self.run.arguments();
        let config = match self.input.as_deref().map(|path| (path, recognize(path))) {
            Some((path, Some(REPORT))) if arguments.config.is_none() => {
                run::with_flags(Config::from_report(path)?, &arguments)?
            }
            Some((path, Some(PLATFORM))) if arguments.platform.is_none() => {
                arguments.platform = Some(path.to_owned());
                run::config(&arguments)?
            }
            input => run::config(&with_input(arguments, input.map(|(path, _)| path))?)?,
        };
        refuse_schedules(&config)?;
        Ok(config)
    }

    /// Adds the files that the command reads and writes.
    pub(crate) fn add_files(&self, roles: &mut FileRoles) {
        self.validation.iter().for_each(|path| roles.input("comparison", path));
        self.json.iter().for_each(|path| roles.output("answer", path));
        self.page.iter().for_each(|path| roles.output("page", path));
    }

    /// Returns the number of concurrent replays.
    pub(crate) fn at_once(&self) -> usize {
        self.jobs.map_or_else(available_threads, NonZeroUsize::get)
    }

    /// Returns the known error of the model.
    pub(crate) fn caveat(&self) -> Result<Caveat> {
        Ok(self.validation.as_deref().map(Caveat::from_validation).transpose()?.unwrap_or_default())
    }

    /// Writes an answer to the files that were asked for, and prints its text.
    pub(crate) fn finish(&self, answer: &impl Answer, quiet: bool) -> Result<()> {
        answer.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        if let Some(path) = &self.json {
            answer.write_json(path).with_context(|| format!("the answer {}", path.display()))?;
            tracing::info!("wrote the answer {}", path.display());
        }
        #[cfg(feature = "pictures")]
        if let Some(path) = &self.page {
            answer.write_page(path).with_context(|| format!("the page {}", path.display()))?;
            tracing::info!("wrote the page {}", path.display());
        }
        if !quiet {
            let mut text = String::new();
            answer.write_text(&mut text)?;
            let outputs = [&self.json, &self.page];
            summary::write(&text, outputs.into_iter().flatten().any(|path| is_stdout(path)))?;
        }
        Ok(())
    }
}

/// Reads a file of costs.
pub(crate) fn read_costs(path: &Path) -> Result<Costs> {
    Costs::from_path(path).map_err(|error| match error {
        CostsError::Read { .. } => anyhow::Error::from(error),
        error => explain(path, "a file of costs", Misuse(error.to_string()).into()),
    })
}

/// Refuses GOAL schedules.
pub(crate) fn refuse_schedules(config: &Config) -> Result<(), Misuse> {
    match goal::is_goal(config) {
        true => {
            Err(Misuse("answers are about MPI programs: expected a trace, found a GOAL schedule".to_owned()))
        }
        false => Ok(()),
    }
}

/// Checks the files of a command, and the configuration of each of its runs.
pub(crate) fn check_files(
    arguments: &AnswerArguments,
    roles: &mut FileRoles,
    configs: &[&Config],
) -> Result<()> {
    configs.iter().for_each(|config| files::add_run(roles, config));
    arguments.add_files(roles);
    Ok(roles.check().map_err(Misuse::from)?)
}

/// Finds an answer on the first of the processes that were started together.
pub(crate) fn on_first(cluster: &mut Cluster, find: impl FnOnce() -> Result<()>) -> Result<()> {
    large_pages::set_large_pages(true);
    let found = if cluster.member() == 0 { find() } else { Ok(()) };
    agree(cluster, found)
}
