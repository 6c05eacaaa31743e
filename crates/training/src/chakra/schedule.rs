//! Schedules of execution traces.

use std::collections::BTreeMap;

use goal::{After, Operation, RankBuilder, Schedule, ScheduleBuilder};
use rustc_hash::FxHashMap;

use super::{ChakraError, CollectiveKind, ExecutionTrace, Node, NodeKind, Stream, streams};
use crate::collective::{Algorithm, AlgorithmError, Nccl, Steps, Transfer, channels};

/// Limits of a GPU, by which computations that say what they do get a duration of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Speed \[flop/s\].
    pub flops: f64,
    /// Bandwidth of the memory \[B/s\].
    pub bandwidth: f64,
}

impl Roofline {
    /// Returns the duration of a computation that reads and writes some bytes \[ns\].
    pub fn nanos(self, flops: u64, bytes: u64) -> u64 {
        let seconds = (flops as f64 / self.flops).max(bytes as f64 / self.bandwidth);
        (1e9 * seconds).round() as u64
    }
}

/// Options of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScheduleOptions {
    /// Algorithm of collective operations; those that it does not serve are rings.
    pub algorithm: Algorithm,
    /// GPUs for whose operations NCCL chooses algorithm and protocol, in place of `algorithm`.
    pub nccl: Option<Nccl>,
    /// Limits of the GPU; without them durations are those recorded.
    pub roofline: Option<Roofline>,
}

/// A schedule of an execution trace.
#[derive(Debug)]
pub struct ChakraSchedule {
    /// The schedule.
    pub schedule: Schedule,
    /// What the schedule does not have, with the number of nodes.
    pub left_out: BTreeMap<&'static str, u64>,
}

impl ChakraSchedule {
    /// Describes what the schedule does not have.
    pub fn omissions(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|(what, count)| format!("not in the schedule: {count} {what}"))
    }
}

/// A collective operation among all of its ranks.
#[derive(Clone, Copy)]
struct Instance<'t> {
    /// Number among all operations, which tells its tags.
    number: u32,
    members: &'t [u32],
}

/// The first tag that no message has which is not of a collective operation.
const FIRST_TAG: u32 = 1 << 31;
/// Most channels of a collective operation: 32 of NCCL, with two trees each.
const CHANNELS: u32 = 64;

impl ExecutionTrace {
    /// Returns the schedule of all ranks: dependencies, and one operation of each stream at a time in the order in which durations alone
    /// would let them begin.
    ///
    /// # Errors
    /// Fails if the ranks of a group have other collective operations, or if the schedule is too large.
    pub fn schedule(&self, options: &ScheduleOptions) -> Result<ChakraSchedule, ChakraError> {
        let nanos = |node: &Node| match (node.work, options.roofline) {
            _ if node.kind != NodeKind::Compute => 0,
            (Some((flops, bytes)), Some(roofline)) => roofline.nanos(flops, bytes),
            _ => node.micros.saturating_mul(1000),
        };
        let orders: Vec<_> = self.ranks.iter().map(|nodes| streams(nodes, nanos)).collect();
        let groups = self.groups(&orders)?;
        let mut left_out = BTreeMap::new();
        let mut schedule = ScheduleBuilder::new(self.ranks.len() as u32);
        for (rank, (nodes, orders)) in (0..).zip(self.ranks.iter().zip(&orders)) {
            let mut graph = Graph {
                rank,
                builder: RankBuilder::default(),
                ends: vec![None; nodes.len()],
                options,
                left_out: &mut left_out,
            };
            let instances = instances(rank, nodes, orders, &groups);
            let before = predecessors(nodes, orders);
            for node in topological(nodes, &before) {
                let instance = instances.get(&node).copied();
                graph.add(node, nodes, before[node as usize], nanos(&nodes[node as usize]), instance)?;
            }
            schedule.push(&graph.builder)?;
        }
        Ok(ChakraSchedule { schedule: schedule.finish()?, left_out })
    }

