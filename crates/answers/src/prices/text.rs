//! Prices in words.

use std::fmt::{Result, Write};

use figures::quantity::seconds;
use serde_json::{Value, json};

use super::{Method, Price, Prices};
use crate::answer::Answer;
use crate::caveat::Caveat;

impl Answer for Prices {
    const SCRIPT: &'static str = include_str!("page.js");

    fn title(&self) -> String {
        format!("Prices: {} on {} ({})", self.trace, self.platform, self.model)
    }

    /// The name and the note of each price.
    fn words(&self) -> Value {
        json!(self.prices.iter().map(|price| (price.name(), price.note())).collect::<Vec<_>>())
    }

    fn caveat(&self) -> &Caveat {
        &self.caveat
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn write_text(&self, text: &mut String) -> Result {
        let Self { trace, platform, model, simulated_time_s, replays, .. } = self;
        writeln!(text, "{trace} on {platform} ({model}): {simulated_time_s:.9} s, {replays} replays\n")?;
        let names = self.prices.iter().map(|price| price.name().chars().count());
        let width = names.chain(["one percent less of".len()]).max().unwrap_or_default();
        let currency = self.currency.as_deref();
        let cost = currency.map_or(String::new(), |currency| format!("  {:>14}", format!("per {currency}")));
        writeln!(
            text,
            "{:width$}  {:>7}  {:>22}  {:>8}{cost}  note",
            "one percent less of", "number", "saves", "of run"
        )?;
        for price in &self.prices {
            let share = 100.0 * price.most_saved() / simulated_time_s;
            let share = if *simulated_time_s > 0.0 { format!("{share:.4} %") } else { "-".to_owned() };
            let saved = price.saved_s_per_cost.map_or("-".to_owned(), signed);
            let cost = currency.map_or(String::new(), |_| format!("  {saved:>14}"));
            let line = format!(
                "{:width$}  {:>7}  {:>22}  {share:>8}{cost}  {}",
                price.name(),
                price.count,
                price.saved(),
                price.note()
            );
            writeln!(text, "{}", line.trim_end())?;
        }
        writeln!(text, "\n{}", self.caveat.sentence())
    }
}

impl Price {
    /// Returns the time that one percent saves, of an interval the larger end \[s\].
    fn most_saved(&self) -> f64 {
        if self.method == Method::OneSided { self.saved_s.max(self.lost_s) } else { self.saved_s }
    }

    /// Returns the time that one percent saves: an interval where the run time is not smooth.
    fn saved(&self) -> String {
        match self.method {
            Method::OneSided => {
                let (least, most) = (self.saved_s.min(self.lost_s), self.saved_s.max(self.lost_s));
                format!("{} .. {}", signed(least), signed(most))
            }
            Method::Exact | Method::Differences => signed(self.saved_s),
        }
    }

    /// Returns how far the price holds, and where the curve has its knee.
    fn note(&self) -> String {
        let knee = self.knee.map_or(String::new(), |[from, to]| match from == to {
            true => format!("; knee at x {from:.4}"),
            false => format!("; knee between x {from:.4} and x {to:.4}"),
        });
        self.validity() + &knee
    }

    fn validity(&self) -> String {
        match (self.method, self.holds) {
            (Method::Exact, _) if self.saved_s == 0.0 && self.lost_s == 0.0 && self.curve_is_flat() => {
                "never matters in this range".to_owned()
            }
            (Method::Exact, Some([from, to])) if self.saved_s == self.lost_s => {
                format!("exact from x {from:.4} to x {to:.4}")
            }
            (Method::Exact, _) => format!("exact; one percent more costs {}", signed(self.lost_s)),
            (Method::Differences, _) => format!("from {:.4} % to both sides", 100.0 * self.step),
            (Method::OneSided, _) => {
                format!("not smooth: an interval, from {:.4} % to both sides", 100.0 * self.step)
            }
        }
    }

    fn curve_is_flat(&self) -> bool {
        self.curve.as_ref().is_some_and(|curve| curve.len() == 2)
    }
}

/// Formats a time that may be negative.
pub(crate) fn signed(time: f64) -> String {
    if time < 0.0 { format!("-{}", seconds(-time)) } else { seconds(time) }
}
