//! A diagnosis as text for a terminal of 80 columns.

use std::fmt::{self, Write};

use super::variables::Variables;
use super::{Diagnosis, Place, Tolerance, pop};

/// Largest number of sites that a recommendation lists.
const LISTED: usize = 3;
/// Width of paragraphs.
const WIDTH: usize = 78;

impl Diagnosis {
    /// Writes the diagnosis as text for a terminal of 80 columns.
    ///
    /// # Errors
    /// Never: text grows.
    pub fn write_text(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "{:28} {:.9} s, {} ranks", "run time", self.simulated_time_s, self.ranks)?;
        for (depth, name, value) in self.pop.tree() {
            pop::write_line(text, depth, name, value)?;
        }
        if let Some(scaling) = &self.scaling {
            scaling.write(text)?;
        }
        writeln!(text, "{:28} {:.9} s", "on an ideal network", self.pop.ideal_time_s)?;
        if let Some(measured) = self.measured_pop.as_ref().filter(|measured| **measured != self.pop) {
            writeln!(text, "\nin the recorded run          {:.9} s", measured.time_s)?;
            for (depth, name, value) in measured.tree() {
                pop::write_line(text, depth, name, value)?;
            }
        }
        if let Some(tolerance) = &self.tolerance {
            tolerance.write(text)?;
        }
        if self.problems.is_empty() {
            return writeln!(text, "\nno problem found");
        }
        writeln!(text, "\n{:31} {:>18} {:>8} {:>18}", "problem", "time", "share", "gain")?;
        for problem in &self.problems {
            let gain = problem.gain_s.map_or("-".to_owned(), |gain| format!("{gain:.9} s"));
            let time = format!("{:.9} s", problem.duration_s);
            let share = format!("{:.1} %", 100.0 * problem.share);
            writeln!(text, "{:31} {time:>18} {share:>8} {gain:>18}", problem.name)?;
        }
        let lines = textwrap::Options::new(WIDTH).initial_indent("  ").subsequent_indent("  ");
        for problem in &self.problems {
            writeln!(text, "\n{}", problem.name)?;
            for paragraph in [&problem.description, &problem.recommendation] {
                writeln!(text, "{}", textwrap::fill(paragraph, &lines))?;
            }
        }
        Ok(())
    }
}

impl Tolerance {
    /// Writes the lines of a table.
    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "\n{:28} {:>16}   largest factor with", "the network could be slower", "time of it")?;
        for (name, found) in [("latency", &self.latency), ("time per byte", &self.time_per_byte)] {
            write!(text, "{name:28} {:>14.9} s  ", found.time_s)?;
            for limit in &found.limits {
                let factor = limit.factor.map_or("any".to_owned(), |factor| format!("{factor:.3}"));
                write!(text, " {:.0} %: {factor}", 100.0 * limit.more_time)?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

/// Completes a recommendation: `{sites}` becomes the places that have most of the problem, `{NAME}` the value of a variable.
pub(super) fn advice(template: &str, sites: &[String], places: &[Place], variables: &Variables) -> String {
    let mut names: Vec<&str> = sites.iter().map(String::as_str).collect();
    if names.is_empty() {
        for call in places.iter().filter_map(|place| place.call) {
            if !names.contains(&call) {
                names.push(call);
            }
        }
    }
    let listed = match names.len() {
        0..=LISTED => names.join(", "),
        all => format!("{} and {} more", names[..LISTED].join(", "), all - LISTED),
    };
    let with_sites = template.replace("{sites}", &listed);
    let value = |text: String, (name, value): (&String, &f64)| {
        // Numbers of ranks and calls, and times in seconds.
        let shown = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.6}") };
        text.replace(&format!("{{{name}}}"), &shown)
    };
    variables.iter().fold(with_sites, value)
}
