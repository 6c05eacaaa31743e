//! Task graphs on the processors and accelerators of a node.
//!
//! A [`TaskGraph`] has tasks of some kernels, and the data that they read and write, from which their order follows;
//! [`TaskGraph::cholesky`] is one. A [`Node`] is a platform whose hosts are processors and accelerators, each with a memory of its own and
//! with rates for kernels. [`execute`] runs the graph under one of the [`SCHEDULERS`]: tasks compute on cores, copies of data are messages
//! that share links. [`Bounds`] says how fast any scheduler can be.
//!
//! ```
//! use netmodel::Platform;
//! use tasks::{Bounds, Node, Rates, SCHEDULERS, TaskGraph, execute};
//!
//! let platform = Platform::from_toml("topology = { kind = 'graph' }\nhost = [{ name = 'cpu', speed = '1Gf', cores = 2 }]\n", "node.toml")?;
//! let rates: Rates = toml::from_str("memory = 'cpu'\nrates.cpu = { potrf = 1, trsm = 1, syrk = 1, gemm = 1 }")?;
//! let graph = TaskGraph::cholesky(2, 300);
//! let node = Node::new(&platform, &rates, &graph)?;
//! let bounds = Bounds::of(&graph, &node);
//! let execution = execute(&graph, &node, SCHEDULERS[0].scheduler(&graph, &node));
//! // Of four tasks that follow each other none can run beside another one: potrf, trsm, syrk, potrf.
//! assert_eq!(execution.makespan.as_secs_f64(), bounds.critical_path_s);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bounds;
mod execution;
mod graph;
mod node;
mod scheduler;

pub use bounds::Bounds;
pub use execution::{Execution, TaskRun, execute};
pub use graph::{DataId, Kernel, Task, TaskGraph, TaskId};
pub use node::{Node, NodeError, Rates, Worker, WorkerKind};
pub use scheduler::{SCHEDULERS, Scheduler, SchedulerEntry, View, find_scheduler};
