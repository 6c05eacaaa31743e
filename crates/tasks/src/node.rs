//! A node: processors and accelerators with their memories.

use std::collections::BTreeMap;

use netmodel::{
    ContentionFree, HostId, NetworkParameters, Platform, Preset, RouteError, UncontendedRoute, name_matches,
};
use pdes_core::{Bytes, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use crate::graph::{Kernel, Task, TaskGraph};

/// Rates of the cores of a node by kernel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Name of the host in whose memory all data are at the begin.
    pub memory: String,
    /// Rates of a core by kernel \[Gflop/s\], by names of hosts in which `*` stands for any text; each name is a kind of workers. A core does
    /// no tasks of kernels that are not there.
    pub rates: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A kind of workers.
#[derive(Clone, Debug)]
pub struct WorkerKind {
    /// Its name in the rates.
    pub name: String,
    /// Number of workers.
    pub workers: usize,
    /// Rates by kernel, in the order of [`Kernel::ALL`] \[flop/s\]; 0 where there is none.
    rates: [f64; Kernel::ALL.len()],
}

/// A core of a host, which does one task at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Number of the kind.
    pub kind: usize,
    /// The host.
    #[serde(skip)]
    pub host: HostId,
}

/// A platform whose hosts are the processors and the accelerators of a node, each with a memory that its cores share.
#[derive(Debug)]
pub struct Node<'p> {
    /// The platform.
    pub platform: &'p Platform,
    /// Kinds of workers.
    pub kinds: Vec<WorkerKind>,
    /// Workers, in the order of hosts.
    pub workers: Vec<Worker>,
    /// Host in whose memory all data are at the begin.
    pub memory: HostId,
    model: ContentionFree,
    routes: BTreeMap<(HostId, HostId), UncontendedRoute>,
}

