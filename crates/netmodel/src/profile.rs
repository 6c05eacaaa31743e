//! Profiles: the values of a resource over time, from SimGrid's files or a configuration.

use std::path::{Path, PathBuf};

use pdes_core::{SimDuration, SimTime};
use thiserror::Error;

use crate::{ChangeError, HostId, LinkId, Platform, Resource};

/// Values of a resource from instants on, which may recur.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    points: Vec<(SimTime, f64)>,
    period: Option<SimDuration>,
}

/// Error in a profile.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProfileError {
    /// There are no values.
    #[error("found no point, expected at least one instant with a value")]
    Empty,
    /// An instant is before that of the point before.
    #[error("point {point} is at {at} s, before the one of {before} s: a profile does not go back")]
    Back {
        /// Number of the point, from 1.
        point: usize,
        /// Its instant.
        at: SimTime,
        /// Instant of the point before.
        before: SimTime,
    },
    /// A value is negative or not finite.
    #[error("point {point} has the value {value}, expected a finite number from 0")]
    Value {
        /// Number of the point, from 1.
        point: usize,
        /// The value.
        value: f64,
    },
    /// The points do not fit into the period.
    #[error("the period of {period} s is shorter than the points, the last of which is at {last} s, or is 0")]
    Period {
        /// The period.
        period: SimDuration,
        /// Instant of the last point.
        last: SimTime,
    },
}

impl Profile {
    /// Makes a profile of points in the order of time, of which the last one at an instant counts. With a period the points recur after each;
    /// the values of the resource until the first point are its own, and after the last point without a period they stay.
    ///
    /// # Errors
    /// If there is no point, points go back, a value is negative or not finite, or the period is 0 or shorter than the points.
    pub fn new(points: Vec<(SimTime, f64)>, period: Option<SimDuration>) -> Result<Self, ProfileError> {
        let Some(&(last, _)) = points.last() else { return Err(ProfileError::Empty) };
        for (number, window) in (2..).zip(points.windows(2)) {
            let (before, at) = (window[0].0, window[1].0);
            if at < before {
                return Err(ProfileError::Back { point: number, at, before });
            }
        }
        let is_wrong = |&(_, &(_, value)): &(usize, &(SimTime, f64))| !(value.is_finite() && value >= 0.0);
        if let Some((point, &(_, value))) = (1..).zip(&points).find(is_wrong) {
            return Err(ProfileError::Value { point, value });
        }
        if let Some(period) =
            period.filter(|period| *period == SimDuration::ZERO || SimTime::ZERO + *period < last)
        {
            return Err(ProfileError::Period { period, last });
        }
        let mut kept: Vec<(SimTime, f64)> = Vec::with_capacity(points.len());
        for point in points {
            kept.pop_if(|before| before.0 == point.0);
            kept.push(point);
        }
        // One value does not change when it recurs.
        let period = period.filter(|_| kept.iter().any(|(_, value)| *value != kept[0].1));
        Ok(Self { points: kept, period })
    }

    /// Returns the profile with other values.
    pub(crate) fn map_values(&self, value: impl Fn(f64) -> f64) -> Self {
        let points = self.points.iter().map(|&(at, of_point)| (at, value(of_point))).collect();
        Self { points, period: self.period }
    }

    /// Returns the points.
    pub(crate) fn points(&self) -> impl Iterator<Item = (SimTime, f64)> {
        self.points.iter().copied()
    }

    /// Returns the instant of the first point.
    pub(crate) fn first(&self) -> SimTime {
        self.points[0].0
    }

    /// Returns the instant of the last point, of the first period if there are several.
    pub(crate) fn last(&self) -> SimTime {
        self.points[self.points.len() - 1].0
    }

    /// Returns the number of the period in which an instant is that is not before the first point, and the instant in the first period.
    fn round(&self, at: SimTime) -> (u64, SimTime) {
        let (first, Some(period)) = (self.points[0].0, self.period) else { return (0, at) };
        let round = (at - first).as_picos() / period.as_picos();
        (round, SimTime::from_picos(at.as_picos() - round * period.as_picos()))
    }

