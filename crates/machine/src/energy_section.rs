//! The section `[energy]` of a configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use netmodel::quantity::Seconds;
use netmodel::{HostPower, LinkPower};
use pdes_core::{SimDuration, SimTime};
use replay::RunSpec;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::power_counters::PowerCounters;
use crate::{CarbonIntensity, MessageEnergy, PowerByName};

/// Energy of the hosts and links of the platform, in the report; no effect on other results but by `frequency`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "energy.md"))]
pub struct EnergySection {
    /// The report has the energy of the run.
    #[schemars(extend("default" = false))]
    pub enabled: bool,
    /// Parts whose energy the report lists one by one.
    #[schemars(extend("default" = []))]
    pub by: Vec<EnergyPart>,
    /// Power of hosts by their names; `*` stands for any text, and the longest name counts.
    #[schemars(extend("x-default" = "that of the platform file (`wattage_per_state`, `wattage_off`)"))]
    pub hosts: BTreeMap<String, HostPower>,
    /// Power of links by their names, as that of hosts.
    #[schemars(extend("x-default" = "that of the platform file (`wattage_range`)"))]
    pub links: BTreeMap<String, LinkPower>,
    /// Energy of messages, of the adapters at both ends, by the names of the hosts that send.
    #[schemars(extend("x-default" = "none"))]
    pub messages: BTreeMap<String, MessageEnergy>,
    /// Energy of each byte that crosses a link, by the names of the links; in J/B.
    pub traffic: BTreeMap<String, f64>,
    /// Frequency of cores in regions of the programs, as a factor.
    #[schemars(extend("default" = {}, "x-page" = "energy.md#frequency"))]
    pub frequency: BTreeMap<String, f64>,
    /// Carbon intensity of the electricity: a number, or pairs of an instant, the first 0, and the intensity from there on.
    #[schemars(extend("x-unit" = "g/kWh", "x-default" = "none"))]
    pub carbon_intensity: Option<CarbonEntry>,
}

/// A part of a machine that takes energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnergyPart {
    /// Hosts.
    Host,
    /// Links.
    Link,
    /// Jobs: what their ranks take of their hosts.
    Job,
    /// Ranks of all jobs.
    Rank,
    /// Regions of the programs.
    Region,
    /// Kinds of actions, such as `compute` and `allreduce`.
    Call,
}

/// Carbon intensity in a configuration \[g/kWh\].
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a number, or pairs of an instant and a number, such as [[\"0s\", 300], [\"1h\", 200]]"
)]
pub enum CarbonEntry {
    /// At all times.
    Constant(f64),
    /// From instants on.
    Steps(Vec<(Seconds, f64)>),
}

impl EnergySection {
    /// Name of the section.
    pub const NAME: &str = "energy";

    /// Lets a run record what its energy depends on.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn apply(&self, spec: &mut RunSpec) -> Result<(), EnergySectionError> {
        if self.carbon_intensity.is_some() && self.carbon_intensity().is_none() {
            return Err(EnergySectionError::CarbonIntensity);
        }
        if let Some((region, &found)) =
            self.frequency.iter().find(|(_, factor)| !(factor.is_finite() && **factor > 0.0))
        {
            return Err(EnergySectionError::Frequency { region: region.clone(), found });
        }
        let others = spec.other_programs.iter_mut().map(|program| &mut program.mpi);
        for parameters in [&mut spec.mpi].into_iter().chain(others) {
            for (region, factor) in &self.frequency {
                *parameters.region_speeds.entry(region.clone()).or_insert(1.0) *= factor;
            }
        }
        if self.enabled {
            spec.host_loads = true;
            spec.region_times |= self.by.contains(&EnergyPart::Region) || !self.frequency.is_empty();
            spec.platform_changes.push(Arc::new(self.power()));
            spec.timeline_counters.push(Arc::new(PowerCounters(self.power())));
        }
        Ok(())
    }

    /// Returns the power of hosts and links, and the energy of messages.
    pub fn power(&self) -> PowerByName {
        let Self { hosts, links, messages, traffic, .. } = self.clone();
        PowerByName { hosts, links, messages, traffic }
    }

    /// Returns the carbon intensity; `None` if there is none, or it is out of range.
    pub fn carbon_intensity(&self) -> Option<CarbonIntensity> {
        let begin = |&(Seconds(seconds), value): &(Seconds, f64)| {
            Some((SimTime::ZERO.checked_add(SimDuration::try_from_secs_f64(seconds)?)?, value))
        };
        let values = match self.carbon_intensity.as_ref()? {
            CarbonEntry::Constant(value) => vec![(SimTime::ZERO, *value)],
            CarbonEntry::Steps(steps) => steps.iter().map(begin).collect::<Option<_>>()?,
        };
        CarbonIntensity::new(values)
    }
}

/// Error in the section `[energy]`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnergySectionError {
    /// A frequency is none.
    #[error("frequency of {region:?}: found {found}, expected a factor above 0")]
    Frequency {
        /// The region.
        region: String,
        /// The factor.
        found: f64,
    },
    /// The carbon intensity is not one.
    #[error(
        "carbon_intensity: expected a number of 0 or more, or such numbers from instants on that ascend from 0, such as \
         [[\"0s\", 300], [\"1h\", 200]]"
    )]
    CarbonIntensity,
}
