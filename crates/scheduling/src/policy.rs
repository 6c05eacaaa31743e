//! Policies: which jobs start now, and where.

mod conservative;
mod easy;
mod fcfs;
mod pool;
mod profile;

use crate::scheduler::Running;
use crate::{Date, Job, JobId, NodeSet, Span};

use conservative::{Compression, Conservative};
use easy::{Easy, Order};
use fcfs::Fcfs;
use pool::Count;

/// A policy of a scheduler. It is asked once for each instant at which a job was submitted or ended.
///
/// Laws: it starts waiting jobs only, each once, on as many nodes as the job needs, which are free and differ from those of other
/// starts. If the machine is empty and a job waits, it starts one.
pub trait Policy: Send {
    /// Returns the jobs that start now, in the order in which they do.
    fn starts(&mut self, view: &View<'_>) -> Vec<Start>;
}

/// State of the machine that a policy sees: jobs that wait and that run, and free nodes, after the submissions and ends of an instant.
#[derive(Debug)]
pub struct View<'a> {
    /// The instant.
    pub now: Date,
    /// All jobs. Their run times are not known to a scheduler.
    pub jobs: &'a [Job],
    /// Jobs that run, in the order of their starts.
    pub running: &'a [Running],
    /// Jobs that wait, in the order of their submissions.
    pub waiting: &'a [JobId],
    /// Nodes on which no job runs.
    pub free: &'a NodeSet,
    /// Whether a job has ended since the policy was asked before.
    pub has_ended: bool,
}

impl View<'_> {
    /// Returns how long nodes are reserved for a job.
    fn length(&self, job: JobId) -> Span {
        self.jobs[job.0].estimate.max(Span::SHORTEST)
    }

    /// Returns the date at which a running job is expected to end: by its estimate, or the next instant if it runs longer.
    fn expected_end(&self, running: &Running) -> Date {
        (running.start + self.length(running.job)).max(self.now + Span::SHORTEST)
    }
}

/// The start of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// Its nodes.
    pub nodes: NodeSet,
}

/// Contents of a reservation of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservations {
    /// Nodes: the lowest ones that are free for the whole estimate of the job.
    Named,
    /// A number of nodes: any ones that are free when the job starts will do.
    Counted,
}

/// A policy that users select by its name.
#[derive(Debug)]
pub struct PolicyEntry {
    /// Name on the command line.
    pub name: &'static str,
    /// A sentence.
    pub description: &'static str,
    named: fn() -> Box<dyn Policy>,
    counted: fn() -> Box<dyn Policy>,
}

impl PolicyEntry {
    /// Creates the policy.
    pub fn policy(&self, reservations: Reservations) -> Box<dyn Policy> {
        match reservations {
            Reservations::Named => (self.named)(),
            Reservations::Counted => (self.counted)(),
        }
    }
}

/// All policies.
pub const POLICIES: [PolicyEntry; 4] = [
    PolicyEntry {
        name: "fcfs",
        description: "Jobs start in the order of their submissions.",
        named: || Box::new(Fcfs),
        counted: || Box::new(Fcfs),
    },
    PolicyEntry {
        name: "easy",
        description: "The first job that does not fit gets a reservation; others start if they do not delay it.",
        named: || Box::new(Easy::<NodeSet>::new(Order::Submission)),
        counted: || Box::new(Easy::<Count>::new(Order::Submission)),
    },
    PolicyEntry {
        name: "sjbf",
        description: "As easy, but of the others the shortest are tried first.",
        named: || Box::new(Easy::<NodeSet>::new(Order::Estimate)),
        counted: || Box::new(Easy::<Count>::new(Order::Estimate)),
    },
    PolicyEntry {
        name: "conservative",
        description: "Every job has a reservation, which later jobs do not delay.",
        named: || Box::new(Conservative::<NodeSet>::new(Compression::OneByOne)),
        counted: || Box::new(Conservative::<Count>::new(Compression::Anew)),
    },
];

/// Returns the policy with a name.
pub fn find_policy(name: &str) -> Option<&'static PolicyEntry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// The free nodes of an instant, which starts take one after another.
struct Pass {
    free: NodeSet,
    starts: Vec<Start>,
}

impl Pass {
    fn new(view: &View<'_>) -> Self {
        Self { free: view.free.clone(), starts: Vec::new() }
    }

    /// Starts a job on nodes of a pool, all of which are free.
    fn start(&mut self, job: JobId, chosen: &impl pool::Pool) {
        let nodes = chosen.nodes(&self.free);
        self.free.remove(&nodes);
        self.starts.push(Start { job, nodes });
    }
}
