//! Failures that change resources: slow hosts, slow links, links that are off.

use std::collections::BTreeSet;
use std::error::Error;

use netmodel::quantity::Seconds;
use netmodel::{Platform, Profile, Resource};
use pdes_core::{SimDuration, SimTime};
use replay::PlatformChange;
use serde::{Deserialize, Serialize};

use super::component::{Component, FailureError};
use super::section::FailureSection;

/// Number of random failures of a component after which they recur.
const FAILURES: usize = 64;

/// Failures as changes of the resources of a platform; hosts that die change none.
///
/// A component that fails at random has 64 failures of its own; then they recur. Where links are off, messages go
/// [around](Platform::add_detours) them.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceFailures {
    /// Seed of the random numbers.
    pub seed: u64,
    /// The failures.
    pub list: Vec<FailureSection>,
    /// Jobs go on from checkpoints when hosts die.
    pub recovers: bool,
}

/// A failure of a component that changes its resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceFailure {
    /// Name of the component.
    pub component: String,
    /// `"slow"`, or `"off"`.
    pub effect: String,
    /// Its instant \[s\].
    pub at_s: f64,
    /// Instant from which on the component is as before \[s\]; `None` if it stays as it is.
    pub repaired_s: Option<f64>,
}

/// The state of resources over time: their factors, or 0 while they are off.
struct Changed {
    resources: Vec<Resource>,
    is_state: bool,
    profile: Profile,
}

impl ResourceFailures {
    /// Returns the components whose failures change resources.
    fn components<'a>(
        &'a self,
        platform: &Platform,
    ) -> Result<Vec<(&'a FailureSection, Component)>, FailureError> {
        let mut all = Vec::new();
        for (number, section) in self.list.iter().enumerate().filter(|(_, section)| !section.kills()) {
            let components = Component::of_section(platform, number, section)?;
            all.extend(components.into_iter().map(|component| (section, component)));
        }
        Ok(all)
    }

    /// Returns a text that is the same for failures that change resources alike.
    pub fn key(&self) -> String {
        let changing: Vec<&FailureSection> = self.list.iter().filter(|section| !section.kills()).collect();
        let seed = changing.iter().any(|section| section.mtbf.is_some()).then_some(self.seed);
        format!("{seed:?} {changing:?}")
    }

    /// Returns the failures that come before an instant, in the order of time.
    ///
    /// # Errors
    /// If the platform lacks a component.
    pub fn before(&self, platform: &Platform, end: SimTime) -> Result<Vec<ResourceFailure>, FailureError> {
        let end_s = end.as_secs_f64();
        let mut all = Vec::new();
        for (section, component) in self.components(platform)? {
            let effect = if section.link.is_some() && section.bandwidth.is_none() { "off" } else { "slow" };
            let repair_s = section.repair.map(|Seconds(repair_s)| repair_s);
            let number = if repair_s.is_some() { FAILURES } else { 1 };
            for at_s in component.instants(self.seed).take(number).take_while(|&at_s| at_s < end_s) {
                let (component, effect) = (component.name.clone(), effect.to_owned());
                let repaired_s = repair_s.map(|repair_s| at_s + repair_s);
                all.push(ResourceFailure { component, effect, at_s, repaired_s });
            }
        }
        all.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        Ok(all)
    }

    /// Returns the instant of the first failure; `None` if there is none.
    ///
    /// # Errors
    /// If the platform lacks a component.
    pub fn first(&self, platform: &Platform) -> Result<Option<SimTime>, FailureError> {
        let components = self.components(platform)?.into_iter();
        let first = |(_, component): (&FailureSection, Component)| component.instants(self.seed).next();
        let first = components.filter_map(first).min_by(f64::total_cmp);
        Ok(first.and_then(|at_s| Some(SimTime::ZERO + SimDuration::try_from_secs_f64(at_s)?)))
    }

    /// Returns the changes of resources.
    fn changes(&self, platform: &Platform) -> Result<Vec<Changed>, FailureError> {
        let components = self.components(platform)?.into_iter();
        Ok(components.filter_map(|(section, component)| self.change(section, &component)).collect())
    }

    /// Returns the changes of the resources of a component; `None` if it fails after the end of simulated time.
    fn change(&self, section: &FailureSection, component: &Component) -> Option<Changed> {
        let value = section.speed.or(section.bandwidth);
        let repair = section.repair.map(|Seconds(repair_s)| repair_s);
        let time = |at_s: f64| Some(SimTime::ZERO + SimDuration::try_from_secs_f64(at_s)?);
        let mut points = Vec::new();
        for at_s in component.instants(self.seed).take(if repair.is_some() { FAILURES } else { 1 }) {
            points.extend(time(at_s).map(|at| (at, value.unwrap_or(0.0))));
            points.extend(repair.and_then(|repair_s| time(at_s + repair_s)).map(|at| (at, 1.0)));
        }
        let (last, _) = *points.last()?;
        let recurs = section.mtbf.is_some() && points.len() == 2 * FAILURES;
        let profile = Profile::new(points, recurs.then_some(last - SimTime::ZERO))
            .expect("failures and repairs ascend, and their values are factors");
        let speeds = component.hosts.iter().map(|&host| Resource::Speed(host));
        let bandwidths = component.links.iter().map(|&link| Resource::Bandwidth(link));
        Some(Changed { resources: speeds.chain(bandwidths).collect(), is_state: value.is_none(), profile })
    }
}

