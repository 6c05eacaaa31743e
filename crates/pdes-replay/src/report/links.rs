//! What links carried, as the report tells it.

use netmodel::{LinkLoad, LinkLoads, Platform};
use serde::{Deserialize, Serialize};

use super::column::{Column, Fractions};

/// The most links that are listed one by one.
const LISTED: usize = 32;
/// The most links whose names are all told.
const NAMED: usize = 4096;

/// What the links of a platform carried: `docs/links.md` says how that is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// The length of the bins of time of all series \[ps\].
    pub bin_ps: u64,
    /// The 32 most contended links: those that held messages back longest, then those with most bytes, then by name.
    pub top: Vec<ContendedLink>,
    /// All links of the platform.
    pub all: AllLinks,
}

/// What a link carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContendedLink {
    /// Its name.
    pub name: String,
    /// Its bandwidth [B/s].
    pub capacity_bytes_per_s: f64,
    /// The bytes on the wire of the messages that crossed it.
    pub bytes: u64,
    /// Its mean load over the run, as a part of its capacity.
    pub utilisation: f64,
    /// How long it held messages back \[ps\]: it was full, and they would have gone faster otherwise.
    pub saturated_ps: u64,
    /// The most of the series.
    pub peak: f64,
    /// Its mean load in each bin, as a part of its capacity.
    pub series: Fractions,
}

/// What each link of a platform carried, in the order of the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllLinks {
    /// Their names, unless they are more than 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// As in [`ContendedLink`]; 0 for fat pipes, which are not looked at.
    pub bytes: Column,
    /// As in [`ContendedLink`], likewise.
    pub utilisation: Fractions,
}

impl Links {
    /// Puts together what the links of a platform carried.
    pub(super) fn new(platform: &Platform, loads: &LinkLoads) -> Self {
        let name = |load: &LinkLoad| &platform.link(load.link).name;
        let mut most: Vec<&LinkLoad> = loads.links.iter().collect();
        most.sort_by(|one, other| {
            let contention = |load: &LinkLoad| (load.saturated, load.bytes);
            contention(other).cmp(&contention(one)).then_with(|| name(one).cmp(name(other)))
        });
        let link = |load: &&LinkLoad| {
            let series: Fractions = load.series.iter().copied().collect();
            ContendedLink {
                name: name(load).to_string(),
                capacity_bytes_per_s: platform.link(load.link).bandwidth,
                bytes: load.bytes,
                utilisation: load.utilisation,
                saturated_ps: load.saturated.as_picos(),
                peak: series.iter().copied().fold(0.0, f64::max),
                series,
            }
        };
        Self {
            bin_ps: loads.bin.as_picos(),
            top: most.iter().take(LISTED).map(link).collect(),
            all: AllLinks::new(platform, &loads.links),
        }
    }
}

impl AllLinks {
    fn new(platform: &Platform, loads: &[LinkLoad]) -> Self {
        let links = platform.links();
        let names = || links.iter().map(|link| link.name.to_string()).collect();
        let (mut bytes, mut utilisation) = (vec![0; links.len()], vec![0.0; links.len()]);
        for load in loads {
            bytes[load.link.index()] = load.bytes;
            utilisation[load.link.index()] = load.utilisation;
        }
        Self {
            names: (links.len() <= NAMED).then(names),
            bytes: bytes.into_iter().collect(),
            utilisation: utilisation.into_iter().collect(),
        }
    }
}
