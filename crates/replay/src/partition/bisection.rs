//! Bisection of graphs.
//!
//! There are two candidates: the vertices in their order, and a part grown from a corner of the graph (Karypis and Kumar,
//! SIAM J. Sci. Comput. 20(1) 1998). Both are refined by moving single vertices, temporarily also to a worse cut
//! (Fiduccia and Mattheyses, DAC 1982), and the better one is returned. Ties go to the lower number, so that the result is
//! the same on every host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::graph::Graph;

/// Largest number of refinement rounds; few cuts gain from the last ones.
const MAX_ROUNDS: usize = 8;
/// Number of moves without improvement that end a round: at least the first, or the number of vertices divided by the second.
const FRUITLESS_MOVES: (usize, usize) = (500, 50);
/// Quotient of the load of a side and its tolerance.
const TOLERANCE_DIVISOR: u64 = 64;

/// Target of a bisection.
#[derive(Clone, Copy)]
struct Target {
    /// Load of the first side.
    load: u64,
    /// Tolerance of that load in the result.
    tolerance: u64,
    /// Tolerance of that load during refinement: at least the largest vertex, or nothing could move.
    max_deviation: u64,
}

/// Returns for each vertex whether it is on the second side of a cut whose first side has about `one` / `all` of the load.
pub(super) fn bisect(graph: &Graph, one: u64, all: u64) -> Vec<bool> {
    if graph.len() == 0 {
        return Vec::new();
    }
    let total: u64 = graph.loads.iter().sum();
    let load = (u128::from(total) * u128::from(one) / u128::from(all)) as u64;
    let largest = graph.loads.iter().max().copied().unwrap_or_default();
    let slack = (load.min(total - load) / TOLERANCE_DIVISOR).max(largest / 2);
    let goal = Target { load, tolerance: slack, max_deviation: slack.max(largest) };
    let refined = |sides| Cut::new(graph, sides, goal).refine();
    let in_order = refined(fill(graph, goal.load, 0..graph.len() as u32));
    let grown = refined(fill(graph, goal.load, grow(graph).into_iter()));
    // First by the excess over the tolerance, then by the weight of the cut.
    let key = |cut: &Cut<'_>| (cut.excess(), cut.weight);
    if key(&grown) < key(&in_order) { grown.sides } else { in_order.sides }
}

/// Assigns vertices to the first side in this order until it has its load.
fn fill(graph: &Graph, goal: u64, order: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut sides = vec![true; graph.len()];
    let mut sum = 0;
    for vertex in order {
        let load = graph.loads[vertex as usize];
        // The vertex that crosses the target belongs to the side with the larger part of it.
        if sum + load / 2 >= goal {
            break;
        }
        sum += load;
        sides[vertex as usize] = false;
    }
    sides
}

/// Returns the vertices in the order of greedy growth: next is the vertex with the largest weight of edges into the part.
fn grow(graph: &Graph) -> Vec<u32> {
    let mut ties = vec![0_u64; graph.len()];
    let mut is_in = vec![false; graph.len()];
    let mut order = Vec::with_capacity(graph.len());
    let mut frontier = BinaryHeap::new();
    for seed in [peripheral_vertex(graph)].into_iter().chain(0..graph.len() as u32) {
        frontier.push((0, Reverse(seed)));
        while let Some((tie, Reverse(vertex))) = frontier.pop() {
            if is_in[vertex as usize] || tie < ties[vertex as usize] {
                continue;
            }
            is_in[vertex as usize] = true;
            order.push(vertex);
            for &(to, weight) in graph.neighbours(vertex) {
                if !is_in[to as usize] {
                    ties[to as usize] += weight;
                    frontier.push((ties[to as usize], Reverse(to)));
                }
            }
        }
    }
    order
}

/// Returns a vertex far from the others: a pseudo-peripheral vertex, found by two breadth-first searches.
fn peripheral_vertex(graph: &Graph) -> u32 {
    (0..2).fold(0, |start, _| farthest(graph, start))
}

fn farthest(graph: &Graph, start: u32) -> u32 {
    let mut seen = vec![false; graph.len()];
    let mut queue = VecDeque::from([start]);
    let mut last = start;
    seen[start as usize] = true;
    while let Some(vertex) = queue.pop_front() {
        last = vertex;
        for &(to, _) in graph.neighbours(vertex) {
            if !std::mem::replace(&mut seen[to as usize], true) {
                queue.push_back(to);
            }
        }
    }
    last
}

