//! Machines of ASTRA-sim.

use serde::Deserialize;

use crate::CollectiveKind;

/// What ASTRA-sim does has no counterpart here, or a file is wrong.
#[derive(Debug, thiserror::Error)]
pub enum AstraError {
    /// A file of a system is no JSON, or lacks a key.
    #[error("system: {0}")]
    System(#[from] serde_json::Error),
    /// A key of a system has another value than is modelled.
    #[error("system: {key} is {found}, expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value found.
        found: String,
        /// The values expected.
        expected: &'static str,
    },
    /// A key of a network is missing or has another value than is modelled.
    #[error("network: {key} is {found}, expected {expected}")]
    Network {
        /// The key.
        key: &'static str,
        /// The value found.
        found: String,
        /// The values expected.
        expected: &'static str,
    },
    /// The trace has another number of ranks than the network NPUs.
    #[error("the trace has {ranks} ranks, the network {npus} NPUs")]
    Npus {
        /// Number of ranks.
        ranks: usize,
        /// Number of NPUs.
        npus: u32,
    },
    /// A trace has messages between two NPUs.
    #[error("rank {rank}: node {id} is a message between two NPUs, which has no closed form")]
    Message {
        /// The rank.
        rank: u32,
        /// The id of the node.
        id: u64,
    },
    /// An NPU has another operation than others, or others end without it.
    #[error("rank {rank} waits in a collective operation that not all ranks reach")]
    Collective {
        /// The rank.
        rank: u32,
    },
    /// A collective operation has no closed form.
    #[error("{found:?} has no closed form, expected AllReduce or AllGather")]
    Kind {
        /// The operation.
        found: Option<CollectiveKind>,
    },
    /// Collective operations are those of a ring.
    #[error("collective operations have a closed form on a Ring only")]
    Topology,
}

/// A system: how NPUs do collective operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct System {
    /// Number of chunks of an operation (`preferred-dataset-splits`).
    pub splits: u64,
    /// Delay of an endpoint \[ns\].
    pub endpoint_delay: u64,
    /// Bandwidth of the memory \[B/ns, GB/s of 10^9 B\].
    pub local_memory_bandwidth: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SystemFile {
    endpoint_delay: u64,
    active_chunks_per_dimension: u64,
    preferred_dataset_splits: u64,
    all_reduce_implementation: Vec<String>,
    all_gather_implementation: Vec<String>,
    local_mem_bw: f64,
    #[serde(default)]
    roofline_enabled: u64,
}

impl System {
    /// Reads a file in JSON.
    ///
    /// # Errors
    /// Fails if the file is wrong, or asks for what has no closed form.
    pub fn from_json(text: &str) -> Result<Self, AstraError> {
        let file: SystemFile = serde_json::from_str(text)?;
        let value = |key, found: String, expected| Err(AstraError::Value { key, found, expected });
        if file.active_chunks_per_dimension != 1 {
            let found = file.active_chunks_per_dimension.to_string();
            return value("active-chunks-per-dimension", found, "1");
        }
        if file.roofline_enabled != 0 {
            return value("roofline-enabled", file.roofline_enabled.to_string(), "0");
        }
        for (key, found) in [
            ("all-reduce-implementation", &file.all_reduce_implementation),
            ("all-gather-implementation", &file.all_gather_implementation),
        ] {
            if *found != ["ring"] {
                return value(key, format!("{found:?}"), "[\"ring\"]");
            }
        }
        if file.preferred_dataset_splits == 0 || file.local_mem_bw.is_nan() || file.local_mem_bw <= 0.0 {
            let found = format!("{} and {}", file.preferred_dataset_splits, file.local_mem_bw);
            return value("preferred-dataset-splits and local-mem-bw", found, "numbers above 0");
        }
        Ok(Self {
            splits: file.preferred_dataset_splits,
            endpoint_delay: file.endpoint_delay,
            local_memory_bandwidth: file.local_mem_bw,
        })
    }
}
