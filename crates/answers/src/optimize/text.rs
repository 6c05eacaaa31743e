//! Changes that make a run shorter, in words.

use std::fmt::{Result, Write};

use figures::quantity::seconds;
use serde_json::{Value, json};

use super::{Optimum, Slack};
use crate::answer::Answer;
use crate::caveat::Caveat;

impl Answer for Optimum {
    const SCRIPT: &'static str = include_str!("page.js");

    fn title(&self) -> String {
        format!("What to change: {} on {} ({})", self.trace, self.platform, self.model)
    }

    /// How good the changes are.
    fn words(&self) -> Value {
        json!(self.verdict())
    }

    fn caveat(&self) -> &Caveat {
        &self.caveat
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn write_text(&self, text: &mut String) -> Result {
        let Self { trace, platform, model, before_ps, after_ps, replays, .. } = self;
        let [before, after] = [before_ps, after_ps].map(|time| *time as f64 / 1e12);
        writeln!(
            text,
            "{trace} on {platform} ({model}): {before:.9} s, with all changes {after:.9} s, {replays} replays"
        )?;
        if !self.changes.is_empty() {
            let width =
                self.changes.iter().map(|change| change.name.chars().count()).max().unwrap_or_default();
            writeln!(
                text,
                "\n{:width$}  {:>16}  {:>14}  {:>8}",
                "change", "simulated time", "saves", "of run"
            )?;
            for change in &self.changes {
                let cost = change.cost.zip(self.currency.as_ref());
                let cost = cost.map_or(String::new(), |(cost, currency)| format!("  {cost:+.0} {currency}"));
                let (time, saved) = (change.time_ps as f64 / 1e12, change.saved_ps as f64 / 1e12);
                let share = format!("{:.2} %", 100.0 * saved / before);
                writeln!(
                    text,
                    "{:width$}  {:>16}  {:>14}  {share:>8}{cost}",
                    change.name,
                    format!("{time:.9} s"),
                    seconds(saved)
                )?;
            }
        }
        writeln!(text, "\n{}", self.verdict())?;
        self.settings.iter().try_for_each(|setting| writeln!(text, "  {setting}"))?;
        if let Some(Slack { hosts, saved_share, saved_j }) = &self.slack {
            let joules = saved_j.map_or(String::new(), |joules| format!(", {joules:.4} J"));
            let share = 100.0 * saved_share;
            writeln!(
                text,
                "  {} hosts compute slower: {share:.1} % of the dynamic energy of computations{joules}, if power goes with the cube of the frequency",
                hosts.len()
            )?;
        }
        if let Some(hosts) = &self.hosts {
            writeln!(text, "  platform.hosts: {}", shortened(hosts))?;
        }
        for (name, why) in &self.refused {
            writeln!(text, "left out: {name}: {why}")?;
        }
        writeln!(text, "\n{}", self.caveat.sentence())
    }
}

impl Optimum {
    /// Says how good the changes are.
    fn verdict(&self) -> &'static str {
        match (self.changes.is_empty(), self.is_local_optimum) {
            (true, true) => "No single change of what is allowed saves time.",
            (false, true) => "No single change of what is allowed saves more. The changes are:",
            (true, false) => "Nothing that was tried saves time; more replays may find something.",
            (false, false) => "More replays may save more. The changes so far are:",
        }
    }
}

/// Lists the hosts of ranks, those beyond sixteen by their number.
fn shortened(hosts: &[String]) -> String {
    let shown = hosts.iter().take(16).map(String::as_str).collect::<Vec<_>>().join(", ");
    match hosts.len() {
        all @ 17.. => format!("{shown} and {} more", all - 16),
        _ => shown,
    }
}
