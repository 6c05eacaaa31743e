//! SimGrid's disk (`kernel/resource/DiskImpl.cpp`): simultaneous accesses share its bandwidths, without latency or seeks.

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::{Access, AccessId, Device, Direction, read_parameters};
use crate::flow::{PICOS, later};
use crate::quantity::Bandwidth;

/// Parameters of a disk in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskParameters {
    read: Bandwidth,
    write: Bandwidth,
    both: Option<Bandwidth>,
    #[serde(default)]
    efficiency: Vec<f64>,
}

/// A disk with a bandwidth for reading, one for writing, and one for both together, which accesses share max-min fairly. They may
/// depend on the number of simultaneous accesses.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// Bandwidths [B/ps].
    read: f64,
    write: f64,
    both: f64,
    /// Part of the bandwidths that there is with one access, with two and so on; the last one for more. All of them without any.
    efficiency: Vec<f64>,
    state: DiskState,
}

#[derive(Clone, Debug, Default)]
struct DiskState {
    running: Vec<Transfer>,
    since: SimTime,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Transfer {
    id: AccessId,
    #[state(plain)]
    direction: Direction,
    /// Amount left at the last change \[B\].
    left: f64,
    /// Rate since the last change [B/ps].
    rate: f64,
    end: SimTime,
}

/// Makes a disk of its parameters.
pub(super) fn build(parameters: toml::Table) -> Result<Box<dyn Device>, String> {
    let DiskParameters { read, write, both, efficiency } = read_parameters(parameters)?;
    if let Some(found) = efficiency.iter().find(|part| !(part.is_finite() && **part > 0.0)) {
        return Err(format!("an efficiency of {found}, expected more than zero"));
    }
    let disk = Disk::new(read.0, write.0, both.map(|both| both.0))?;
    Ok(Box::new(Disk { efficiency, ..disk }))
}

impl Disk {
    /// Creates an idle disk with bandwidths [B/s]; that for both directions together is by default the larger one.
    pub(crate) fn new(read: f64, write: f64, both: Option<f64>) -> Result<Self, String> {
        let both = both.unwrap_or(read.max(write));
        if let Some(found) = [read, write, both].into_iter().find(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(format!("a bandwidth of {found} B/s, expected more than zero"));
        }
        let [read, write, both] = [read, write, both].map(|rate| rate / PICOS);
        Ok(Self { read, write, both, efficiency: Vec::new(), state: DiskState::default() })
    }

    /// Returns the part of the bandwidths that there is with so many accesses.
    fn efficiency(&self, accesses: usize) -> f64 {
        let known = self.efficiency.get(accesses.saturating_sub(1)).or(self.efficiency.last());
        known.copied().unwrap_or(1.0)
    }

    /// Returns the rates of each reading and each writing access, with so many of both.
    ///
    /// All rates rise together until a bandwidth is used up; then those of the other direction rise on.
    fn rates(&self, readers: usize, writers: usize) -> (f64, f64) {
        let efficiency = self.efficiency(readers + writers);
        let [all_reads, all_writes, both] = [self.read, self.write, self.both].map(|rate| rate * efficiency);
        let (readers, writers) = (readers as f64, writers as f64);
        let (read, write) = (all_reads / readers, all_writes / writers);
        let common = both / (readers + writers);
        if common <= read.min(write) {
            (common, common)
        } else if read <= write {
            (read, write.min((both - all_reads) / writers))
        } else {
            (read.min((both - all_writes) / readers), write)
        }
    }

    /// Updates what is left of each access up to now.
    fn progress(&mut self, now: SimTime) {
        let elapsed = (now - self.state.since).as_picos() as f64;
        self.state.running.iter_mut().for_each(|transfer| transfer.left -= transfer.rate * elapsed);
        self.state.since = now;
    }

    /// Divides the bandwidths among the accesses.
    fn divide(&mut self) {
        let readers = self.state.running.iter().filter(|access| access.direction == Direction::Read).count();
        let (read, write) = self.rates(readers, self.state.running.len() - readers);
        for transfer in &mut self.state.running {
            transfer.rate = if transfer.direction == Direction::Read { read } else { write };
            transfer.end = later(self.state.since, (transfer.left / transfer.rate).max(0.0));
        }
    }
}

impl Device for Disk {
    fn idle(&self) -> Box<dyn Device> {
        Box::new(Self { state: DiskState::default(), ..self.clone() })
    }

    fn duration_alone(&self, access: &Access) -> Option<SimDuration> {
        let rate = if access.direction == Direction::Read { self.read } else { self.write };
        SimDuration::try_from_picos_f64(access.bytes as f64 / (rate.min(self.both) * self.efficiency(1)))
    }

    fn begin(&mut self, now: SimTime, access: &Access, id: AccessId) {
        self.progress(now);
        let (direction, left) = (access.direction, access.bytes as f64);
        self.state.running.push(Transfer { id, direction, left, rate: 0.0, end: now });
        self.divide();
    }

    fn next_event(&self) -> Option<SimTime> {
        self.state.running.iter().map(|transfer| transfer.end).min()
    }

    fn advance(&mut self, now: SimTime, ended: &mut Vec<AccessId>) {
        self.progress(now);
        self.state.running.retain(|transfer| {
            if transfer.end <= now {
                ended.push(transfer.id);
            }
            transfer.end > now
        });
        self.divide();
    }

    fn has_positions(&self) -> bool {
        false
    }
}

impl State for Disk {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { read: _, write: _, both: _, efficiency: _, state: DiskState { running, since } } = self;
        running.visit(visitor);
        // It does not matter since when a disk is idle.
        if !(visitor.is_observing() && running.is_empty()) {
            since.visit(visitor);
        }
    }
}
