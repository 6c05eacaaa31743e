//! Flags of timelines, and the log message about a timeline that was written.

use std::path::PathBuf;

use clap::Args;
use figures::quantity::metric;
use pdes_replay::{
    Outcome, RunError, RunSpec, Simulation, TimelineEstimate, TimelineFormat, TimelineSummary,
};
use toml::Value;

/// Heading of these flags.
const TIMELINE: &str = "Timeline";

/// File, format and content of a timeline.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TimelineArguments {
    #[arg(long, value_name = "FILE", help = file_help(), help_heading = TIMELINE)]
    timeline: Option<PathBuf>,
    /// Format of the timeline, whatever its extension: chrome, paje, otf2, csv or parquet.
    #[arg(long, value_name = "NAME", help_heading = TIMELINE)]
    timeline_format: Option<String>,
    /// Restricts the timeline to an interval of simulated time, such as 10s..12s, 1.5ms.. or ..200us.
    #[arg(long, value_name = "START..END", help_heading = TIMELINE)]
    timeline_window: Option<String>,
    /// Restricts the timeline to ranks from FIRST up to, but without, END, such as 0..64, and to messages to and from them.
    #[arg(long, value_name = "FIRST..END", help_heading = TIMELINE)]
    timeline_ranks: Option<String>,
}

impl TimelineArguments {
    /// Returns the flags with section, key and value, as far as they are given.
    pub(crate) fn flags(&self) -> [(&'static str, &'static str, &'static str, Option<Value>); 4] {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        let file = self.timeline.as_deref().map(|path| path.to_string_lossy().into_owned().into());
        [
            ("--timeline", "timeline", "file", file),
            ("--timeline-format", "timeline", "format", text(&self.timeline_format)),
            ("--timeline-window", "timeline", "window", text(&self.timeline_window)),
            ("--timeline-ranks", "timeline", "ranks", text(&self.timeline_ranks)),
        ]
    }
}

/// Describes the file of a timeline, and which formats this program was built without.
fn file_help() -> String {
    let missing = TimelineFormat::ALL.into_iter().filter(|format| !format.is_built());
    let missing: Vec<&str> = missing.map(TimelineFormat::name).collect();
    let missing = match missing[..] {
        [] => String::new(),
        _ => format!(" This program was built without {}", missing.join(" and ")) + ".",
    };
    format!(
        "File for a timeline: states, waits and messages of ranks. The extension selects the format: .json and .json.gz (Perfetto), \
         .trace (Paje), .otf2, .csv, .parquet.{missing}"
    )
}

/// Size of a timeline that few viewers open \[B\], of which a warning says how to shorten it.
const LARGE: f64 = 200e6;

/// Logs the size that the timeline will have, if one is requested.
pub(crate) fn log_estimate(simulation: &Simulation) -> Result<(), RunError> {
    let Some(TimelineEstimate { states, messages, bytes }) = simulation.timeline_estimate()? else {
        return Ok(());
    };
    let size = metric(bytes, "B");
    let text =
        format!("the timeline will have at most {states} states and {messages} messages, about {size}");
    match bytes > LARGE {
        true => tracing::warn!(
            "{text}: --timeline-window START..END and --timeline-ranks FIRST..END shorten it, .parquet and .json.gz are smaller"
        ),
        false => tracing::info!("{text}"),
    }
    Ok(())
}

/// Logs the size of the timeline, if one was written.
pub(crate) fn log_summary(spec: &RunSpec, outcome: &Outcome) {
    if let (Some(plan), Some(summary)) = (&spec.timeline, outcome.program().timeline) {
        let TimelineSummary { states, waits, messages, bytes } = summary;
        let path = plan.path.display();
        tracing::info!(
            "wrote the timeline {path}: {states} states, {waits} waits, {messages} messages, {bytes} bytes"
        );
    }
}
