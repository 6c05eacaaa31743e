//! Loop bodies, each stored once.

use rustc_hash::FxHashMap;

use crate::archive::MAX_DEPTH;
use crate::fold::as_loop;
use crate::record::Record;

/// A loop body: items, some of which may be loops.
struct Body {
    items: Box<[Record]>,
    hash: u64,
    /// Number of records of one run, with each loop in its shorter form.
    cost: u64,
    /// Depth of the loops within.
    depth: usize,
}

/// The stored bodies of loops.
#[derive(Default)]
pub(super) struct Bodies {
    bodies: Vec<Body>,
    by_hash: FxHashMap<u64, u32>,
    len: usize,
}

impl Bodies {
    /// Returns the number of items of all bodies.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the items of a body.
    pub(super) fn items(&self, body: u32) -> &[Record] {
        &self.bodies[body as usize].items
    }

    /// Returns the hash of the items of a body.
    pub(super) fn hash(&self, body: u32) -> u64 {
        self.bodies[body as usize].hash
    }

    /// Stores a body unless it is stored already; returns its number, or `None` if a loop of it would nest too deeply or its hash
    /// collides with that of another body.
    pub(super) fn intern(&mut self, items: &[Record], hash: u64) -> Option<u32> {
        if let Some(&body) = self.by_hash.get(&hash) {
            return (self.items(body) == items).then_some(body);
        }
        let depth = items.iter().map(|item| self.depth(*item)).max().unwrap_or_default();
        if depth >= MAX_DEPTH {
            return None;
        }
        let cost = items.iter().fold(0, |sum: u64, item| sum.saturating_add(self.cost(*item).0));
        let number = self.bodies.len() as u32;
        self.bodies.push(Body { items: items.into(), hash, cost, depth });
        self.by_hash.insert(hash, number);
        self.len += items.len();
        Some(number)
    }

    fn depth(&self, item: Record) -> usize {
        as_loop(item).map_or(0, |(body, _)| self.bodies[body as usize].depth + 1)
    }

    /// Returns the number of records of an item, and whether it is written as a loop.
    fn cost(&self, item: Record) -> (u64, bool) {
        let Some((body, count)) = as_loop(item) else { return (1, false) };
        let once = self.bodies[body as usize].cost;
        let (folded, flat) = (once.saturating_add(2), once.saturating_mul(count));
        (folded.min(flat), folded < flat)
    }

    /// Writes an item as records.
    pub(super) fn emit<E>(
        &self,
        item: Record,
        emit: &mut impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((body, count)) = as_loop(item) else { return emit(item) };
        let (_, is_loop) = self.cost(item);
        if is_loop {
            emit(Record::loop_begin(count))?;
        }
        for _ in 0..if is_loop { 1 } else { count } {
            self.items(body).iter().try_for_each(|item| self.emit(*item, emit))?;
        }
        if is_loop { emit(Record::loop_end()) } else { Ok(()) }
    }
}
