//! Builder of schedules, rank by rank.

use rustc_hash::FxHashMap;

use super::storage::{OwnedTables, Storage};
use super::{ANY, After, Channel, FROM_START, Kind, Node, Operation, Schedule};
use crate::error::ScheduleError;

/// Builder of a [`Schedule`]; ranks are added in order.
///
/// ```
/// use goal::{After, Operation, RankBuilder, ScheduleBuilder};
///
/// let mut schedule = ScheduleBuilder::new(2);
/// let mut rank = RankBuilder::default();
/// let compute = rank.push(Operation::calculate(700));
/// let send = rank.push(Operation::send(8, 1, 0));
/// rank.depend(send, compute, After::End);
/// schedule.push(&rank)?;
/// rank.clear();
/// rank.push(Operation::receive(8, 0, 0));
/// schedule.push(&rank)?;
/// assert_eq!(schedule.finish()?.extent().operations, 3);
/// # Ok::<(), goal::ScheduleError>(())
/// ```
#[derive(Debug)]
pub struct ScheduleBuilder {
    ranks: u32,
    built: OwnedTables,
    channel_ids: FxHashMap<Channel, u32>,
}

/// Builder of one rank: its operations and dependencies.
#[derive(Clone, Debug, Default)]
pub struct RankBuilder {
    operations: Vec<Operation>,
    /// Pairs of an operation and an edge that leaves it.
    edges: Vec<(u32, u32)>,
}

impl RankBuilder {
    /// Adds an operation and returns its number.
    ///
    /// # Panics
    /// Panics if the rank has 2^31 operations already.
    pub fn push(&mut self, operation: Operation) -> u32 {
        let number = self.operations.len() as u32;
        assert!(number < FROM_START, "a rank has at most 2^31 operations");
        self.operations.push(operation);
        number
    }

    /// Makes an operation depend on the end or the start of another one.
    ///
    /// # Panics
    /// Panics if one of the two does not exist.
    pub fn depend(&mut self, operation: u32, on: u32, after: After) {
        let len = self.operations.len() as u32;
        assert!(operation < len && on < len, "operations {operation} and {on} of {len}");
        self.edges.push((on, if after == After::End { operation } else { operation | FROM_START }));
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns true if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Removes all operations and keeps the memory for the next rank.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.edges.clear();
    }
}

impl ScheduleBuilder {
    /// Makes a builder of a schedule of `ranks` ranks.
    pub fn new(ranks: u32) -> Self {
        let built = OwnedTables { first_node: vec![0], first_edge: vec![0], ..OwnedTables::default() };
        Self { ranks, built, channel_ids: FxHashMap::default() }
    }

    /// Returns the rank that the next push adds.
    pub fn next_rank(&self) -> u32 {
        (self.built.first_node.len() - 1) as u32
    }

    /// Adds the next rank.
    ///
    /// # Errors
    /// Fails if all ranks are there already, an operation names a rank that does not exist, or a table would have 2^32
    /// entries.
    pub fn push(&mut self, rank: &RankBuilder) -> Result<(), ScheduleError> {
        let number = self.next_rank();
        if number >= self.ranks {
            return Err(ScheduleError::Ranks { found: u64::from(number) + 1, expected: self.ranks });
        }
        let first = self.built.nodes.len();
        for (index, operation) in (0..).zip(&rank.operations) {
            let node = self.node(number, index, operation)?;
            self.built.nodes.push(node);
        }
        self.push_edges(first, &rank.edges)?;
        self.built.first_node.push(self.built.nodes.len() as u64);
        Ok(())
    }

    fn node(&mut self, rank: u32, index: u32, operation: &Operation) -> Result<Node, ScheduleError> {
        let Operation { kind, size, peer, tag, cpu, nic } = *operation;
        let tag = tag.unwrap_or(ANY);
        let channel = match (kind, peer) {
            (Kind::Calculate, _) => None,
            (Kind::Receive, None) => Some(Channel { source: ANY, destination: rank, tag }),
            (Kind::Receive, Some(source)) if source < self.ranks => {
                Some(Channel { source, destination: rank, tag })
            }
            (Kind::Send, Some(destination)) if destination < self.ranks => {
                Some(Channel { source: rank, destination, tag })
            }
            _ => return Err(ScheduleError::Peer { rank, operation: index, peer, ranks: self.ranks }),
        };
        let channel = match channel {
            None => ANY,
            Some(channel) => self.channel_id(channel)?,
        };
        Ok(Node { size, channel, kind: kind as u8, cpu, nic, has_start_edges: 0 })
    }

    fn channel_id(&mut self, channel: Channel) -> Result<u32, ScheduleError> {
        let next = checked_count(self.built.channels.len(), "channels")?;
        Ok(*self.channel_ids.entry(channel).or_insert_with(|| {
            self.built.channels.push(channel);
            next
        }))
    }

    /// Sorts the edges by the operation that they leave, by counting; keeps the order of those that leave the same one.
    fn push_edges(&mut self, first: usize, edges: &[(u32, u32)]) -> Result<(), ScheduleError> {
        let OwnedTables { nodes, first_edge, edges: sorted, .. } = &mut self.built;
        let nodes = &mut nodes[first..];
        let base = sorted.len();
        checked_count(base + edges.len(), "dependencies")?;
        checked_count(first + nodes.len(), "operations")?;
        let mut next = vec![base as u32; nodes.len() + 1];
        edges.iter().for_each(|&(from, _)| next[from as usize + 1] += 1);
        for index in 1..next.len() {
            next[index] += next[index - 1] - base as u32;
        }
        first_edge.extend_from_slice(&next[1..]);
        sorted.resize(base + edges.len(), 0);
        for &(from, edge) in edges {
            let at = &mut next[from as usize];
            sorted[*at as usize] = edge;
            *at += 1;
            nodes[from as usize].has_start_edges |= u8::from(edge & FROM_START != 0);
        }
        Ok(())
    }

    /// Checks the schedule and returns it.
    ///
    /// # Errors
    /// Fails if ranks are missing or dependencies form a cycle.
    pub fn finish(mut self) -> Result<Schedule, ScheduleError> {
        let found = self.next_rank();
        if found != self.ranks {
            return Err(ScheduleError::Ranks { found: found.into(), expected: self.ranks });
        }
        drop(self.channel_ids);
        sort_channels(&mut self.built, self.ranks);
        Schedule::new(Storage::Owned(self.built))
    }
}

/// Renumbers the channels by destination, so that the channels of a rank are adjacent.
fn sort_channels(built: &mut OwnedTables, ranks: u32) {
    let mut next = vec![0_u64; ranks as usize + 1];
    built.channels.iter().for_each(|channel| next[channel.destination as usize + 1] += 1);
    for rank in 1..next.len() {
        next[rank] += next[rank - 1];
    }
    built.first_channel.clone_from(&next);
    let mut sorted = built.channels.clone();
    let numbers: Vec<u32> = built
        .channels
        .iter()
        .map(|channel| {
            let at = &mut next[channel.destination as usize];
            sorted[*at as usize] = *channel;
            *at += 1;
            (*at - 1) as u32
        })
        .collect();
    built.channels = sorted;
    for node in &mut built.nodes {
        if node.channel != ANY {
            node.channel = numbers[node.channel as usize];
        }
    }
}

/// Returns a number of entries, checked to fit an index of 32 bits.
fn checked_count(len: usize, table: &'static str) -> Result<u32, ScheduleError> {
    u32::try_from(len)
        .ok()
        .filter(|&len| len < ANY)
        .ok_or(ScheduleError::TooLarge { table, entries: len as u64 })
}
