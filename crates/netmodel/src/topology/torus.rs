//! The torus: hosts on a grid of any number of dimensions, each dimension closed to a ring.

use std::fmt;

use super::{Cable, Topology, Wiring, checked_product, default_block_count, third_number};
use crate::LinkId;
use crate::layout::NetworkShape;

/// A torus. Host `x1 + d1 * (x2 + d2 * (..))` has the coordinates `(x1, x2, ..)`; every host owns one cable per
/// dimension, to its neighbour in the direction of growing coordinates.
///
/// A dimension of two hosts has two parallel cables, of which that of coordinate 0 carries everything, because a
/// route from 1 to 0 goes down: this is SimGrid's count.
#[derive(Debug)]
pub(crate) struct Torus {
    sizes: Vec<u32>,
}

impl Torus {
    /// Makes a torus, or returns `None` without dimensions or with an empty one.
    pub(crate) fn try_new(sizes: &[u32]) -> Option<Self> {
        let valid =
            !sizes.is_empty() && !sizes.contains(&0) && checked_product(sizes.iter().copied()).is_some();
        valid.then(|| Self { sizes: sizes.to_vec() })
    }

    fn cable(&self, owner: u32, dimension: usize) -> u64 {
        u64::from(owner) * self.sizes.len() as u64 + dimension as u64
    }
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u32::to_string).collect();
        write!(f, "torus {}", sizes.join("x"))
    }
}

impl Topology for Torus {
    fn hosts(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).product()
    }

    fn switch_numbers(&self) -> Vec<i64> {
        Vec::new()
    }

    fn cable_count(&self) -> Option<u64> {
        self.hosts().checked_mul(self.sizes.len() as u64)
    }

    fn cables(&self, cluster: &str) -> Vec<Cable> {
        let mut cables = Vec::new();
        for host in 0..self.hosts() as u32 {
            let mut stride = 1;
            for &size in &self.sizes {
                let neighbour = step(host, stride, size, Direction::Up);
                cables.push(Cable {
                    name: format!("{cluster}_link_from_{host}_to_{neighbour}"),
                    bandwidth_multiple: Some(1),
                });
                stride *= size;
            }
        }
        cables
    }

    fn shape(&self) -> NetworkShape {
        NetworkShape::Torus { dims: self.sizes.clone() }
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        self.closest_pairs().into_iter().map(|(lower, upper)| (lower.into(), upper.into())).collect()
    }

    /// Completes one dimension after the other (dimension-order routing), each in the direction of its first hop.
    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        let mut current = src;
        let mut stride = 1;
        for (dimension, &size) in self.sizes.iter().enumerate() {
            let target = dst / stride % size;
            let direction = direction(src / stride % size, target, size);
            while current / stride % size != target {
                wiring.push_limiter(current.into(), out);
                let next = step(current, stride, size, direction);
                out.push(match direction {
                    Direction::Up => wiring.up(self.cable(current, dimension)),
                    Direction::Down => wiring.down(self.cable(next, dimension)),
                });
                current = next;
            }
            stride *= size;
        }
        wiring.push_limiter(current.into(), out);
    }

    fn third_host(&self, src: u32, dst: u32, number: u64) -> Option<u32> {
        third_number(self.hosts(), (src.into(), dst.into()), number).map(|host| host as u32)
    }

    fn cable_hosts(&self) -> Vec<u32> {
        (0..self.hosts() as u32).flat_map(|host| std::iter::repeat_n(host, self.sizes.len())).collect()
    }

    fn switch_hosts(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Halves the longest sides until there are enough blocks.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        let wanted = wanted.unwrap_or(default_block_count(self.hosts()));
        let mut cuts = vec![1_u32; self.sizes.len()];
        while cuts.iter().product::<u32>() < wanted {
            let sides = self.sizes.iter().zip(&mut cuts).filter(|(size, cut)| **cut * 2 <= **size);
            let Some((_, cut)) = sides.max_by_key(|(size, cut)| **size / **cut) else { break };
            *cut *= 2;
        }
        let block = |mut host: u32| {
            let (mut block, mut stride) = (0, 1);
            for (&size, &cut) in self.sizes.iter().zip(&cuts) {
                block += (u64::from(host % size) * u64::from(cut) / u64::from(size)) as u32 * stride;
                (host, stride) = (host / size, stride * cut);
            }
            block
        };
        (0..self.hosts() as u32).map(block).collect()
    }

    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for host in 0..self.hosts() as u32 {
            let mut stride = 1;
            for &size in &self.sizes {
                pairs.push((host, step(host, stride, size, Direction::Up)));
                stride *= size;
            }
        }
        pairs
    }

    /// Counts the cables across the largest dimension: two of each of its rings (one if the ring is a pair). This is
    /// the smallest cut if that dimension is even (Aroca and Fernández Anta, "Bisection (Band)Width of Product
    /// Networks with Application to Data Centers", 2014); for an odd one no value is given.
    fn bisection(&self) -> Option<f64> {
        let largest = self.sizes.iter().copied().max()?;
        let rings = (self.hosts() / u64::from(largest)) as f64;
        match largest {
            2 => Some(rings),
            even if even % 2 == 0 => Some(2.0 * rings),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

/// Returns the direction from coordinate `from` to `to` on a ring: the shorter one; on a tie up if `to` is the larger
/// coordinate (TorusZone.cpp, with its integer divisions).
fn direction(from: u32, to: u32, size: u32) -> Direction {
    let half = size / 2;
    let ahead = to > from && to <= from + half;
    let ahead_around = from > half && (from + half) % size >= to;
    if ahead || ahead_around { Direction::Up } else { Direction::Down }
}

/// Returns the neighbour of a host in the dimension of this stride.
fn step(host: u32, stride: u32, size: u32, direction: Direction) -> u32 {
    let coordinate = host / stride % size;
    let next = match direction {
        Direction::Up => (coordinate + 1) % size,
        Direction::Down => (coordinate + size - 1) % size,
    };
    host - coordinate * stride + next * stride
}