    /// Returns the values until an instant, the last first; those of all periods before are the same, and come once.
    pub(crate) fn until(&self, at: SimTime) -> impl Iterator<Item = f64> {
        let (passed, recurring) = match at < self.points[0].0 {
            true => (0, 0),
            false => {
                let (round, at) = self.round(at);
                let all = self.points.len();
                (self.points.partition_point(|&(from, _)| from <= at), if round > 0 { all } else { 0 })
            }
        };
        let recent = self.points[..passed].iter().rev().chain(self.points[..recurring].iter().rev());
        recent.map(|&(_, value)| value)
    }

    /// Returns the first instant after another one from which on there is a value.
    pub(crate) fn next(&self, after: SimTime) -> Option<SimTime> {
        if after < self.points[0].0 {
            return Some(self.points[0].0);
        }
        let (round, in_round) = self.round(after);
        let next = self.points.partition_point(|&(from, _)| from <= in_round);
        let (round, next) = match (self.points.get(next), self.period) {
            (Some(&(at, _)), _) => (round, at),
            (None, Some(_)) => (round + 1, self.points[0].0),
            (None, None) => return None,
        };
        let period = self.period.map_or(0, SimDuration::as_picos);
        round.checked_mul(period).and_then(|shift| next.checked_add(SimDuration::from_picos(shift)))
    }

    /// Returns whether the value is 0 from an instant on for good.
    pub(crate) fn is_zero_from(&self, at: SimTime) -> bool {
        let (_, value) = self.points[self.points.len() - 1];
        self.period.is_none() && value == 0.0 && at >= self.last()
    }
}

/// Error in a file with a profile.
#[derive(Debug, Error)]
pub enum ProfileFileError {
    /// The file cannot be read.
    #[error("the profile {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Error message, with what was found and expected.
        message: String,
    },
}

impl Profile {
    /// Reads a profile of SimGrid: lines with an instant \[s\] and a value; `PERIODICITY` and a period \[s\], or `LOOPAFTER` and the time from the
    /// last point to the next period \[s\]. Empty lines and those that begin with `#` or `%` are passed over.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is wrong: other than SimGrid, which passes over negative values.
    pub fn from_file(path: &Path) -> Result<Self, ProfileFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileFileError::Read { path: path.to_owned(), source })?;
        let error = |line, message| ProfileFileError::Line { path: path.to_owned(), line, message };
        let (mut points, mut lines) = (Vec::new(), Vec::new());
        let (mut period, mut pause) = (None, None);
        let mut last_line = 1;
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with(['#', '%']) {
                continue;
            }
            let mut words = content.split_whitespace();
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let expected = || {
                error(
                    line,
                    format!(
                        "found {content:?}, expected an instant [s] and a value, PERIODICITY or LOOPAFTER and a time [s]"
                    ),
                )
            };
            let time =
                |text: &str| text.parse().ok().and_then(SimDuration::try_from_secs_f64).ok_or_else(expected);
            match first {
                "PERIODICITY" => period = Some(time(second)?),
                "LOOPAFTER" => pause = Some(time(second)?),
                _ => {
                    let value = second.parse().map_err(|_| expected())?;
                    points.push((SimTime::ZERO + time(first)?, value));
                    lines.push(line);
                }
            }
            last_line = line;
        }
        let last = points.last().map_or(SimTime::ZERO, |&(at, _): &(SimTime, f64)| at);
        let period = period.or(pause.map(|pause| (last - SimTime::ZERO) + pause));
        Self::new(points, period).map_err(|found| {
            let line = match found {
                ProfileError::Back { point, .. } | ProfileError::Value { point, .. } => lines[point - 1],
                ProfileError::Empty | ProfileError::Period { .. } => last_line,
            };
            error(line, found.to_string())
        })
    }
}

