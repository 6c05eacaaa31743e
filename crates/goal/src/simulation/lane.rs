//! Lanes: what waits for the same resources of a host, in the order in which it gets them.
//!
//! LogGOPSim keeps everything in one priority queue, and puts whatever finds its processor or interface busy back with the
//! time at which that becomes idle. Whoever waits for the same resources then comes up again in the order of stamps, and
//! all but one go back. A lane keeps them in that order, and only its head has a time: the later one of its own and the
//! resources'. That gives the same sequence because the times at which resources become idle never decrease.

use std::collections::VecDeque;

use crate::schedule::{Kind, Tables};

/// Something that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The earliest time \[ps\].
    pub(crate) time: u64,
    /// Place in the order of creation.
    pub(crate) stamp: u64,
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    /// Index of the operation; of a message that of its send.
    pub(crate) node: u32,
    pub(crate) channel: u32,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// What a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Send,
    Receive,
    Calculate,
    /// Messages on their way to the host.
    Arrive,
}

/// The resources of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resources {
    pub(crate) what: What,
    pub(crate) cpu: u8,
    pub(crate) nic: u8,
}

/// The lanes that a host has: one for each combination that occurs anywhere.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) lanes: Vec<Resources>,
    /// Number of the lane by kind, processor and interface.
    numbers: Vec<u32>,
    cpus: usize,
    nics: usize,
}

impl Plan {
    pub(crate) fn new(tables: &Tables<'_>) -> Self {
        let extent = tables.extent();
        let (cpus, nics) = (extent.cpus as usize, extent.nics as usize);
        let mut plan = Self { lanes: Vec::new(), numbers: vec![u32::MAX; 4 * cpus * nics], cpus, nics };
        for node in tables.nodes {
            let (cpu, nic) = (node.cpu, node.nic);
            match node.kind() {
                Kind::Calculate => plan.add(Resources { what: What::Calculate, cpu, nic: 0 }),
                Kind::Receive => plan.add(Resources { what: What::Receive, cpu, nic: 0 }),
                Kind::Send => {
                    plan.add(Resources { what: What::Send, cpu, nic });
                    plan.add(Resources { what: What::Arrive, cpu, nic });
                }
            }
        }
        plan
    }

    fn add(&mut self, resources: Resources) {
        let Resources { what, cpu, nic } = resources;
        let index = self.index(what, cpu, nic);
        if self.numbers[index] == u32::MAX {
            self.numbers[index] = self.lanes.len() as u32;
            self.lanes.push(resources);
        }
    }

    #[inline]
    fn index(&self, what: What, cpu: u8, nic: u8) -> usize {
        (what as usize * self.cpus + usize::from(cpu)) * self.nics + usize::from(nic)
    }

    /// Returns the number of a lane at a host.
    #[inline]
    pub(crate) fn lane(&self, what: What, cpu: u8, nic: u8) -> usize {
        self.numbers[self.index(what, cpu, nic)] as usize
    }
}

/// Puts an entry into its place in a queue; nearly always that is the end.
#[inline]
pub(crate) fn insert(queue: &mut VecDeque<Entry>, entry: Entry, key: impl Fn(&Entry) -> (u64, u64)) {
    if queue.back().is_none_or(|last| key(last) < key(&entry)) {
        return queue.push_back(entry);
    }
    let at = queue.partition_point(|other| key(other) < key(&entry));
    queue.insert(at, entry);
}
