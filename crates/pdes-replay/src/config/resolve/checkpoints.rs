//! The section `[checkpoint]`.

use std::time::Duration;

use replay::CheckpointPlan;

use super::value_error;
use crate::config::ConfigError;
use crate::config::sections::CheckpointSection;

/// Default interval between two checkpoints.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(300);
/// Shortest interval: with a shorter one a run would do little but write checkpoints.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

pub(super) fn checkpoints(section: CheckpointSection) -> Result<Option<CheckpointPlan>, ConfigError> {
    let every = section.every.as_deref().map(parse_interval).transpose()?;
    let resume = section.resume.unwrap_or_default();
    match section.directory {
        Some(directory) => {
            Ok(Some(CheckpointPlan { directory, interval: every.unwrap_or(DEFAULT_INTERVAL), resume }))
        }
        None if every.is_some() || resume => {
            let message = "is missing: name the directory of checkpoints with --checkpoint DIR";
            Err(value_error("checkpoint", "directory", message))
        }
        None => Ok(None),
    }
}

fn parse_interval(text: &str) -> Result<Duration, ConfigError> {
    match humantime::parse_duration(text) {
        Ok(every) if every >= MIN_INTERVAL => Ok(every),
        _ => Err(value_error(
            "checkpoint",
            "every",
            format!("found {text:?}, expected a time from 1ms, such as 5m or 1h 30m"),
        )),
    }
}
