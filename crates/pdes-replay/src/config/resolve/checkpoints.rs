//! The section `[checkpoint]`.

use std::time::Duration;

use super::value;
use crate::checkpoint::Checkpoints;
use crate::config::ConfigError;
use crate::config::sections::CheckpointSection;
use crate::job::Model;

/// The time between two checkpoints where none is given.
const EVERY: Duration = Duration::from_secs(300);
/// Where there is less time between them, a run does little else.
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

/// Refuses what cannot be gone on from.
pub(super) fn check(
    model: Model,
    fast_forward: bool,
    profile: bool,
    histograms: bool,
) -> Result<(), ConfigError> {
    let refuse = |message: &str| Err(value("checkpoint", "directory", message));
    if model == Model::Flow {
        refuse(
            "the state of a shared network is not saved: take network.model = \"loggps\", or no checkpoints",
        )
    } else if fast_forward {
        refuse("heads of iterations are not saved: leave engine.fast_forward out, or checkpoints")
    } else if profile {
        refuse("a profile is of a whole run: leave output.profile out, or checkpoints")
    } else if histograms {
        refuse("histograms are not saved: leave analysis.histograms out, or checkpoints")
    } else {
        Ok(())
    }
}
