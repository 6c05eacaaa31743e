//! A diagnosis as text for a terminal of 80 columns.

use std::fmt::{self, Write};

use super::variables::Variables;
use super::{Diagnosis, Place, PlacePair, Problem, Tolerance, pop, unique};

/// Largest number of sites that a recommendation lists.
const LISTED: usize = 3;
/// Largest number of lines with places of a problem.
const MAX_PLACES: usize = 6;
/// Width of a place before its time.
const LINE: usize = 58;
/// Length of the longest description of a hypothesis.
const LONGEST: usize = 300;
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
        let has_gains =
            self.problems.iter().any(|problem| problem.gain_s.is_some() || problem.no_gain.is_some());
        let gain = |gain: String| if has_gains { format!(" {gain:>15}") } else { String::new() };
        writeln!(text, "\n{:39} {:>15} {:>7}{}", "problem", "time", "share", gain("gain".to_owned()))?;
        for problem in &self.problems {
            let gain = gain(problem.gain_s.map_or("-".to_owned(), seconds));
            let (time, share) = (seconds(problem.duration_s), format!("{:.1} %", 100.0 * problem.share));
            writeln!(text, "{:39} {time:>15} {share:>7}{gain}", problem.name)?;
        }
        let lines = textwrap::Options::new(WIDTH).initial_indent("  ").subsequent_indent("  ");
        for (number, problem) in self.problems.iter().enumerate() {
            writeln!(text, "\n{}", problem.name)?;
            let gain = problem.describe_gain(&self.problems[..number]);
            for paragraph in [&problem.description, &problem.recommendation].into_iter().chain(&gain) {
                writeln!(text, "{}", textwrap::fill(paragraph, &lines))?;
            }
            if problem.places.len() > 1 {
                problem.write_places(text)?;
            }
            problem.write_pairs(text)?;
        }
        Ok(())
    }
}

impl Problem {
    /// Returns a sentence that says which hypothesis was replayed for the gain, and why there is no gain; `None` if it was not asked for.
    fn describe_gain(&self, before: &[Self]) -> Option<String> {
        let same = before.iter().find(|other| other.hypothesis == self.hypothesis);
        let hypothesis = match (&self.hypothesis, same) {
            (Some(_), Some(same)) => Some(format!("the same as for {}", same.name)),
            (hypothesis, _) => hypothesis.as_deref().map(shortened),
        };
        match (hypothesis, &self.no_gain) {
            (Some(hypothesis), None) => Some(format!("Replayed for the gain: {hypothesis}.")),
            (Some(hypothesis), Some(why)) => Some(format!("No gain is known of {hypothesis}: {why}.")),
            (None, why) => why.as_ref().map(|why| format!("No gain is known: {why}.")),
        }
    }

    /// Writes lines for each of the pairs of places that have most of the problem.
    fn write_pairs(&self, text: &mut String) -> fmt::Result {
        for pair in self.pairs.iter().filter(|pair| pair.other_call.is_some()).take(MAX_PLACES) {
            let [waiting, other] = [(&pair.site, &pair.call), (&pair.other_site, &pair.other_call)]
                .map(|(site, call)| place_name(site.as_deref(), call.as_deref()));
            let (line, time) = (format!("{waiting} <- {other}"), seconds(pair.duration_s));
            if line.chars().count() <= LINE {
                writeln!(text, "    {line:LINE$} {time:>15}")?;
            } else {
                writeln!(text, "    {waiting}\n    {:LINE$} {time:>15}", format!("<- {other}"))?;
            }
        }
        Ok(())
    }

    /// Writes a line for each of the places that have most of the problem.
    fn write_places(&self, text: &mut String) -> fmt::Result {
        for place in self.places.iter().take(MAX_PLACES) {
            let (site, call) = (place.site.as_deref().unwrap_or("-"), place.call.as_deref().unwrap_or(""));
            writeln!(text, "    {site:40} {call:17} {:>15}", seconds(place.duration_s))?;
        }
        match self.places.len().saturating_sub(MAX_PLACES) {
            0 => Ok(()),
            more => writeln!(text, "    and {more} more (--json has all)"),
        }
    }
}

/// Returns the beginning of a long line.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ... (--json has all)", &line[..end]),
        None => line.to_owned(),
    }
}

/// Writes a time in at most 15 characters, if it is below 32 years.
fn seconds(time: f64) -> String {
    let digits = if time.abs() < 1e3 { 9 } else { 3 };
    // Without a sign where all digits are zero.
    let time = if time.abs() < 5e-10 { 0.0 } else { time };
    format!("{time:.digits$} s")
}

impl Tolerance {
    /// Writes the lines of a table.
    fn write(&self, text: &mut String) -> fmt::Result {
        write!(text, "\n{:37} {:>6}", "largest factor with so much more time", "of it")?;
        for limit in &self.latency.limits {
            write!(text, " {:>9}", format!("+{:.0} %", 100.0 * limit.more_time))?;
        }
        writeln!(text)?;
        for (name, found) in self.rows() {
            write!(text, "{name:28} {:>15} ", seconds(found.time_s))?;
            for limit in &found.limits {
                write!(text, " {:>9}", limit.shown())?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

/// Returns the name of a place: its call, and its site if it has one.
fn place_name(site: Option<&str>, call: Option<&str>) -> String {
    let call = call.unwrap_or("-");
    site.map_or(call.to_owned(), |site| format!("{call} at {site}"))
}

/// Returns the names of the places of a problem: their sites, or their calls if they have none.
pub(super) fn names(sites: &[String], places: &[Place]) -> Vec<String> {
    if sites.is_empty() {
        unique(places.iter().filter_map(|place| place.call.as_ref()))
    } else {
        sites.to_vec()
    }
}

/// Returns the names of the other places of pairs.
pub(super) fn other_names(pairs: &[PlacePair]) -> Vec<String> {
    let known = pairs.iter().filter(|pair| pair.other_call.is_some());
    let names: Vec<String> =
        known.map(|pair| place_name(pair.other_site.as_deref(), pair.other_call.as_deref())).collect();
    if names.is_empty() { vec!["what is not known".to_owned()] } else { unique(names.iter()) }
}

/// Completes a recommendation: `{sites}` becomes the places that have most of the problem, `{other_sites}` the other ones of pairs,
/// `{NAME}` the value of a variable.
pub(super) fn advice(template: &str, names: &[Vec<String>; 2], variables: &Variables) -> String {
    let [listed, others] = names.each_ref().map(|names| match names.len() {
        0..=LISTED => names.join(", "),
        all => format!("{} and {} more", names[..LISTED].join(", "), all - LISTED),
    });
    let with_sites = template.replace("{sites}", &listed).replace("{other_sites}", &others);
    let value = |text: String, (name, value): (&String, &f64)| {
        // Numbers of ranks and calls, and times in seconds.
        let shown = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.6}") };
        text.replace(&format!("{{{name}}}"), &shown)
    };
    variables.iter().fold(with_sites, value)
}