    /// Returns the members of each group, and the number of its first operation; checks that its ranks have the same operations.
    fn groups(
        &self,
        orders: &[[Vec<u32>; Stream::COUNT]],
    ) -> Result<BTreeMap<&str, (Vec<u32>, u32)>, ChakraError> {
        type Operations<'t> = Vec<(Option<CollectiveKind>, u64)>;
        let mut groups: BTreeMap<&str, Vec<(u32, Operations<'_>)>> = BTreeMap::new();
        for (rank, (nodes, orders)) in (0..).zip(self.ranks.iter().zip(orders)) {
            for (group, operations) in by_group(nodes, orders) {
                let operation = |node: &u32| (nodes[*node as usize].collective, nodes[*node as usize].bytes);
                groups.entry(group).or_default().push((rank, operations.iter().map(operation).collect()));
            }
        }
        if let Some(all) = groups.get_mut("") {
            let missing =
                (0..self.ranks.len() as u32).filter(|rank| !all.iter().any(|(known, _)| known == rank));
            let missing: Vec<_> = missing.map(|rank| (rank, Vec::new())).collect();
            all.extend(missing);
            all.sort_by_key(|(rank, _)| *rank);
        }
        let mut number = 0;
        let mut numbered = BTreeMap::new();
        for (group, ranks) in groups {
            let (first, expected) = &ranks[0];
            for (rank, found) in &ranks {
                let place = (0..found.len().max(expected.len()))
                    .find(|place| found.get(*place) != expected.get(*place));
                if let Some(number) = place {
                    let describe = |operations: &Operations<'_>| match operations.get(number) {
                        Some((Some(kind), bytes)) => format!("{kind:?} of {bytes} B"),
                        Some((None, bytes)) => format!("one of unknown kind and {bytes} B"),
                        None => "no more".to_owned(),
                    };
                    return Err(ChakraError::Collective {
                        number,
                        group: group.to_owned(),
                        rank: *rank as usize,
                        found: describe(found),
                        first: *first as usize,
                        expected: describe(expected),
                    });
                }
            }
            let operations = expected.len() as u32;
            numbered.insert(group, (ranks.iter().map(|(rank, _)| *rank).collect(), number));
            number += operations;
        }
        Ok(numbered)
    }
}

/// Returns the collective operations of each group in their order.
fn by_group<'n>(nodes: &'n [Node], orders: &[Vec<u32>; Stream::COUNT]) -> BTreeMap<&'n str, Vec<u32>> {
    let mut groups: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let of_stream = |stream: Stream| orders[stream as usize].iter();
    for node in of_stream(Stream::Communication).chain(of_stream(Stream::Processor)) {
        if nodes[*node as usize].kind == NodeKind::Collective {
            groups.entry(&nodes[*node as usize].group).or_default().push(*node);
        }
    }
    groups
}

/// Returns the collective operation of each node that is one.
fn instances<'t>(
    rank: u32,
    nodes: &[Node],
    orders: &[Vec<u32>; Stream::COUNT],
    groups: &'t BTreeMap<&str, (Vec<u32>, u32)>,
) -> FxHashMap<u32, Instance<'t>> {
    let mut instances = FxHashMap::default();
    for (group, operations) in by_group(nodes, orders) {
        let (members, first) = &groups[group];
        debug_assert!(members.contains(&rank));
        instances.extend(
            operations.into_iter().zip(*first..).map(|(node, number)| (node, Instance { number, members })),
        );
    }
    instances
}

/// Returns for each node the one before it on its stream.
fn predecessors(nodes: &[Node], orders: &[Vec<u32>; Stream::COUNT]) -> Vec<Option<u32>> {
    let mut before = vec![None; nodes.len()];
    for pair in orders.iter().flat_map(|order| order.windows(2)) {
        before[pair[1] as usize] = Some(pair[0]);
    }
    before
}

/// Returns the nodes in an order in which each comes after those on which it depends. There is one: that in which they were begun.
fn topological(nodes: &[Node], before: &[Option<u32>]) -> Vec<u32> {
    let mut dependents = vec![Vec::new(); nodes.len()];
    let mut left = vec![0; nodes.len()];
    for (index, node) in (0..).zip(nodes) {
        for earlier in node.after.iter().chain(&before[index as usize]) {
            dependents[*earlier as usize].push(index);
            left[index as usize] += 1;
        }
    }
    let mut order: Vec<u32> = (0..nodes.len() as u32).filter(|node| left[*node as usize] == 0).collect();
    let mut done = 0;
    while let Some(node) = order.get(done).copied() {
        done += 1;
        for dependent in &dependents[node as usize] {
            left[*dependent as usize] -= 1;
            if left[*dependent as usize] == 0 {
                order.push(*dependent);
            }
        }
    }
    order
}

/// The graph of a rank.
struct Graph<'a> {
    rank: u32,
    builder: RankBuilder,
    /// The operation that ends each node.
    ends: Vec<Option<u32>>,
    options: &'a ScheduleOptions,
    left_out: &'a mut BTreeMap<&'static str, u64>,
}