/// The reason why rates do not fit a platform, or a graph.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The platform has no such host.
    #[error("{key} {name:?}: the platform has no such host; its first is {first:?}")]
    Host {
        /// The key.
        key: &'static str,
        /// The name.
        name: String,
        /// Name of the first host.
        first: String,
    },
    /// A host is of two kinds.
    #[error("[rates]: the host {host:?} fits both {:?} and {:?}; a host is of one kind", .kinds[0], .kinds[1])]
    Twice {
        /// Name of the host.
        host: String,
        /// Names of the kinds.
        kinds: [String; 2],
    },
    /// There is no such kernel.
    #[error("[rates.{kind:?}]: there is no kernel {kernel:?}; expected potrf, trsm, syrk or gemm")]
    Kernel {
        /// Name of the kind.
        kind: String,
        /// Name of the kernel.
        kernel: String,
    },
    /// A rate is none.
    #[error(
        "[rates.{kind:?}] {kernel}: found {found}, expected Gflop/s above 0; leave out what the cores cannot do"
    )]
    Rate {
        /// Name of the kind.
        kind: String,
        /// Name of the kernel.
        kernel: String,
        /// The rate.
        found: f64,
    },
    /// No bound is known for more kinds.
    #[error("[rates]: found {0} kinds of workers, expected one or two, such as \"cpu\" and \"gpu-*\"")]
    Kinds(usize),
    /// Nobody does a kernel.
    #[error("[rates]: no cores have a rate for {}, of which the graph has tasks", .0.name())]
    Missing(Kernel),
    /// Data cannot get from one memory to another.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl<'p> Node<'p> {
    /// Makes the node of a platform with these rates, for a graph.
    ///
    /// # Errors
    /// If they do not fit each other.
    pub fn new(platform: &'p Platform, rates: &Rates, graph: &TaskGraph) -> Result<Self, NodeError> {
        let unknown = |key, name: &String| {
            let first = platform.hosts().first().map_or(String::new(), |host| host.name.clone());
            NodeError::Host { key, name: name.clone(), first }
        };
        let memory = platform.host_by_name(&rates.memory).ok_or_else(|| unknown("memory", &rates.memory))?;
        if !(1..=2).contains(&rates.rates.len()) {
            return Err(NodeError::Kinds(rates.rates.len()));
        }
        let mut kinds = Vec::new();
        let mut kind_of = BTreeMap::<HostId, usize>::new();
        for (name, of_kernels) in &rates.rates {
            let hosts = (0..).map(HostId::new).zip(platform.hosts());
            let own: Vec<HostId> =
                hosts.filter(|(_, host)| name_matches(name, &host.name)).map(|(id, _)| id).collect();
            if own.is_empty() {
                return Err(unknown("[rates]", name));
            }
            for &host in &own {
                if let Some(other) = kind_of.insert(host, kinds.len()) {
                    let kinds: &[WorkerKind] = &kinds;
                    let kinds = [kinds[other].name.clone(), name.clone()];
                    return Err(NodeError::Twice { host: platform.host(host).name.clone(), kinds });
                }
            }
            let workers = own.iter().map(|host| platform.host(*host).cores as usize).sum();
            kinds.push(WorkerKind { name: name.clone(), workers, rates: by_kernel(name, of_kernels)? });
        }
        let is_missing = |kernel: &Kernel| kinds.iter().all(|kind| kind.rate(*kernel).is_none());
        let mut needed = Kernel::ALL.into_iter().filter(|kernel| graph.flops_of(*kernel) > 0.0);
        if let Some(kernel) = needed.find(is_missing) {
            return Err(NodeError::Missing(kernel));
        }
        let workers = kind_of.iter().flat_map(|(&host, &kind)| {
            std::iter::repeat_n(Worker { kind, host }, platform.host(host).cores as usize)
        });
        let workers = workers.collect();
        let model = ContentionFree::new(&parameters());
        let mut memories: Vec<HostId> = kind_of.into_keys().collect();
        memories.extend((!memories.contains(&memory)).then_some(memory));
        let pairs = memories.iter().flat_map(|&src| memories.iter().map(move |&dst| (src, dst)));
        let pairs = pairs.filter(|(src, dst)| src != dst);
        let routes = pairs.map(|(src, dst)| Ok(((src, dst), model.route(platform, src, dst)?)));
        let routes = routes.collect::<Result<_, RouteError>>()?;
        Ok(Self { platform, kinds, workers, memory, model, routes })
    }

    /// Returns the time of a task on a kind of workers \[s\]; `None` if these do not do it.
    pub fn time_s(&self, task: &Task, kind: usize) -> Option<f64> {
        Some(task.flops / self.kinds[kind].rate(task.kernel)?)
    }

    /// Returns the time of a copy between two memories without others beside it \[s\].
    pub fn copy_time_s(&self, size: Bytes, src: HostId, dst: HostId) -> f64 {
        if src == dst {
            return 0.0;
        }
        let route = self.routes[&(src, dst)];
        let time = self.model.transfer(self.platform, route, size, SimTime::ZERO);
        time.map_or(f64::INFINITY, SimDuration::as_secs_f64)
    }
}

impl WorkerKind {
    /// Returns the rate of a kernel \[flop/s\]; `None` if there is none.
    pub fn rate(&self, kernel: Kernel) -> Option<f64> {
        Some(self.rates[kernel as usize]).filter(|rate| *rate > 0.0)
    }
}

/// Parameters of copies: latency and bandwidth of links as they are.
pub(crate) fn parameters() -> NetworkParameters {
    NetworkParameters::preset(Preset::Raw)
}

fn by_kernel(kind: &str, of_kernels: &BTreeMap<String, f64>) -> Result<[f64; Kernel::ALL.len()], NodeError> {
    let mut rates = [0.0; Kernel::ALL.len()];
    for (name, &found) in of_kernels {
        let (kind, name) = (kind.to_owned(), name.clone());
        let Some(kernel) = Kernel::ALL.into_iter().find(|kernel| kernel.name() == name) else {
            return Err(NodeError::Kernel { kind, kernel: name });
        };
        if !(found.is_finite() && found > 0.0) {
            return Err(NodeError::Rate { kind, kernel: name, found });
        }
        rates[kernel as usize] = 1e9 * found;
    }
    Ok(rates)
}
