//! Random regular graphs.

use pdes_core::{GOLDEN_GAMMA, mix};

use super::plan::SwitchCable;

/// Number of graphs that are drawn until one is connected.
const ATTEMPTS: u64 = 64;

/// Number of switches that are drawn before all that fit are listed.
const TRIES: u32 = 32;

/// Joins switches at random, each with `degree` others, or one of them with one fewer if there is a port too many; `None` if no connected
/// graph was found. The procedure is that of Singla et al., "Jellyfish: Networking Data Centers Randomly", NSDI 2012.
pub(super) fn cables(switches: u32, degree: u32, seed: u64) -> Option<Vec<SwitchCable>> {
    if degree >= switches {
        return None;
    }
    let mut graphs =
        (0..ATTEMPTS).filter_map(|attempt| Draw::new(switches, degree, seed ^ attempt << 32).graph());
    let neighbours = graphs.find(|neighbours| is_connected(neighbours))?;
    let upper = |(lower, others): (u32, &Vec<u32>)| {
        let mut upper: Vec<u32> = others.iter().copied().filter(|&other| other > lower).collect();
        upper.sort_unstable();
        upper.into_iter().map(move |upper| SwitchCable::new(lower, upper))
    };
    Some((0..).zip(&neighbours).flat_map(upper).collect())
}

fn is_connected(neighbours: &[Vec<u32>]) -> bool {
    let mut reached = vec![false; neighbours.len()];
    reached[0] = true;
    let mut left = vec![0];
    while let Some(switch) = left.pop() {
        for &other in &neighbours[switch as usize] {
            if !std::mem::replace(&mut reached[other as usize], true) {
                left.push(other);
            }
        }
    }
    reached.into_iter().all(|reached| reached)
}

/// A graph that is being drawn.
struct Draw {
    neighbours: Vec<Vec<u32>>,
    degree: usize,
    /// Switches with free ports.
    open: Vec<u32>,
    /// State of the generator (SplitMix64; Steele, Lea and Flood, 2014).
    random: u64,
}

impl Draw {
    fn new(switches: u32, degree: u32, seed: u64) -> Self {
        let neighbours = vec![Vec::new(); switches as usize];
        Self { neighbours, degree: degree as usize, open: (0..switches).collect(), random: seed }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_add(GOLDEN_GAMMA);
        (mix(self.random) % limit as u64) as usize
    }

    fn are_joined(&self, one: u32, other: u32) -> bool {
        one == other || self.neighbours[one as usize].contains(&other)
    }

    fn free_ports(&self, switch: u32) -> usize {
        self.degree - self.neighbours[switch as usize].len()
    }

    fn join(&mut self, one: u32, other: u32) {
        self.neighbours[one as usize].push(other);
        self.neighbours[other as usize].push(one);
    }

    /// Draws all cables; `None` if the last ports fit nowhere, as in graphs of a few switches.
    fn graph(mut self) -> Option<Vec<Vec<u32>>> {
        loop {
            let Self { open, neighbours, degree, .. } = &mut self;
            open.retain(|&switch| neighbours[switch as usize].len() < *degree);
            if self.open.is_empty() {
                return Some(self.neighbours);
            }
            let one = self.open_switch();
            if self.open.len() == 1 && self.free_ports(one) == 1 {
                return Some(self.neighbours);
            }
            if let Some(other) = self.stranger(one) {
                self.join(one, other);
            } else {
                // The ports that are left are of this switch, or of switches that are joined with it.
                let has_several = self.free_ports(one) > 1;
                let other = self.open.iter().copied().find(|&other| other != one && !has_several);
                self.join_amid_a_cable(one, other.unwrap_or(one))?;
            }
        }
    }

    /// Draws a switch with a free port that is not joined with another one.
    fn stranger(&mut self, switch: u32) -> Option<u32> {
        for _ in 0..TRIES {
            let other = self.open_switch();
            if !self.are_joined(switch, other) {
                return Some(other);
            }
        }
        let strangers: Vec<u32> =
            self.open.iter().copied().filter(|&other| !self.are_joined(switch, other)).collect();
        (!strangers.is_empty()).then(|| strangers[self.below(strangers.len())])
    }

    fn open_switch(&mut self) -> u32 {
        let place = self.below(self.open.len());
        self.open[place]
    }

    /// Replaces a cable between two switches by one of each to two that have ports left.
    fn join_amid_a_cable(&mut self, one: u32, other: u32) -> Option<()> {
        let cables = (0..).zip(&self.neighbours).flat_map(|(from, to)| to.iter().map(move |&to| (from, to)));
        let fitting: Vec<(u32, u32)> =
            cables.filter(|&(from, to)| !self.are_joined(one, from) && !self.are_joined(other, to)).collect();
        if fitting.is_empty() {
            return None;
        }
        let (from, to) = fitting[self.below(fitting.len())];
        self.neighbours[from as usize].retain(|&switch| switch != to);
        self.neighbours[to as usize].retain(|&switch| switch != from);
        self.join(one, from);
        self.join(other, to);
        Some(())
    }
}
