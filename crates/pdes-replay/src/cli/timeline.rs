//! Flags of timelines, and the log message about a timeline that was written.

use std::path::PathBuf;

use clap::Args;
use pdes_replay::{Config, Job, Outcome, TimelineSummary};

/// File, format and content of a timeline.
#[derive(Debug, Default, Args)]
pub(crate) struct TimelineArguments {
    /// File for a timeline: states, waits and messages of ranks. The extension selects the format: .json and .json.gz (Perfetto),
    /// .trace (Paje), .otf2, .csv, .parquet.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Format of the timeline, whatever its extension: chrome, paje, otf2, csv, parquet.
    #[arg(long, value_name = "NAME")]
    timeline_format: Option<String>,
    /// Restricts the timeline to an interval of simulated time, such as 10s..12s, 1.5ms.. or ..200us.
    #[arg(long, value_name = "START..END")]
    timeline_window: Option<String>,
    /// Restricts the timeline to ranks from FIRST up to, but without, END, such as 0..64, and to messages to and from them.
    #[arg(long, value_name = "FIRST..END")]
    timeline_ranks: Option<String>,
}

impl TimelineArguments {
    /// Sets the flags in a configuration.
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(path) = &self.timeline {
            config.set_path("timeline", "file", path);
        }
        let texts = [
            ("format", &self.timeline_format),
            ("window", &self.timeline_window),
            ("ranks", &self.timeline_ranks),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                config.insert("timeline", key, text.as_str().into());
            }
        }
    }
}

/// Logs the size of the timeline, if one was written.
pub(crate) fn log_summary(job: &Job, outcome: &Outcome) {
    if let (Some(plan), Some(summary)) = (&job.timeline, outcome.timeline) {
        let TimelineSummary { states, waits, messages, bytes } = summary;
        let path = plan.path.display();
        tracing::info!(
            "wrote the timeline {path}: {states} states, {waits} waits, {messages} messages, {bytes} bytes"
        );
    }
}