impl Graph<'_> {
    /// Adds a node after those before it.
    fn add(
        &mut self,
        index: u32,
        nodes: &[Node],
        before: Option<u32>,
        nanos: u64,
        instance: Option<Instance<'_>>,
    ) -> Result<(), ChakraError> {
        let node = &nodes[index as usize];
        if node.control > 0 {
            self.leave_out("control dependencies", node.control.into());
        }
        let after = node.after.iter().chain(&before).filter_map(|earlier| self.ends[*earlier as usize]);
        let after: Vec<u32> = after.collect();
        let cpu = Stream::of(node).map_or(0, |stream| stream as u8);
        let end = match (node.kind, instance) {
            (NodeKind::Collective, Some(instance)) => self.collective(node, instance, &after)?,
            (NodeKind::Send, _) => self.push(Operation::send(node.bytes, node.peer, node.tag), &after),
            (NodeKind::Receive, _) => self.push(Operation::receive(node.bytes, node.peer, node.tag), &after),
            (NodeKind::Compute, _) => self.push(Operation { cpu, ..Operation::calculate(nanos) }, &after),
            _ => {
                self.leave_out("metadata and accesses to remote memory", 1);
                self.push(Operation::calculate(0), &after)
            }
        };
        self.ends[index as usize] = Some(end);
        Ok(())
    }

    fn leave_out(&mut self, what: &'static str, count: u64) {
        *self.left_out.entry(what).or_default() += count;
    }

    fn push(&mut self, operation: Operation, after: &[u32]) -> u32 {
        let number = self.builder.push(operation);
        after.iter().for_each(|earlier| self.builder.depend(number, *earlier, After::End));
        number
    }

    /// Adds the messages of a collective operation, and an end.
    fn collective(&mut self, node: &Node, instance: Instance<'_>, after: &[u32]) -> Result<u32, ChakraError> {
        let begin = self.push(Operation::calculate(0), after);
        let Some(kind) = node.collective else {
            self.leave_out("collective operations of unknown kind", 1);
            return Ok(begin);
        };
        let Instance { number, members } = instance;
        let me = members.iter().position(|member| *member == self.rank).expect("the rank is a member") as u32;
        let len = members.len() as u32;
        let channels = match self.channels(kind, me, len, node.bytes) {
            Ok(channels) => channels,
            Err(_) => {
                self.leave_out("operations that the algorithm does not serve, as rings", 1);
                channels(Algorithm::Ring, kind, me, len, node.bytes)?
            }
        };
        let mut ends = Vec::new();
        for (channel, steps) in (0..).zip(channels) {
            let tag = FIRST_TAG + number * CHANNELS + channel;
            let mut last = vec![begin];
            for step in steps {
                let operations = step.into_iter().map(|transfer| match transfer {
                    Transfer::Send(peer, bytes) => Operation::send(bytes, members[peer as usize], tag),
                    Transfer::Receive(peer, bytes) => Operation::receive(bytes, members[peer as usize], tag),
                });
                let pushed: Vec<u32> = operations.map(|operation| self.push(operation, &last)).collect();
                // A join keeps the number of dependencies linear in that of messages.
                last =
                    if pushed.len() > 2 { vec![self.push(Operation::calculate(0), &pushed)] } else { pushed };
            }
            ends.extend(last);
        }
        Ok(self.push(Operation::calculate(0), &ends))
    }

    /// Returns the steps of a member on each channel.
    fn channels(
        &self,
        kind: CollectiveKind,
        me: u32,
        members: u32,
        bytes: u64,
    ) -> Result<Vec<Steps>, AlgorithmError> {
        let choice = self.options.nccl.and_then(|nccl| Some((nccl, nccl.choose(kind, members, bytes)?)));
        let Some((nccl, choice)) = choice else {
            return channels(self.options.algorithm, kind, me, members, bytes);
        };
        let count = nccl.channels.clamp(1, CHANNELS / 2);
        let of_channel = channels(choice.algorithm, kind, me, members, bytes.div_ceil(count.into()))?;
        let on_wire = |transfer: Transfer| match transfer {
            Transfer::Send(peer, bytes) => Transfer::Send(peer, choice.protocol.wire(bytes)),
            Transfer::Receive(peer, bytes) => Transfer::Receive(peer, choice.protocol.wire(bytes)),
        };
        let steps = |steps: &Steps| -> Steps {
            steps.iter().map(|step| step.iter().copied().map(on_wire).collect()).collect()
        };
        Ok((0..count).flat_map(|_| of_channel.iter().map(steps)).collect())
    }
}
