//! Shortest paths from one source, computed on the first request for the source.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::OnceLock;

use super::ListedRoute;
use super::table::RouteTable;

/// Listed routes, and trees of shortest paths.
///
/// The length of a path is its number of links. Vertices are visited by their distance from the source, on a tie in
/// the order in which the listed routes first name them; a path is replaced by a shorter one only (DijkstraZone.cpp;
/// Dijkstra, "A Note on Two Problems in Connexion with Graphs", 1959). A vertex that no listed route names cannot be
/// reached, not even from itself.
///
/// A tree takes 4 bytes per vertex and `O(m log n)` time once; the set of present trees affects no route.
#[derive(Debug)]
pub(crate) struct Dijkstra {
    table: RouteTable,
    /// Node of each vertex that a route names. Nodes are numbered in the order in which routes name them.
    nodes: BTreeMap<u32, u32>,
    /// Vertex of each node.
    vertices: Vec<u32>,
    /// Edges of each node: the end node and the number of links of each route.
    edges: Vec<Vec<(u32, u64)>>,
    trees: Vec<OnceLock<Tree>>,
}

/// Predecessor of each node on the path from the source.
type Tree = Box<[Option<u32>]>;

impl Dijkstra {
    /// Makes the graph of the routes of a table; `order` lists the vertices in the order in which the routes name
    /// them.
    pub(crate) fn new(table: RouteTable, order: &[u32]) -> Self {
        let mut nodes = BTreeMap::new();
        let mut vertices = Vec::new();
        for &vertex in order {
            nodes.entry(vertex).or_insert_with(|| {
                vertices.push(vertex);
                vertices.len() as u32 - 1
            });
        }
        let mut edges = vec![Vec::new(); vertices.len()];
        for ((src, dst), length) in table.lengths() {
            edges[nodes[&src] as usize].push((nodes[&dst], length));
        }
        let trees = vertices.iter().map(|_| OnceLock::new()).collect();
        Self { table, nodes, vertices, edges, trees }
    }

    /// Returns the listed routes of the shortest path, in `O(n log n)` in its number of routes if the tree of the
    /// source exists.
    pub(crate) fn path(&self, src: u32, dst: u32) -> Option<Vec<ListedRoute<'_>>> {
        let (source, mut node) = (*self.nodes.get(&src)?, *self.nodes.get(&dst)?);
        if source == node {
            return self.table.route(src, src).map(|route| vec![route]);
        }
        let tree = self.trees[source as usize].get_or_init(|| self.tree(source));
        let mut routes = Vec::new();
        while node != source {
            let before = tree[node as usize]?;
            routes.push(self.table.route(self.vertices[before as usize], self.vertices[node as usize])?);
            node = before;
        }
        routes.reverse();
        Some(routes)
    }

    fn tree(&self, source: u32) -> Tree {
        let mut before = vec![None; self.vertices.len()];
        let mut lengths = vec![u64::MAX; self.vertices.len()];
        let mut reached = BinaryHeap::from([Reverse((0, source))]);
        lengths[source as usize] = 0;
        while let Some(Reverse((length, node))) = reached.pop() {
            if length > lengths[node as usize] {
                continue;
            }
            for &(next, step) in &self.edges[node as usize] {
                if length + step < lengths[next as usize] {
                    lengths[next as usize] = length + step;
                    before[next as usize] = Some(node);
                    reached.push(Reverse((length + step, next)));
                }
            }
        }
        before.into()
    }

    /// Returns the listed routes.
    pub(crate) fn table(&self) -> &RouteTable {
        &self.table
    }
}
