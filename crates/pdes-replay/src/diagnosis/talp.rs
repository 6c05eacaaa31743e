//! A diagnosis as TALP writes it, the library of DLB that measures efficiencies, so that TALP-Pages draws tables of scaling and history.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use outputs::write_json;
use serde_json::{Map, Value, json};

use super::{Diagnosis, RegionEfficiency};

/// Version of DLB whose format it is.
const FORMAT_VERSION: &str = "3.5.0";
/// Name of the region that is the whole program.
const GLOBAL: &str = "Global";

impl Diagnosis {
    /// Writes the efficiencies as TALP does, with the time of writing. A rank is a CPU, `instructions` are the amounts of computation of
    /// the trace, and `cycles` the useful time at one cycle per nanosecond. What is of threads and tasks is zero.
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
            longest_useful_s: pop.longest_useful_s,
            busiest_node_s: pop.busiest_node_s,
            flops: pop.flops,
            parallel_efficiency: pop.parallel_efficiency,
            load_balance: pop.load_balance,
            load_balance_between_nodes: pop.load_balance_between_nodes,
            load_balance_in_nodes: pop.load_balance_in_nodes,
            communication_efficiency: pop.communication_efficiency,
            serialization_efficiency: pop.serialization_efficiency,
            transfer_efficiency: pop.transfer_efficiency,
        };
        regions.insert(GLOBAL.to_owned(), self.region(&whole));
        for region in &self.regions {
            if let Some(site) = &region.site {
                regions.insert(site.clone(), self.region(region));
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

    /// Returns the entry of a region.
    fn region(&self, region: &RegionEfficiency) -> Value {
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        let ranks = self.pop.ranks.max(1) as f64;
        let mpi_s = region.time_s - region.useful_s;
        json!({
            "numCpus": self.pop.ranks,
            "numMpiRanks": self.pop.ranks,
            "numNodes": self.pop.nodes,
            "avgCpus": self.pop.ranks as f64,
            "cycles": nanos(region.useful_s),
            "instructions": region.flops,
            "numMeasurements": 1,
            "numOmpParallels": 0,
            "numOmpTasks": 0,
            "elapsedTime": nanos(region.elapsed_s),
            "usefulTime": nanos(region.useful_s),
            "mpiTime": nanos(mpi_s),
            "ompLoadImbalanceTime": 0,
            "ompSchedulingTime": 0,
            "ompSerializationTime": 0,
            "usefulNormdApp": nanos(region.useful_s / ranks),
            "mpiNormdApp": nanos(mpi_s / ranks),
            "maxUsefulNormdProc": nanos(region.longest_useful_s),
            "maxUsefulNormdNode": nanos(region.busiest_node_s * self.pop.nodes as f64 / ranks),
            "mpiNormdOfMaxUseful": nanos(region.elapsed_s - region.longest_useful_s),
            "parallelEfficiency": region.parallel_efficiency,
            "mpiParallelEfficiency": region.parallel_efficiency,
            "mpiCommunicationEfficiency": region.communication_efficiency,
            "mpiLoadBalance": region.load_balance,
            "mpiLoadBalanceIn": region.load_balance_in_nodes,
            "mpiLoadBalanceOut": region.load_balance_between_nodes,
        })
    }
}
