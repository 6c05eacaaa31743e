//! A diagnosis as TALP writes it, the library of DLB that measures efficiencies, so that TALP-Pages draws tables of scaling and history.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::{Diagnosis, RegionEfficiency};
use crate::report::write_json;

/// Version of DLB whose format it is.
const FORMAT_VERSION: &str = "3.5.0";
/// Name of the region that is the whole program.
const GLOBAL: &str = "Global";

impl Diagnosis {
    /// Writes the efficiencies as TALP does, with the time of writing. `instructions` are the amounts of computation of the trace, and
    /// `cycles` the useful time at one cycle per nanosecond.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_talp(&self, path: &Path) -> io::Result<()> {
        let pop = &self.pop;
        let mut regions = Map::new();
        let whole = RegionEfficiency {
            site: None,
            time_s: pop.time_s * pop.ranks as f64,
            elapsed_s: pop.time_s,
            useful_s: pop.useful_s,
            parallel_efficiency: pop.parallel_efficiency,
            load_balance: pop.load_balance,
            load_balance_between_nodes: pop.load_balance_between_nodes,
            load_balance_in_nodes: pop.load_balance_in_nodes,
            communication_efficiency: pop.communication_efficiency,
        };
        regions.insert(GLOBAL.to_owned(), self.region(&whole, pop.flops));
        for region in &self.regions {
            if let Some(site) = &region.site {
                regions.insert(site.clone(), self.region(region, 0.0));
            }
        }
        let written = json!({
            "dlbVersion": FORMAT_VERSION,
            "timestamp": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            "resources": { "numCpus": pop.ranks, "numNodes": pop.nodes, "numMpiRanks": pop.ranks },
            "Application": regions,
        });
        write_json(&written, path)
    }

    /// Returns the entry of a region, with its computation \[flop\].
    fn region(&self, region: &RegionEfficiency, flops: f64) -> Value {
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        json!({
            "numCpus": self.pop.ranks,
            "numMpiRanks": self.pop.ranks,
            "numNodes": self.pop.nodes,
            "avgCpus": self.pop.ranks as f64,
            "cycles": nanos(region.useful_s),
            "instructions": flops,
            "numMeasurements": 1,
            "elapsedTime": nanos(region.elapsed_s),
            "usefulTime": nanos(region.useful_s),
            "mpiTime": nanos(region.time_s - region.useful_s),
            "parallelEfficiency": region.parallel_efficiency,
            "mpiParallelEfficiency": region.parallel_efficiency,
            "mpiCommunicationEfficiency": region.communication_efficiency,
            "mpiLoadBalance": region.load_balance,
            "mpiLoadBalanceIn": region.load_balance_in_nodes,
            "mpiLoadBalanceOut": region.load_balance_between_nodes,
        })
    }
}
