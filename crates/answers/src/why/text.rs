//! Why two runs differ, in words.

use std::fmt::{Result, Write};

use serde_json::{Value, json};

use super::events::SeenEvent;
use super::{Cause, ComparedRun, FirstDifference, PathLink, PathPart, Paths, Step, Why};
use crate::answer::Answer;
use crate::caveat::Caveat;
use crate::prices::signed;

/// Largest number of calls, of call sites and of links that are listed.
const MAX_LISTED: usize = 8;
/// Largest number of steps of a chain of causes that are listed.
const MAX_STEPS: usize = 16;

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
            paths.write_text(text)?;
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

impl Paths {
    fn write_text(&self, text: &mut String) -> Result {
        let calls = self.calls.iter().take(MAX_LISTED);
        write_parts(text, "critical path", self.parts.iter().chain(calls))?;
        write_parts(text, "from there to the end, at", self.sites.iter().take(MAX_LISTED))?;
        if !self.links.is_empty() {
            let names = self.links.iter().take(MAX_LISTED).map(|link| link.name.chars().count());
            let width = names.max().unwrap_or_default().max("steps over the link".len());
            writeln!(text, "\n{:width$}  {:>15}  {:>15}", "steps over the link", "first", "second")?;
            for PathLink { name, one, other } in self.links.iter().take(MAX_LISTED) {
                writeln!(text, "{name:width$}  {one:>15}  {other:>15}")?;
            }
        }
        if self.steps.is_empty() {
            return Ok(());
        }
        writeln!(text, "\nchain of causes of the second run, as a sample: until, rank, call, by link")?;
        for Step { rank, to_ps, action, site, link, .. } in self.steps.iter().take(MAX_STEPS) {
            let site = site.as_ref().map_or(String::new(), |site| format!(" at {site}"));
            let link = link.as_ref().map_or(String::new(), |link| format!(", by {link}"));
            let action = action.unwrap_or("-");
            writeln!(
                text,
                "{:>18}  rank {rank:<6}  {action}{site}{link}",
                format!("{:.9} s", *to_ps as f64 / 1e12)
            )?;
        }
        match self.steps.len().saturating_sub(MAX_STEPS) {
            0 => Ok(()),
            more => writeln!(text, "{more} more steps are in JSON and on the page"),
        }
    }
}

fn write_parts<'a>(text: &mut String, title: &str, parts: impl Iterator<Item = &'a PathPart>) -> Result {
    let parts: Vec<&PathPart> = parts.collect();
    let name =
        |part: &PathPart| if part.name.is_empty() { "(no call site)".to_owned() } else { part.name.clone() };
    let names = parts.iter().map(|part| name(part).chars().count());
    let width = names.max().unwrap_or_default().max(title.len());
    writeln!(text, "\n{title:width$}  {:>15}  {:>15}  {:>15}", "first", "second", "change")?;
    for part in parts {
        let [one, other] = [part.one_ps, part.other_ps].map(|time| signed(time as f64 / 1e12));
        let change = difference(part.other_ps as i64 - part.one_ps as i64);
        writeln!(text, "{:width$}  {one:>15}  {other:>15}  {change:>15}", name(part))?;
    }
    Ok(())
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
