//! Why two runs differ, in words.

use std::fmt::{Result, Write};

use serde_json::{Value, json};

use super::events::SeenEvent;
use super::{Cause, ComparedRun, FirstDifference, Why};
use crate::answer::Answer;
use crate::caveat::Caveat;
use crate::prices::signed;

/// Largest number of calls that are listed.
const MAX_CALLS: usize = 8;

impl Answer for Why {
    const SCRIPT: &'static str = include_str!("page.js");

    fn title(&self) -> String {
        "Why two runs differ".to_owned()
    }

    /// The runs, the share of each cause, and the first event that differs.
    fn words(&self) -> Value {
        let runs = self.runs.each_ref().map(ComparedRun::describe);
        let shares: Vec<String> = self.causes.iter().map(|cause| self.share(cause)).collect();
        json!([runs, shares, self.first_difference.as_ref().map(FirstDifference::describe)])
    }

    fn caveat(&self) -> &Caveat {
        &self.caveat
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn write_text(&self, text: &mut String) -> Result {
        for (name, run) in ["first", "second"].into_iter().zip(&self.runs) {
            writeln!(text, "{name:<6}  {}", run.describe())?;
        }
        let replays = self.replays;
        let sampled = self
            .sampled_orders
            .map_or(String::new(), |orders| format!(", {orders} orders of changes sampled"));
        writeln!(text, "difference {}, {replays} replays{sampled}\n", difference(self.difference_ps))?;
        let width = self.causes.iter().map(|cause| cause.name.chars().count()).max().unwrap_or_default();
        let width = width.max("cause".len());
        let contention =
            if self.contention_ps.is_some() { format!("  {:>15}", "by contention") } else { String::new() };
        writeln!(
            text,
            "{:width$}  {:>15}  {:>8}{contention}  {:>15}  {:>15}",
            "cause", "part", "share", "alone", "as the last"
        )?;
        for cause in &self.causes {
            let contention =
                cause.contention_ps.map_or(String::new(), |time| format!("  {:>15}", difference(time)));
            let error =
                cause.error_ps.map_or(String::new(), |error| format!("  +- {}", signed(error / 1e12)));
            writeln!(
                text,
                "{:width$}  {:>15}  {:>8}{contention}  {:>15}  {:>15}{error}",
                cause.name,
                difference(cause.time_ps),
                self.share(cause),
                difference(cause.alone_ps),
                difference(cause.last_ps)
            )?;
        }
        if let Some(first) = &self.first_difference {
            writeln!(text, "\n{}", first.describe())?;
        }
        if let Some(paths) = &self.paths {
            writeln!(text, "\n{:<16}  {:>15}  {:>15}  {:>15}", "critical path", "first", "second", "change")?;
            for part in paths.parts.iter().chain(paths.calls.iter().take(MAX_CALLS)) {
                let [one, other] = [part.one_ps, part.other_ps].map(|time| signed(time as f64 / 1e12));
                let change = difference(part.other_ps as i64 - part.one_ps as i64);
                writeln!(text, "{:<16}  {one:>15}  {other:>15}  {change:>15}", part.name)?;
            }
        }
        if let Some(why) = &self.not_compared {
            writeln!(text, "\n{why}")?;
        }
        writeln!(text, "\n{}", self.caveat.sentence())
    }
}

impl Why {
    /// Returns the share of a cause in the difference.
    fn share(&self, cause: &Cause) -> String {
        match self.difference_ps {
            0 => "-".to_owned(),
            all => format!("{:.1} %", 100.0 * cause.time_ps as f64 / all as f64),
        }
    }
}

impl ComparedRun {
    fn describe(&self) -> String {
        let Self { trace, platform, model, simulated_time_ps } = self;
        format!("{:.9} s  {trace} on {platform} ({model})", *simulated_time_ps as f64 / 1e12)
    }
}

impl FirstDifference {
    fn describe(&self) -> String {
        let event = |event: &Option<SeenEvent>| match event {
            None => "nothing more".to_owned(),
            Some(SeenEvent { action, site, begin_ps, end_ps }) => {
                let site = site.as_ref().map_or(String::new(), |site| format!(" at {site}"));
                let [begin, end] = [begin_ps, end_ps].map(|time| *time as f64 / 1e12);
                format!("{action}{site} from {begin:.12} s to {end:.12} s")
            }
        };
        let Self { rank, index, one, other } = self;
        format!(
            "the first event that differs is event {index} of rank {rank}: {}, then {}",
            event(one),
            event(other)
        )
    }
}

/// Formats a difference of times \[ps\] with its sign.
fn difference(time_ps: i64) -> String {
    let time = signed(time_ps as f64 / 1e12);
    if time_ps > 0 { format!("+{time}") } else { time }
}
