//! Shortest paths between all pairs, computed at once.

use std::num::NonZeroU32;

use super::ListedRoute;
use super::table::RouteTable;

/// Maximum number of vertices of one zone: the table takes 4 bytes per pair, and 8 more while it is computed.
pub(crate) const VERTEX_LIMIT: u32 = 1 << 13;

/// Listed routes, and for each pair of vertices the last but one vertex of the shortest path.
///
/// The length of a path is its number of links. Of equally long paths the algorithm (Floyd, "Algorithm 97: Shortest
/// Path", 1962) keeps the first one found, trying intermediate vertices in the order of their declaration: a listed
/// route before any path, a path over earlier vertices before one over later ones (FloydZone.cpp). It may also find a
/// path from a vertex to itself that is shorter than the listed one.
///
/// `O(n^3)` time once and `O(n^2)` memory in the number of vertices.
#[derive(Debug)]
pub(crate) struct Floyd {
    table: RouteTable,
    vertices: usize,
    /// Predecessor of the destination, plus one, by source, then destination.
    before: Vec<Option<NonZeroU32>>,
}

impl Floyd {
    /// Computes all paths over the routes of a table between this many vertices.
    pub(crate) fn new(table: RouteTable, vertices: u32) -> Self {
        let count = vertices as usize;
        let mut floyd = Self { table, vertices: count, before: vec![None; count * count] };
        let mut lengths = vec![u64::MAX; count * count];
        let itself = |vertex| floyd.table.self_route_length(vertex).map(|length| ((vertex, vertex), length));
        for ((src, dst), length) in floyd.table.lengths().chain((0..vertices).filter_map(itself)) {
            let cell = src as usize * count + dst as usize;
            lengths[cell] = length;
            floyd.before[cell] = NonZeroU32::new(src + 1);
        }
        for middle in 0..count {
            floyd.relax(&mut lengths, middle);
        }
        floyd
    }

    /// Relaxes all paths over one more intermediate vertex.
    fn relax(&mut self, lengths: &mut [u64], middle: usize) {
        let count = self.vertices;
        let onwards: Vec<(u64, Option<NonZeroU32>)> = {
            let row = middle * count..(middle + 1) * count;
            lengths[row.clone()].iter().copied().zip(self.before[row].iter().copied()).collect()
        };
        for src in 0..count {
            let row = src * count..(src + 1) * count;
            let first = lengths[row.start + middle];
            if first == u64::MAX {
                continue;
            }
            let cells = lengths[row.clone()].iter_mut().zip(&mut self.before[row]);
            for ((length, before), &(second, last)) in cells.zip(&onwards) {
                let over = first.saturating_add(second);
                if over < *length {
                    (*length, *before) = (over, last);
                }
            }
        }
    }

    /// Returns the listed routes of the shortest path, in `O(n log n)` in its number of routes.
    pub(crate) fn path(&self, src: u32, dst: u32) -> Option<Vec<ListedRoute<'_>>> {
        let mut routes = Vec::new();
        let mut current = dst;
        loop {
            let before = self.before[src as usize * self.vertices + current as usize]?.get() - 1;
            routes.push(self.table.route(before, current)?);
            current = before;
            if current == src {
                routes.reverse();
                return Some(routes);
            }
        }
    }

    /// Returns the listed routes.
    pub(crate) fn table(&self) -> &RouteTable {
        &self.table
    }
}
