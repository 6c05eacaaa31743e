//! Loads of links, for the report.

use netmodel::{Layout, LinkLoad, LinkLoads, Platform};
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::column::{Column, Fractions};
use super::section::{CsvTable, Section};
use super::tables;

/// Largest number of links that are listed individually.
const MAX_LISTED: usize = 32;
/// Largest number of links whose series are all listed.
const MAX_SERIES: usize = 1024;
/// Largest number of links whose names are all listed.
const MAX_NAMED: usize = 4096;

/// Loads of the links of a platform; `docs/links.md` says how they are determined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Length of the time bins of all series \[ps\].
    pub bin_ps: u64,
    /// The 32 most contended links: by the time that they held messages back, then by bytes, then by name.
    pub top: Vec<ContendedLink>,
    /// All links of the platform.
    pub all: AllLinks,
}

/// Load of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContendedLink {
    /// Name of the link.
    pub name: String,
    /// Stations that it connects, such as `leaf 3 to spine 1`; null unless all hosts are in one cluster.
    #[serde(default)]
    pub connects: Option<String>,
    /// Bandwidth \[B/s\].
    pub capacity_bytes_per_s: f64,
    /// Bytes on the wire of the messages that crossed the link.
    pub bytes: u64,
    /// Mean load over the run, as a fraction of the capacity.
    pub utilisation: f64,
    /// Time for which the link held messages back \[ps\]: it was saturated, and they would have been faster otherwise.
    pub saturated_ps: u64,
    /// Largest value of the series.
    pub peak: f64,
    /// Mean load in each bin, as a fraction of the capacity.
    pub series: Fractions,
}

/// Loads of all links of a platform, in the order of the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllLinks {
    /// Names of the links; omitted if there are more than 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Bytes as in [`ContendedLink`]; 0 for fat pipes, which are not recorded.
    pub bytes: Column,
    /// Utilisation as in [`ContendedLink`]; 0 for fat pipes.
    pub utilisation: Fractions,
    /// Series as in [`ContendedLink`], empty for links that carry nothing; omitted if there are more than 1024 links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<Fractions>>,
}

impl Links {
    /// Assembles the loads of the links of a platform.
    fn of_platform(platform: &Platform, loads: &LinkLoads) -> Self {
        let connected = Layout::of(platform).map(|layout| layout.names_of_links()).unwrap_or_default();
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
                connects: connected.get(&load.link).cloned(),
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
            top: most.iter().take(MAX_LISTED).map(link).collect(),
            all: AllLinks::new(platform, &loads.links),
        }
    }
}

impl AllLinks {
    fn new(platform: &Platform, loads: &[LinkLoad]) -> Self {
        let links = platform.links();
        let names = || links.iter().map(|link| link.name.to_string()).collect();
        let (mut bytes, mut utilisation) = (vec![0; links.len()], vec![0.0; links.len()]);
        let mut series = vec![Fractions::default(); if links.len() <= MAX_SERIES { links.len() } else { 0 }];
        for load in loads {
            if let Some(series) = series.get_mut(load.link.index()).filter(|_| load.bytes > 0) {
                *series = load.series.iter().copied().collect();
            }
            bytes[load.link.index()] = load.bytes;
            utilisation[load.link.index()] = load.utilisation;
        }
        Self {
            names: (links.len() <= MAX_NAMED).then(names),
            bytes: bytes.into_iter().collect(),
            utilisation: utilisation.into_iter().collect(),
            series: (!series.is_empty()).then_some(series),
        }
    }
}

impl Section for Links {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        outcome.links.as_ref().map(|loads| Self::of_platform(simulation.platform(), loads))
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        tables::links::write(self, text)
    }

    fn csv(&self) -> Vec<CsvTable> {
        let AllLinks { names, bytes, utilisation, .. } = &self.all;
        let name = |link: usize| names.as_ref().map_or_else(|| link.to_string(), |names| names[link].clone());
        let row = |link| vec![name(link), bytes[link].to_string(), utilisation[link].to_string()];
        let header = ["link", "bytes", "utilisation"].map(str::to_owned).to_vec();
        vec![CsvTable { name: "links", header, rows: (0..bytes.len()).map(row).collect() }]
    }

    #[cfg(feature = "pictures")]
    fn figures(&self, run: &super::SavedReport) -> Vec<figures::Figure> {
        super::page::links::figures(self, run)
    }
}
