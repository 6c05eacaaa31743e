//! The section `[checkpoint]`.

use std::time::Duration;

use super::value;
use crate::checkpoint::Checkpoints;
use crate::config::ConfigError;
use crate::config::sections::CheckpointSection;
use crate::job::Model;

/// Default interval between two checkpoints.
const EVERY: Duration = Duration::from_secs(300);
/// Shortest interval: with a shorter one a run would do little but write checkpoints.
const LEAST: Duration = Duration::from_millis(1);

pub(super) fn checkpoints(section: CheckpointSection) -> Result<Option<Checkpoints>, ConfigError> {
    let every = section.every.as_deref().map(every).transpose()?;
    let resume = section.resume.unwrap_or_default();
    match section.directory {
        Some(directory) => Ok(Some(Checkpoints { directory, every: every.unwrap_or(EVERY), resume })),
        None if every.is_some() || resume => {
            let message = "is missing: name the directory of checkpoints with --checkpoint DIR";
            Err(value("checkpoint", "directory", message))
        }
        None => Ok(None),
    }
}

fn every(text: &str) -> Result<Duration, ConfigError> {
    match humantime::parse_duration(text) {
        Ok(every) if every >= LEAST => Ok(every),
        _ => Err(value(
            "checkpoint",
            "every",
            format!("found {text:?}, expected a time from 1ms, such as 5m or 1h 30m"),
        )),
    }
}

fn refuse(message: &str) -> Result<(), ConfigError> {
    Err(value("checkpoint", "directory", message))
}

/// Refuses models and modes whose state cannot be saved.
pub(super) fn check_model(model: Model, fast_forward: bool) -> Result<(), ConfigError> {
    if model == Model::Flow {
        refuse(
            "the state of a shared network is not saved: take network.model = \"loggps\", or no checkpoints",
        )
    } else if fast_forward {
        refuse("the state of fast-forwarding is not saved: leave engine.fast_forward out, or checkpoints")
    } else {
        Ok(())
    }
}

/// Refuses analyses whose state cannot be saved.
pub(super) fn check_analyses(
    profile: bool,
    histograms: bool,
    critical_path: bool,
) -> Result<(), ConfigError> {
    if profile {
        refuse("a profile is of a whole run: leave output.profile out, or checkpoints")
    } else if histograms {
        refuse("histograms are not saved: leave analysis.histograms out, or checkpoints")
    } else if critical_path {
        refuse("critical paths are not saved: leave analysis.critical_path out, or checkpoints")
    } else {
        Ok(())
    }
}
