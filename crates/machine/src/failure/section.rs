//! The sections `[[failure]]` and `[failures]` of a configuration.

use std::fmt;
use std::sync::Arc;

use netmodel::quantity::Seconds;
use pdes_core::SimDuration;
use replay::RunSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceFailures;
use super::several_jobs::SeveralJobs;

/// Failures of hosts and links, one `[[failure]]` for each kind of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-page" = "failures.md"))]
pub struct FailureList(pub Vec<FailureSection>);

/// Failures of some hosts or links: all whose name fits, each by itself, or hosts that fail together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FailureSection {
    /// Name of hosts, in which `*` stands for any text; each fails by itself.
    #[schemars(extend("x-default" = "this, `link`, `hosts`, `leaf` or `group`"))]
    pub host: Option<String>,
    /// Name of links, as `host`; each fails by itself, in both directions.
    #[schemars(extend("x-default" = "none"))]
    pub link: Option<String>,
    /// Names of hosts that fail together, such as those of a rack.
    #[schemars(extend("x-default" = "none"))]
    pub hosts: Option<Vec<String>>,
    /// Number of a leaf switch (router of a dragonfly, ring of a torus), from 0, whose hosts fail together; `"*"`: of each.
    #[schemars(extend("x-value" = "a number, or \"*\"", "x-default" = "none", "x-page" = "jobs.md#placements"))]
    pub leaf: Option<Part>,
    /// Number of a group of leaf switches, as `leaf`.
    #[schemars(extend("x-value" = "a number, or \"*\"", "x-default" = "none", "x-page" = "jobs.md#placements"))]
    pub group: Option<Part>,
    /// Instant of the failure.
    #[schemars(extend("x-default" = "this or `mtbf`"))]
    pub at: Option<Seconds>,
    /// Mean time between failures of each component, which are a Poisson process.
    #[schemars(extend("x-default" = "this or `at`"))]
    pub mtbf: Option<Seconds>,
    /// Time from a failure until the component is as before.
    #[schemars(extend("x-default" = "none: it stays as it is; a host that dies is back after `failures.restart`"))]
    pub repair: Option<Seconds>,
    /// Speed of a host after the failure, as a factor; without it the host dies.
    #[schemars(extend("exclusiveMinimum" = 0, "x-default" = "none"))]
    pub speed: Option<f64>,
    /// Bandwidth of a link after the failure, as a factor; without it the link is off.
    #[schemars(extend("exclusiveMinimum" = 0, "x-default" = "none"))]
    pub bandwidth: Option<f64>,
}

/// Parts of a network of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number from 0, or \"*\"")]
pub enum Part {
    /// One part.
    Number(u32),
    /// Each part by itself.
    All(Star),
}

/// Stands for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Star {
    /// Each.
    #[serde(rename = "*")]
    Each,
}

/// Fate of a job with ranks on a host that dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// It ends.
    #[default]
    End,
    /// It goes on from its last checkpoint on the same hosts, when they are repaired.
    Restart,
    /// It goes on from its last checkpoint with a spare host in place of that one; where none is left, as `restart`.
    Spare,
    /// It goes on from its last checkpoint with the ranks of that host on its other hosts.
    Shrink,
}

/// Effects of failing hosts on a job, and the checkpoints against them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "failures.md"))]
pub struct FailuresSection {
    /// Seed of the random numbers.
    #[schemars(extend("default" = 1))]
    pub seed: Option<u64>,
    /// Fate of a job with ranks on a host that dies.
    #[schemars(extend("default" = "end"))]
    pub recovery: Recovery,
    /// Work between two checkpoints of the job.
    #[schemars(extend("x-default" = "Daly's estimate of the best, if there are a time of a checkpoint and a mean time between failures; else there are none"))]
    pub interval: Option<Seconds>,
    /// Time of a checkpoint.
    #[schemars(extend("default" = 0))]
    pub checkpoint: Option<Seconds>,
    /// Time from a failure until the job goes on from its last checkpoint.
    #[schemars(extend("default" = 0))]
    pub restart: Option<Seconds>,
    /// With `recovery = "spare"`, names of hosts of which the first that is in order takes the place of one that dies.
    #[schemars(extend("default" = []))]
    pub spares: Vec<String>,
}

/// Error in the sections `[[failure]]` and `[failures]`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FailuresSectionError {
    /// Nothing, or several things fail.
    #[error("expected one of host, link, hosts, leaf and group in each [[failure]]")]
    Component,
    /// The instant is missing, or there are two.
    #[error("expected either at or mtbf in each [[failure]]")]
    Instant,
    /// A factor is none.
    #[error("{key}: found {found}, expected a number above 0; without the key hosts die, and links are off")]
    Factor {
        /// The key.
        key: &'static str,
        /// The factor.
        found: f64,
    },
    /// A key is about the other kind of part.
    #[error("{key}: hosts have a speed, links a bandwidth")]
    OtherPart {
        /// The key.
        key: &'static str,
    },
    /// Nothing fails.
    #[error("there is no [[failure]]: name hosts or links that fail, or leave the section out")]
    NoFailure,
    /// A time is none.
    #[error("{key}: found {found} s, expected a time {expected}")]
    Time {
        /// The key.
        key: &'static str,
        /// The time \[s\].
        found: f64,
        /// Times that are allowed.
        expected: &'static str,
    },
    /// Spares are of no use.
    #[error("spares: expected recovery = \"spare\" beside it")]
    Spares,
    /// There are no spares.
    #[error("recovery = \"spare\" needs the names of spare hosts (spares), on which no rank of the job runs")]
    NoSpares,
    /// Jobs of several keep their number of hosts.
    #[error(
        "failures.recovery = \"shrink\": with several jobs, one that loses a host goes on on as many hosts; take \"restart\" or \"spare\", or leave \
         all jobs but one out"
    )]
    Shrink,
    /// Times without other jobs are not known.
    #[error(
        "hosts die, and slowdowns are those of jobs that do their whole work: leave jobs.slowdown (--slowdown) out, or give the hosts a speed"
    )]
    Slowdown,
}

