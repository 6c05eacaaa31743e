//! Schedules of known communication patterns: collectives and a stencil.

use pdes_core::{GOLDEN_GAMMA, mix};

use crate::error::ScheduleError;
use crate::schedule::{After, Operation, RankBuilder, Schedule, ScheduleBuilder};

/// Builds a schedule; `fill` adds the operations of each rank.
fn build(ranks: u32, fill: impl Fn(u32, &mut RankBuilder)) -> Result<Schedule, ScheduleError> {
    let mut schedule = ScheduleBuilder::new(ranks);
    let mut rank = RankBuilder::default();
    while schedule.next_rank() < ranks {
        rank.clear();
        fill(schedule.next_rank(), &mut rank);
        schedule.push(&rank)?;
    }
    schedule.finish()
}

/// Yields the children of a rank in the binomial tree in which a rank's parent is the rank without its highest bit.
fn children(rank: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let bits = (0..u32::BITS).map(|bit| 1 << bit);
    bits.filter(move |&bit: &u32| bit > rank)
        .filter_map(move |bit| rank.checked_add(bit))
        .filter(move |&child| child < ranks)
}

/// Returns the parent of a rank in that tree.
fn parent(rank: u32) -> Option<u32> {
    rank.checked_ilog2().map(|bit| rank - (1 << bit))
}

/// Returns a broadcast from rank 0 down a binomial tree.
///
/// # Errors
/// Fails if the schedule would be too large.
pub fn binomial_bcast(ranks: u32, bytes: u64) -> Result<Schedule, ScheduleError> {
    build(ranks, |rank, operations| {
        let received = parent(rank).map(|parent| operations.push(Operation::receive(bytes, parent, 0)));
        for child in children(rank, ranks) {
            let send = operations.push(Operation::send(bytes, child, 0));
            received.into_iter().for_each(|received| operations.depend(send, received, After::End));
        }
    })
}

/// Returns a reduction to rank 0 up a binomial tree, without computations.
///
/// # Errors
/// Fails if the schedule would be too large.
pub fn binomial_reduce(ranks: u32, bytes: u64) -> Result<Schedule, ScheduleError> {
    build(ranks, |rank, operations| {
        let send = parent(rank).map(|parent| operations.push(Operation::send(bytes, parent, 0)));
        for child in children(rank, ranks) {
            let received = operations.push(Operation::receive(bytes, child, 0));
            send.into_iter().for_each(|send| operations.depend(send, received, After::End));
        }
    })
}

/// Returns a dissemination barrier (Hensgen, Finkel, Manber 1988): in round k each rank sends to the rank at distance
/// 2^k.
///
/// # Errors
/// Fails if the schedule would be too large.
pub fn dissemination(ranks: u32, bytes: u64) -> Result<Schedule, ScheduleError> {
    build(ranks, |rank, operations| {
        let mut received = None;
        let mut distance = 1;
        while distance < ranks {
            let to = ((u64::from(rank) + u64::from(distance)) % u64::from(ranks)) as u32;
            let from = ((u64::from(rank) + u64::from(ranks - distance)) % u64::from(ranks)) as u32;
            let send = operations.push(Operation::send(bytes, to, 0));
            received.into_iter().for_each(|received| operations.depend(send, received, After::End));
            received = Some(operations.push(Operation::receive(bytes, from, 0)));
            distance = distance.saturating_mul(2);
        }
    })
}

/// Returns an allreduce on a power of two of ranks: halves the data with partners at growing distance (reduce-scatter),
/// then doubles it at shrinking distance (allgather).
///
/// # Errors
/// Fails if the schedule would be too large.
///
/// # Panics
/// Panics if the number of ranks is not a power of two.
pub fn recursive_doubling_allreduce(ranks: u32, bytes: u64) -> Result<Schedule, ScheduleError> {
    assert!(ranks.is_power_of_two(), "{ranks} ranks are not a power of two");
    let steps = ranks.ilog2();
    build(ranks, |rank, operations| {
        let mut received = None;
        for step in (0..steps).chain((0..steps).rev()) {
            let (partner, part) = (rank ^ (1 << step), bytes >> (step + 1));
            let send = operations.push(Operation::send(part, partner, 0));
            received.into_iter().for_each(|received| operations.depend(send, received, After::End));
            received = Some(operations.push(Operation::receive(part, partner, 0)));
        }
    })
}

/// Returns an alltoall in which every rank sends to every other one, without dependencies.
///
/// # Errors
/// Fails if the schedule would be too large.
pub fn linear_alltoall(ranks: u32, bytes: u64) -> Result<Schedule, ScheduleError> {
    build(ranks, |rank, operations| {
        for distance in 1..ranks {
            let at = |distance: u32| ((u64::from(rank) + u64::from(distance)) % u64::from(ranks)) as u32;
            operations.push(Operation::send(bytes, at(distance), 0));
            operations.push(Operation::receive(bytes, at(ranks - distance), 0));
        }
    })
}

/// Halo exchange on a two-dimensional torus.
#[derive(Clone, Copy, Debug)]
pub struct Stencil {
    /// Number of ranks in each dimension.
    pub ranks: [u32; 2],
    /// Number of iterations, each a computation and an exchange.
    pub iterations: u32,
    /// Size of a message to a neighbour \[B\].
    pub bytes: u64,
    /// Length of a computation \[ns\].
    pub nanos: u64,
    /// Largest random addition to the length of a computation \[ns\].
    pub jitter: u64,
}

impl Stencil {
    /// Builds the schedule. A computation waits for all sends and receives of the iteration before it, and these wait
    /// for theirs.
    ///
    /// # Errors
    /// Fails if the schedule would be too large.
    pub fn schedule(&self) -> Result<Schedule, ScheduleError> {
        let [columns, rows] = self.ranks;
        build(columns * rows, |rank, operations| {
            let (x, y) = (rank % columns, rank / columns);
            let at = |x: u32, y: u32| x % columns + y % rows * columns;
            let neighbours = [at(x + 1, y), at(x + columns - 1, y), at(x, y + 1), at(x, y + rows - 1)];
            let mut random = u64::from(rank) + 1;
            let mut before: Vec<u32> = Vec::new();
            for iteration in 0..self.iterations {
                let compute =
                    operations.push(Operation::calculate(self.nanos + jitter(&mut random, self.jitter)));
                before.drain(..).for_each(|earlier| operations.depend(compute, earlier, After::End));
                for (direction, neighbour) in (0..).zip(neighbours) {
                    let tag = 4 * iteration + direction;
                    before.push(operations.push(Operation::send(self.bytes, neighbour, tag)));
                    before.push(operations.push(Operation::receive(self.bytes, neighbour, tag ^ 1)));
                }
                before.iter().for_each(|&later| operations.depend(later, compute, After::End));
            }
        })
    }
}

/// Returns a pseudo-random number from 0 to `most` (SplitMix64).
fn jitter(state: &mut u64, most: u64) -> u64 {
    *state = state.wrapping_add(GOLDEN_GAMMA);
    mix(*state) % (most + 1)
}