impl PlatformChange for ResourceFailures {
    fn apply(&self, platform: &mut Platform) {
        let known = "the platform was checked";
        let mut are_links_off = false;
        for Changed { resources, is_state, profile } in self.changes(platform).expect(known) {
            are_links_off |= is_state;
            for resource in resources {
                let set = match is_state {
                    true => platform.set_state(resource, profile.clone()),
                    false => platform.set_factors(resource, &profile),
                };
                set.expect(known);
            }
        }
        if are_links_off {
            // Where the links form no graph, messages wait until theirs are on again.
            let _ = platform.add_detours();
        }
    }

    fn is_in_course(&self) -> bool {
        true
    }

    fn check(&self, platform: &Platform) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut known = BTreeSet::new();
        for (number, section) in self.list.iter().enumerate().filter(|(_, section)| section.kills()) {
            Component::of_section(platform, number, section)?;
            let changes = !platform.changes().is_empty() || !self.list.iter().all(FailureSection::kills);
            if self.recovers && changes {
                return Err(FailureError::Changes.into());
            }
        }
        for Changed { resources, is_state, .. } in self.changes(platform)? {
            for resource in resources {
                if platform.changes().includes(resource) || !known.insert((resource, is_state)) {
                    return Err(FailureError::Twice { resource: resource.describe(platform) }.into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use netmodel::{HostId, LinkId};

    use super::super::component::tests::platform;
    use super::*;

    fn failures(text: &str) -> ResourceFailures {
        #[derive(serde::Deserialize)]
        struct Sections {
            failure: Vec<FailureSection>,
        }
        let Sections { failure } = toml::from_str(text).unwrap();
        ResourceFailures { seed: 3, list: failure, recovers: false }
    }

    fn picos(seconds: f64) -> SimTime {
        SimTime::ZERO + SimDuration::try_from_secs_f64(seconds).unwrap()
    }

    #[test]
    fn resources_fail_and_are_repaired() {
        let mut platform = platform();
        let cable = platform.link(LinkId::new(0)).name.trim_end_matches("_UP").to_owned();
        let failures = failures(&format!(
            "[[failure]]\nhost = 'node-1'\nat = 2\nspeed = 0.5\n[[failure]]\nlink = {cable:?}\nat = 1\nrepair = 3\n\
             [[failure]]\nhost = 'node-0'\nat = 1\n"
        ));
        failures.check(&platform).unwrap();
        failures.apply(&mut platform);
        let speed = |at| platform.speed(HostId::new(1), picos(at));
        assert_eq!([speed(1.9), speed(2.0)], [1e9, 0.5e9]);
        // A host that dies has its speed.
        assert_eq!(platform.speed(HostId::new(0), picos(5.0)), 1e9);
        let bandwidth = |at| platform.changes().value(Resource::Bandwidth(LinkId::new(1)), picos(at));
        assert_eq!([bandwidth(0.9), bandwidth(1.0), bandwidth(3.9)], [None, Some(0.0), Some(0.0)]);
        assert!(bandwidth(4.0).is_none_or(|value| value == 1e9) && platform.has_detours());
        let before = failures.before(&platform, picos(1.5)).unwrap();
        let expected =
            ResourceFailure { component: cable, effect: "off".into(), at_s: 1.0, repaired_s: Some(4.0) };
        assert_eq!(before, [expected]);
    }

    #[test]
    fn random_failures_recur_after_many() {
        let mut platform = platform();
        let failures = failures("[[failure]]\nhost = '*'\nmtbf = 10\nrepair = 1\nspeed = 0.25\n");
        failures.apply(&mut platform);
        let first = failures.before(&platform, picos(1e4)).unwrap();
        assert_eq!(first.len(), 4 * FAILURES);
        let of_host: Vec<_> = first.iter().filter(|failure| failure.component == "node-2").collect();
        let (begin, last) = (of_host[0].at_s, of_host[FAILURES - 1].repaired_s.unwrap());
        for at in [begin + 0.5, last + begin + 0.5] {
            assert_eq!(platform.speed(HostId::new(2), picos(at)), 0.25e9, "{at}");
        }
        assert_eq!(platform.speed(HostId::new(2), picos(last + 0.5 * begin)), 1e9);
    }

    #[test]
    fn a_resource_fails_by_one_section() {
        let twice = failures(
            "[[failure]]\nhost = '*'\nat = 1\nspeed = 0.5\n[[failure]]\nleaf = 0\nat = 2\nspeed = 0.1\n",
        );
        let error = twice.check(&platform()).unwrap_err().to_string();
        assert!(error.contains("the speed of the host \"node-0\" is in another [[failure]]"), "{error}");
    }
}