/// A cut that is being refined.
struct Cut<'a> {
    graph: &'a Graph,
    goal: Target,
    sides: Vec<bool>,
    /// Load of the first side.
    load: u64,
    /// Weight of the edges that are cut.
    weight: u64,
    /// Decrease of the cut weight if the vertex moved to the other side.
    gains: Vec<i64>,
    /// Vertices of each side by gain; entries with an outdated gain are skipped.
    queues: [BinaryHeap<(i64, Reverse<u32>)>; 2],
}

impl<'a> Cut<'a> {
    fn new(graph: &'a Graph, sides: Vec<bool>, goal: Target) -> Self {
        let load = graph.loads.iter().zip(&sides).filter(|(_, side)| !**side).map(|(load, _)| load).sum();
        let weight = graph.cut(|vertex| u32::from(sides[vertex as usize]));
        let gains = vec![0; graph.len()];
        Self { graph, goal, sides, load, weight, gains, queues: Default::default() }
    }

    /// Returns the deviation of the load from its target beyond the tolerance.
    fn excess(&self) -> u64 {
        self.load.abs_diff(self.goal.load).saturating_sub(self.goal.tolerance)
    }

    fn refine(mut self) -> Self {
        for _ in 0..MAX_ROUNDS {
            let before = (self.excess(), self.weight);
            self.round();
            if (self.excess(), self.weight) >= before {
                break;
            }
        }
        self
    }

    /// Moves vertices, each at most once and the best first, then undoes the moves after the best cut.
    fn round(&mut self) {
        self.queue_all();
        let max_fruitless = FRUITLESS_MOVES.0.max(self.graph.len() / FRUITLESS_MOVES.1);
        let mut moved = Vec::new();
        let (mut best, mut best_len) = ((self.excess(), self.weight), 0);
        let mut locked = vec![false; self.graph.len()];
        while moved.len() - best_len < max_fruitless {
            let Some(vertex) = self.next_move(&locked) else { break };
            locked[vertex as usize] = true;
            self.move_vertex(vertex);
            moved.push(vertex);
            if (self.excess(), self.weight) < best {
                (best, best_len) = ((self.excess(), self.weight), moved.len());
            }
        }
        for &vertex in moved[best_len..].iter().rev() {
            self.move_vertex(vertex);
        }
    }

    fn queue_all(&mut self) {
        self.queues.iter_mut().for_each(BinaryHeap::clear);
        for vertex in 0..self.graph.len() as u32 {
            let side = self.sides[vertex as usize];
            let gain = self.graph.neighbours(vertex).iter().map(|&(to, weight)| {
                if self.sides[to as usize] == side { -(weight as i64) } else { weight as i64 }
            });
            self.gains[vertex as usize] = gain.sum();
            self.queues[usize::from(side)].push((self.gains[vertex as usize], Reverse(vertex)));
        }
    }

    /// Returns the vertex with the largest gain whose move keeps the load within reach of its target, or brings it nearer.
    fn next_move(&mut self, locked: &[bool]) -> Option<u32> {
        let mut best = None;
        for side in [false, true] {
            let queue = &mut self.queues[usize::from(side)];
            while let Some(&(gain, Reverse(vertex))) = queue.peek() {
                let index = vertex as usize;
                if locked[index] || self.sides[index] != side || self.gains[index] != gain {
                    queue.pop();
                    continue;
                }
                let load = self.graph.loads[index];
                let after = if side { self.load + load } else { self.load - load };
                let (miss, missed) = (after.abs_diff(self.goal.load), self.load.abs_diff(self.goal.load));
                if (miss <= self.goal.max_deviation || miss < missed)
                    && best.is_none_or(|best| (gain, Reverse(vertex)) > best)
                {
                    best = Some((gain, Reverse(vertex)));
                }
                break;
            }
        }
        best.map(|(_, Reverse(vertex))| vertex)
    }

    /// Moves a vertex to the other side.
    fn move_vertex(&mut self, vertex: u32) {
        let index = vertex as usize;
        let from = self.sides[index];
        let load = self.graph.loads[index];
        self.load = if from { self.load + load } else { self.load - load };
        self.weight = self.weight.wrapping_add_signed(-self.gains[index]);
        self.sides[index] = !from;
        self.gains[index] = -self.gains[index];
        for &(to, weight) in self.graph.neighbours(vertex) {
            let side = self.sides[to as usize];
            let change = 2 * weight as i64;
            self.gains[to as usize] += if side == from { change } else { -change };
            self.queues[usize::from(side)].push((self.gains[to as usize], Reverse(to)));
        }
    }
}
