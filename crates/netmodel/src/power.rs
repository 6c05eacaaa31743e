//! Power that hosts and links draw by their loads, as SimGrid's energy plugins describe it.

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{HostId, LinkId};

/// Power of a host \[W\].
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPower {
    /// While no core computes.
    pub idle: f64,
    /// While cores compute, in the limit of no load; by default `idle`.
    #[serde(default)]
    epsilon: Option<f64>,
    /// While all cores compute at full speed.
    pub all_cores: f64,
    /// While the host is off: has no speed.
    #[serde(default)]
    pub off: f64,
}

impl HostPower {
    /// Returns the power while cores compute, in the limit of no load \[W\]: from there it grows linearly to that of all cores.
    pub fn epsilon(&self) -> f64 {
        self.epsilon.unwrap_or(self.idle)
    }

    /// Reads the entry of a processor state in a list `idle:epsilon:all cores, ...` or `idle:all cores, ...` with an entry for each of
    /// `states`; `None` if it has another form. The power off is 0.
    pub(crate) fn of_state(list: &str, (state, states): (usize, usize)) -> Option<Self> {
        let powers: Vec<Self> = list.split(',').map(Self::of_entry).collect::<Option<_>>()?;
        powers.get(state).copied().filter(|_| powers.len() == states)
    }

    fn of_entry(entry: &str) -> Option<Self> {
        let (idle, epsilon, all_cores) = match watts(entry)?[..] {
            [idle, all_cores] => (idle, None, all_cores),
            [idle, epsilon, all_cores] => (idle, Some(epsilon), all_cores),
            _ => return None,
        };
        Some(Self { idle, epsilon, all_cores, off: 0.0 })
    }

    /// Returns whether all powers are 0 or more.
    pub fn is_valid(&self) -> bool {
        [self.idle, self.epsilon(), self.all_cores, self.off].into_iter().all(is_power)
    }
}

/// Power of a link \[W\].
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkPower {
    /// While it carries nothing.
    pub idle: f64,
    /// While it is full; in between the power is linear in the load.
    pub busy: f64,
}

impl LinkPower {
    /// Reads `idle:busy`; `None` if the text has another form.
    pub(crate) fn of_range(range: &str) -> Option<Self> {
        match watts(range)?[..] {
            [idle, busy] => Some(Self { idle, busy }),
            _ => None,
        }
    }

    /// Returns whether both powers are 0 or more.
    pub fn is_valid(&self) -> bool {
        is_power(self.idle) && is_power(self.busy)
    }
}

/// Reads powers that are separated by colons.
pub(crate) fn watts(text: &str) -> Option<Vec<f64>> {
    let power = |text: &str| text.trim().parse().ok().filter(|&watts| is_power(watts));
    text.split(':').map(power).collect()
}

fn is_power(watts: f64) -> bool {
    watts.is_finite() && watts >= 0.0
}

/// Power of the hosts and links of a platform, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Power {
    /// Power of hosts.
    pub hosts: FxHashMap<HostId, HostPower>,
    /// Power of links.
    pub links: FxHashMap<LinkId, LinkPower>,
}

impl Power {
    /// Returns whether the power of a link depends on its load.
    pub(crate) fn depends_on_load(&self, link: LinkId) -> bool {
        self.links.get(&link).is_some_and(|power| power.idle != power.busy)
    }
}
