//! Lanes: queues of slots that wait for the same resources of a host.
//!
//! LogGOPSim keeps all events in one priority queue, and reinserts an event that finds its processor or interface busy
//! with the time at which that becomes idle. The events that wait for the same resources then reappear in stamp order,
//! and all but one are reinserted again. A lane keeps them in that order, and only its head has a time: the later of
//! its own and the resources'. The sequence is the same because the times at which resources become idle never
//! decrease.

use crate::schedule::{Extent, Kind, Node, Tables};

/// Kind of the slots in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneKind {
    Send,
    Receive,
    Calculate,
    /// Messages in flight to the host.
    Arrival,
}

/// A lane and its resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) kind: LaneKind,
    pub(crate) cpu: u8,
    pub(crate) nic: u8,
    /// Indices of its processor's and interface's idle times among those of a host. A lane of receives, which wait for
    /// neither, has the index of a time that is always 0.
    pub(crate) resources: [u16; 2],
}

impl Lane {
    /// Returns the time at which both of its resources are idle, from the idle times of its host \[ps\].
    #[inline]
    pub(crate) fn idle_time(&self, times: &[u64]) -> u64 {
        times[usize::from(self.resources[0])].max(times[usize::from(self.resources[1])])
    }
}

/// Lanes of a host: one for each combination of kind, processor and interface that occurs at any host.
#[derive(Debug)]
pub(crate) struct LanePlan {
    pub(crate) lanes: Vec<Lane>,
    /// Lane by kind, processor and interface.
    lane_numbers: Vec<u32>,
    pub(crate) cpus: usize,
    pub(crate) nics: usize,
}

const NONE: u32 = u32::MAX;

/// Lanes of the first processor and interface, by the number of an operation's kind.
const FIRST_LANES: [u32; 4] = [NONE, 0, 2, 3];

impl LanePlan {
    /// Finds the lanes of a schedule. The lanes of the first processor and interface come first: send, arrival,
    /// receive, computation.
    pub(crate) fn new(tables: &Tables<'_>, extent: &Extent) -> Self {
        let (cpus, nics) = (extent.cpus as usize, extent.nics as usize);
        let mut plan = Self { lanes: Vec::new(), lane_numbers: vec![NONE; 3 * cpus * nics], cpus, nics };
        [Kind::Send, Kind::Receive, Kind::Calculate].into_iter().for_each(|kind| plan.add(kind, 0, 0));
        if cpus * nics > 1 {
            tables.nodes.iter().for_each(|node| plan.add(node.kind(), node.cpu, node.nic));
        }
        plan
    }

    /// Adds the lane of an operation, unless it exists; a lane of sends is followed by the one in which their messages
    /// arrive.
    fn add(&mut self, kind: Kind, cpu: u8, nic: u8) {
        let index = self.index(kind, cpu, nic);
        if self.lane_numbers[index] != NONE {
            return;
        }
        self.lane_numbers[index] = self.lanes.len() as u32;
        let processor = u16::from(cpu);
        let sender = self.cpus as u16 + u16::from(nic);
        let receiver = sender + self.nics as u16;
        let never_busy = self.idle_time_count() as u16 - 1;
        let mut push = |what, idle| self.lanes.push(Lane { kind: what, cpu, nic, resources: idle });
        match kind {
            Kind::Calculate => push(LaneKind::Calculate, [processor; 2]),
            Kind::Receive => push(LaneKind::Receive, [never_busy; 2]),
            Kind::Send => {
                push(LaneKind::Send, [processor, sender]);
                push(LaneKind::Arrival, [processor, receiver]);
            }
        }
    }

    /// Returns the number of idle times per host: of processors, of interfaces for sends and for receives, and one that
    /// is always 0.
    pub(crate) fn idle_time_count(&self) -> usize {
        self.cpus + 2 * self.nics + 1
    }

    /// Returns the index of a lane's number; only sends and arrivals differ by interface.
    #[inline]
    fn index(&self, kind: Kind, cpu: u8, nic: u8) -> usize {
        let nic = if kind == Kind::Send { usize::from(nic) } else { 0 };
        ((kind as usize - 1) * self.cpus + usize::from(cpu)) * self.nics + nic
    }

    /// Returns the lane of an operation.
    #[inline]
    pub(crate) fn lane_of(&self, node: &Node) -> u32 {
        match self.lane_numbers.len() {
            // One lane for each kind: those of the first processor and interface.
            3 => FIRST_LANES[usize::from(node.kind & 3)],
            _ => self.lane_numbers[self.index(node.kind(), node.cpu, node.nic)],
        }
    }
}