/// A quantity that a profile gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfiledQuantity {
    /// Speed of a host.
    Speed,
    /// Bandwidth of a link.
    Bandwidth,
    /// Latency of a link.
    Latency,
    /// State of a host or a link: 0 is off, all else on.
    State,
}

/// The profile of hosts or links, by name.
#[derive(Clone, Debug)]
pub struct ProfileSpec {
    /// The profile is of hosts, not of links.
    pub is_of_hosts: bool,
    /// Name of the hosts or links, in which `*` stands for any text. Both directions of a link have its name.
    pub name: String,
    /// The quantity.
    pub quantity: ProfiledQuantity,
    /// Values are factors of the value that the platform gives.
    pub is_relative: bool,
    /// The profile.
    pub profile: Profile,
}

impl ProfileSpec {
    /// Returns the value of a resource whose own value is known.
    pub(crate) fn value(&self, value: f64, own: f64) -> f64 {
        if self.is_relative { value * own } else { value }
    }

    /// Returns the resources of the name.
    pub(crate) fn resources(&self, platform: &Platform) -> Result<Vec<Resource>, ChangeError> {
        let is_named = |name: &str| {
            let halves = ["_UP", "_DOWN"].into_iter().filter_map(|half| name.strip_suffix(half));
            halves.chain([name]).any(|name| matches(&self.name, name))
        };
        let hosts = (0..).map(HostId::new).zip(platform.hosts());
        let links = (0..).map(LinkId::new).zip(platform.links());
        let resources: Vec<Resource> = match self.is_of_hosts {
            true => hosts
                .filter(|(_, host)| matches(&self.name, &host.name))
                .map(|(id, _)| Resource::Speed(id))
                .collect(),
            false => links
                .filter(|(_, link)| is_named(&link.name))
                .map(|(id, _)| match self.quantity {
                    ProfiledQuantity::Latency => Resource::Latency(id),
                    _ => Resource::Bandwidth(id),
                })
                .collect(),
        };
        if !resources.is_empty() {
            return Ok(resources);
        }
        let (kind, first) = match self.is_of_hosts {
            true => ("host", platform.hosts().first().map(|host| &host.name)),
            false => ("link", platform.links().first().map(|link| &link.name)),
        };
        Err(ChangeError::NoSuchName {
            kind,
            name: self.name.clone(),
            first: first.cloned().unwrap_or_default(),
        })
    }
}

/// Returns whether a name matches a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(begin) else { return false };
    let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    { starts }.any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("node-1", "node-1", true),
            ("node-1", "node-10", false),
            ("node-*", "node-10", true),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn files_are_read_and_errors_name_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Profile::from_file(&path).map_err(|error| error.to_string())
        };
        let points = |points: &[(u64, f64)]| -> Vec<(SimTime, f64)> {
            points
                .iter()
                .map(|&(millis, value)| (SimTime::from_picos(millis * 1_000_000_000), value))
                .collect()
        };
        let period = Some(SimDuration::from_picos(40_000_000_000));
        let expected = Profile::new(points(&[(20, 4e7), (30, 9e7)]), period).unwrap();
        let looped = "# comment\n% another\n\n0.02 40000000 what follows\n0.03 9e7\nLOOPAFTER 0.01\n";
        assert_eq!(read(looped).unwrap(), expected);
        assert_eq!(read("PERIODICITY 0.04\n0.02 4e7\n0.03 9e7\n").unwrap(), expected);
        for (text, expected) in [
            ("0.2 1\n\n0.1 2\n", "p:3: point 2 is at 0.1"),
            ("0 1\n1 -2\n", "p:2: point 2 has the value -2"),
            ("0 1\n1 two\n", "p:2: found \"1 two\""),
            ("-1 2\n", "p:1: found \"-1 2\""),
            ("0 1\n3 2\nPERIODICITY 2\n", "p:3: the period of"),
            ("# nothing\n", "p:1: found no point"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Profile::from_file(&folder.path().join("none")).is_err());
    }
}