impl FailureSection {
    /// Returns the failure of a cable from an instant on \[s\].
    pub fn of_cable(name: &str, at_s: f64) -> Self {
        Self { link: Some(name.to_owned()), at: Some(Seconds(at_s)), ..Self::default() }
    }

    /// Returns whether hosts die.
    pub(super) fn kills(&self) -> bool {
        self.link.is_none() && self.speed.is_none()
    }

    /// Checks what the section says, whatever the platform.
    fn check(&self) -> Result<(), FailuresSectionError> {
        let Self { host, link, hosts, leaf, group, at, mtbf, repair, speed, bandwidth } = self;
        let named = [host.is_some(), link.is_some(), hosts.is_some(), leaf.is_some(), group.is_some()];
        if named.into_iter().filter(|is_named| *is_named).count() != 1 {
            return Err(FailuresSectionError::Component);
        }
        if at.is_some() == mtbf.is_some() {
            return Err(FailuresSectionError::Instant);
        }
        check_times(&[("at", *at, true), ("mtbf", *mtbf, false), ("repair", *repair, false)])?;
        let factors = [("speed", *speed, link.is_none()), ("bandwidth", *bandwidth, link.is_some())];
        for (key, factor, fits) in factors {
            let Some(found) = factor else { continue };
            if !fits {
                return Err(FailuresSectionError::OtherPart { key });
            }
            if !(found.is_finite() && found > 0.0) {
                return Err(FailuresSectionError::Factor { key, found });
            }
        }
        Ok(())
    }
}

impl FailureList {
    /// Name of the section.
    pub const NAME: &str = "failure";

    /// Lets resources of a run fail.
    ///
    /// # Errors
    /// If a value is out of range, or does not fit the run.
    pub fn apply(self, spec: &mut RunSpec) -> Result<(), FailuresSectionError> {
        self.0.iter().try_for_each(FailureSection::check)?;
        let section = FailuresSection::of(spec);
        if !spec.other_programs.is_empty() && self.kills() {
            if spec.delays {
                return Err(FailuresSectionError::Slowdown);
            }
            section.check_for_several_jobs()?;
            spec.deaths = Some(Arc::new(SeveralJobs { list: self.clone(), section: section.clone() }));
        }
        let recovers = section.recovery != Recovery::End && spec.deaths.is_none();
        let failures = ResourceFailures { recovers, ..self.resources(&section) };
        spec.platform_changes.push(Arc::new(failures));
        Ok(())
    }

    /// Returns the failures as changes of resources.
    pub fn resources(self, section: &FailuresSection) -> ResourceFailures {
        let (seed, recovers) = (section.seed(), section.recovery != Recovery::End);
        ResourceFailures { seed, list: self.0, recovers }
    }

    /// Returns whether hosts die.
    pub fn kills(&self) -> bool {
        self.0.iter().any(FailureSection::kills)
    }

    /// Returns the failures of a run; none if it has no such section.
    ///
    /// # Panics
    /// If the section was not checked.
    pub fn of(spec: &RunSpec) -> Self {
        let section = spec.extensions.get(Self::NAME).cloned();
        section.map_or_else(Self::default, |section| section.try_into().expect("the section was checked"))
    }
}

impl FailuresSection {
    /// Name of the section.
    pub const NAME: &str = "failures";

    /// Returns the section of a run, or the default.
    ///
    /// # Panics
    /// If the section was not checked.
    pub fn of(spec: &RunSpec) -> Self {
        let section = spec.extensions.get(Self::NAME).cloned();
        section.map_or_else(Self::default, |section| section.try_into().expect("the section was checked"))
    }

    /// Checks the section for a run.
    ///
    /// # Errors
    /// If a value is out of range, or does not fit the run.
    pub fn check(&self, spec: &RunSpec) -> Result<(), FailuresSectionError> {
        if FailureList::of(spec).0.is_empty() {
            return Err(FailuresSectionError::NoFailure);
        }
        check_times(&[
            ("interval", self.interval, false),
            ("checkpoint", self.checkpoint, true),
            ("restart", self.restart, true),
        ])?;
        match (self.recovery == Recovery::Spare, self.spares.is_empty()) {
            (true, true) => Err(FailuresSectionError::NoSpares),
            (false, false) => Err(FailuresSectionError::Spares),
            _ => Ok(()),
        }
    }

    /// Checks that several jobs can recover so.
    fn check_for_several_jobs(&self) -> Result<(), FailuresSectionError> {
        match self.recovery {
            Recovery::Shrink => Err(FailuresSectionError::Shrink),
            Recovery::End | Recovery::Restart | Recovery::Spare => Ok(()),
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

/// Checks times, each with its key and whether it may be 0.
fn check_times(times: &[(&'static str, Option<Seconds>, bool)]) -> Result<(), FailuresSectionError> {
    for &(key, time, may_be_zero) in times {
        let Some(Seconds(found)) = time else { continue };
        if SimDuration::try_from_secs_f64(found).is_none() || found == 0.0 && !may_be_zero {
            let expected = if may_be_zero { "from 0" } else { "above 0" };
            return Err(FailuresSectionError::Time { key, found, expected });
        }
    }
    Ok(())
}

/// Prints the number, or `*`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::All(Star::Each) => f.write_str("*"),
        }
    }
}
