//! Use of the I/O servers of file systems, for the report.

use std::fmt::Write as _;

use netmodel::Platform;
use netmodel::storage::{Series, ServerUsage};
use pdes_core::SimTime;
use replay::{Outcome, ServerUse, Simulation};
use serde::{Deserialize, Serialize};

use super::column::{Column, Fractions};
use super::section::{CsvTable, Section};

/// Largest number of servers in the printed table.
const MAX_PRINTED: usize = 32;

/// Use of the I/O servers of the platform, with an entry of each column for each server, in the order of the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileServers {
    /// Length of the time bins of the series \[ps\].
    pub bin_ps: u64,
    /// Directory of the file system of each server.
    pub directories: Vec<String>,
    /// Host of each server.
    pub hosts: Vec<String>,
    /// Amount read from the device \[B\], what was merged or read ahead included.
    pub read_bytes: Column,
    /// Amount written to the device \[B\].
    pub written_bytes: Column,
    /// Number of requests to the device.
    pub requests: Column,
    /// Amount that reads found in the cache \[B\].
    pub hit_bytes: Column,
    /// Amount that reads did not find in the cache \[B\].
    pub missed_bytes: Column,
    /// Mean number of requests that waited for the device, over the run.
    pub mean_queue: Fractions,
    /// Largest number of requests that waited for the device.
    pub longest_queue: Column,
    /// Amounts that the device of each server read and wrote in each bin \[B\].
    pub series: Vec<Column>,
}

impl FileServers {
    fn of_platform(platform: &Platform, uses: &[ServerUse], end: SimTime) -> Self {
        let systems = platform.storage().file_systems();
        let usages = || uses.iter().map(|server| &server.usage);
        let column = |value: fn(&ServerUsage) -> u64| usages().map(value).collect::<Column>();
        let of_device = |usage: &ServerUsage| [usage.read.clone(), usage.written.clone()];
        let bin_ps = usages().flat_map(of_device).map(|series| series.width_ps()).max().unwrap_or(1);
        Self {
            bin_ps,
            directories: uses.iter().map(|server| systems[server.system.index()].directory.clone()).collect(),
            hosts: uses.iter().map(|server| platform.host(server.host).name.to_string()).collect(),
            read_bytes: column(|usage| usage.read_bytes.0),
            written_bytes: column(|usage| usage.written_bytes.0),
            requests: column(|usage| usage.requests.0),
            hit_bytes: column(|usage| usage.hit_bytes.0),
            missed_bytes: column(|usage| usage.missed_bytes.0),
            mean_queue: usages().map(|usage| usage.mean_queue(end)).collect(),
            longest_queue: column(|usage| usage.longest_queue),
            series: usages().map(|usage| sum(&of_device(usage), bin_ps)).collect(),
        }
    }

    fn columns(&self) -> [(&'static str, &Column); 6] {
        [
            ("read_bytes", &self.read_bytes),
            ("written_bytes", &self.written_bytes),
            ("requests", &self.requests),
            ("hit_bytes", &self.hit_bytes),
            ("missed_bytes", &self.missed_bytes),
            ("longest_queue", &self.longest_queue),
        ]
    }
}

/// Returns the sum of series in bins of a length, which is a multiple of theirs.
fn sum(all: &[Series], bin_ps: u64) -> Column {
    let bin = |series: &Series, index: usize| (index as u64 * series.width_ps() / bin_ps) as usize;
    let last = |series: &Series| series.amounts().len().checked_sub(1).map(|index| bin(series, index) + 1);
    let mut bins = vec![0; all.iter().filter_map(last).max().unwrap_or_default()];
    for series in all {
        series.amounts().iter().enumerate().for_each(|(index, amount)| bins[bin(series, index)] += amount);
    }
    bins.into_iter().collect()
}

impl Section for FileServers {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let uses = &outcome.file_servers;
        let platform = simulation.platform();
        (!uses.is_empty()).then(|| Self::of_platform(platform, uses, outcome.simulated_time()))
    }

    /// Writes the servers whose devices have most data.
    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        let mut order: Vec<usize> = (0..self.hosts.len()).collect();
        order.sort_by_key(|&server| {
            std::cmp::Reverse(self.read_bytes[server].saturating_add(self.written_bytes[server]))
        });
        let printed = order.len().min(MAX_PRINTED);
        writeln!(
            text,
            "\n{:<14} {:<12} {:>14} {:>14} {:>9} {:>7} {:>9}",
            "I/O server", "file system", "read [B]", "written [B]", "requests", "cached", "queue"
        )?;
        for &server in &order[..printed] {
            let looked_up = self.hit_bytes[server] + self.missed_bytes[server];
            let hits = match looked_up {
                0 => "-".to_owned(),
                all => format!("{:.1} %", 100.0 * self.hit_bytes[server] as f64 / all as f64),
            };
            writeln!(
                text,
                "{:<14} {:<12} {:>14} {:>14} {:>9} {:>7} {:>9.2}",
                self.hosts[server],
                self.directories[server],
                self.read_bytes[server],
                self.written_bytes[server],
                self.requests[server],
                hits,
                self.mean_queue[server]
            )?;
        }
        if printed < order.len() {
            writeln!(text, "and {} more", order.len() - printed)?;
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let mut table = CsvTable::of_columns("file_servers", &self.columns());
        table.header.splice(0..0, ["directory", "host"].map(str::to_owned));
        table.header.push("mean_queue".to_owned());
        for (server, row) in table.rows.iter_mut().enumerate() {
            row.splice(0..0, [self.directories[server].clone(), self.hosts[server].clone()]);
            row.push(self.mean_queue[server].to_string());
        }
        vec![table]
    }
}
