//! Weighted graphs of the messages between ranks, in compressed sparse rows.

/// An undirected graph whose vertices have loads and whose edges have weights.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Index of the first edge of each vertex; one entry more than vertices.
    starts: Vec<usize>,
    /// Target and weight of each edge.
    edges: Vec<(u32, u64)>,
    pub(super) loads: Vec<u64>,
}

impl Graph {
    /// Creates a graph from edges (one end, other end, weight) in any order. Weights of parallel edges are added up; loops are
    /// dropped.
    pub(super) fn new(loads: Vec<u64>, edges: &[(u32, u32, u64)]) -> Self {
        let mut starts = vec![0; loads.len() + 1];
        let directed_edges = || {
            let edges = edges.iter().filter(|(one, other, _)| one != other);
            edges.flat_map(|&(one, other, weight)| [(one, other, weight), (other, one, weight)])
        };
        directed_edges().for_each(|(from, _, _)| starts[from as usize + 1] += 1);
        (0..loads.len()).for_each(|vertex| starts[vertex + 1] += starts[vertex]);
        let mut next = starts.clone();
        let mut all = vec![(0, 0); starts[loads.len()]];
        for (from, to, weight) in directed_edges() {
            all[next[from as usize]] = (to, weight);
            next[from as usize] += 1;
        }
        let mut graph = Self { starts: vec![0], edges: Vec::with_capacity(all.len()), loads };
        for ends in starts.windows(2) {
            let of_vertex = &mut all[ends[0]..ends[1]];
            of_vertex.sort_unstable();
            let first = graph.edges.len();
            for &(to, weight) in &*of_vertex {
                match graph.edges[first..].last_mut() {
                    Some((last, sum)) if *last == to => *sum += weight,
                    _ => graph.edges.push((to, weight)),
                }
            }
            graph.starts.push(graph.edges.len());
        }
        graph
    }

    pub(super) fn len(&self) -> usize {
        self.loads.len()
    }

    pub(super) fn neighbours(&self, vertex: u32) -> &[(u32, u64)] {
        &self.edges[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    /// Returns the subgraph of `vertices`, renumbered in this order.
    pub(super) fn subgraph(&self, vertices: &[u32]) -> Self {
        let mut numbers = vec![u32::MAX; self.len()];
        vertices.iter().zip(0..).for_each(|(&vertex, number)| numbers[vertex as usize] = number);
        let (mut starts, mut edges) = (vec![0], Vec::new());
        for &vertex in vertices {
            let inside = self.neighbours(vertex).iter().map(|&(to, weight)| (numbers[to as usize], weight));
            edges.extend(inside.filter(|(to, _)| *to != u32::MAX));
            starts.push(edges.len());
        }
        let loads = vertices.iter().map(|&vertex| self.loads[vertex as usize]).collect();
        Self { starts, edges, loads }
    }

    /// Returns the total weight of the edges between different parts.
    pub(super) fn cut(&self, part_of: impl Fn(u32) -> u32) -> u64 {
        let edges = (0..self.len() as u32)
            .flat_map(|from| self.neighbours(from).iter().map(move |&(to, weight)| (from, to, weight)));
        let cut = edges.filter(|&(from, to, _)| from < to && part_of(from) != part_of(to));
        cut.map(|(_, _, weight)| weight).sum()
    }
}
