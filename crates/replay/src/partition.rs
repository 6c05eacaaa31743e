//! Partitions of ranks among workers: chosen by the user, or such that few messages pass between workers.

mod bisection;
mod graph;

use std::path::{Path, PathBuf};

use pdes_core::{LpId, Partition, Rank};
use serde::Serialize;
use trace_mmap::{ArchiveError, PairTraffic, Trace};

use graph::Graph;

/// Source of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PartitionSource {
    /// Contiguous blocks of ranks.
    #[default]
    Blocks,
    /// Chosen so that few messages pass between workers.
    Auto,
    /// A file with one line per rank: the number of its worker.
    File(PathBuf),
}

/// The reason why ranks cannot be assigned to workers.
#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    /// The file cannot be read.
    #[error("the partition {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line does not name a worker.
    #[error(
        "{}:{line}: found {found:?}, expected a worker from 0 to {last} (processes x threads)", path.display()
    )]
    Worker {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Content of the line.
        found: String,
        /// Number of the last worker.
        last: usize,
    },
    /// The number of lines is not the number of ranks.
    #[error("{}: found {found} lines, expected one for each of {ranks} ranks", path.display())]
    Lines {
        /// The file.
        path: PathBuf,
        /// Number of lines of the file.
        found: usize,
        /// Number of ranks of the trace.
        ranks: u32,
    },
    /// The messages of the trace cannot be counted.
    #[error("the messages of the trace: {0}")]
    Messages(#[from] ArchiveError),
}

/// A partition and its cut.
#[derive(Clone, Debug)]
pub struct RankAssignment {
    /// The partition.
    pub partition: Partition,
    /// Messages that cross it, unless it is the partition into blocks.
    pub cuts: Option<PartitionCut>,
}

/// Point-to-point messages that cross the partition, and those that would cross a partition into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionCut {
    /// Number of messages that cross the partition.
    pub messages: u64,
    /// Their payload \[B\].
    pub bytes: u64,
    /// Number of messages that would cross a partition into blocks.
    pub blocks_messages: u64,
    /// Their payload \[B\].
    pub blocks_bytes: u64,
}

impl PartitionSource {
    /// Returns the name in configurations and reports.
    pub fn name(&self) -> String {
        match self {
            Self::Blocks => "blocks".to_owned(),
            Self::Auto => "auto".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Assigns the ranks of a trace to workers.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or does not name a worker for each rank.
    pub fn assign(&self, trace: &Trace, workers: usize) -> Result<RankAssignment, PartitionError> {
        let blocks = Partition::blocks(trace.ranks(), workers);
        let owners = match self {
            // What a program in code sends is not known.
            _ if trace.grows() => return Ok(RankAssignment { partition: blocks, cuts: None }),
            Self::Blocks => return Ok(RankAssignment { partition: blocks, cuts: None }),
            Self::File(path) => Some(read(path, trace.ranks(), workers)?),
            Self::Auto => None,
        };
        let pairs = PairTraffic::all(trace)?;
        let (blocks_messages, blocks_bytes) = cut_messages(&blocks, &pairs);
        let mut partition = match owners {
            Some(owners) => Partition::new(&owners, workers),
            None => Partition::new(&recursive_bisection(trace, &pairs, workers)?, workers),
        };
        let (mut messages, mut bytes) = cut_messages(&partition, &pairs);
        // Never worse than blocks, which need no permutation of ranks.
        if *self == Self::Auto && messages >= blocks_messages {
            (partition, messages, bytes) = (blocks, blocks_messages, blocks_bytes);
        }
        Ok(RankAssignment {
            partition,
            cuts: Some(PartitionCut { messages, bytes, blocks_messages, blocks_bytes }),
        })
    }
}

fn read(path: &Path, ranks: u32, workers: usize) -> Result<Vec<u32>, PartitionError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| PartitionError::Read { path: path.to_owned(), source })?;
    let mut owners = Vec::with_capacity(ranks as usize);
    for (line, found) in text.lines().enumerate() {
        let worker = found.trim().parse().ok().filter(|&worker: &u32| (worker as usize) < workers);
        owners.push(worker.ok_or_else(|| PartitionError::Worker {
            path: path.to_owned(),
            line: line + 1,
            found: found.to_owned(),
            last: workers - 1,
        })?);
    }
    if owners.len() != ranks as usize {
        return Err(PartitionError::Lines { path: path.to_owned(), found: owners.len(), ranks });
    }
    Ok(owners)
}

/// Counts the messages between workers, and their bytes.
fn cut_messages(partition: &Partition, pairs: &[PairTraffic]) -> (u64, u64) {
    let worker = |rank: Rank| partition.worker(LpId::new(rank.get()));
    let cut = pairs.iter().filter(|pair| worker(pair.from) != worker(pair.to));
    cut.fold((0, 0), |(messages, bytes): (u64, u64), pair| {
        (messages.saturating_add(pair.messages), bytes.saturating_add(pair.bytes.get()))
    })
}

/// Assigns ranks to workers by recursive bisection of the graph of messages, with about equal numbers of actions per worker.
/// Workers with adjacent numbers, such as those of one process, get parts of the same larger part.
///
/// Each level costs a few times O(M log M) for M pairs of ranks.
fn recursive_bisection(
    trace: &Trace,
    pairs: &[PairTraffic],
    workers: usize,
) -> Result<Vec<u32>, ArchiveError> {
    // One more, so that ranks without actions have a load, too, and are spread over the workers.
    let load = |rank| trace.outline(Rank::new(rank)).map(|(actions, _)| (actions + 1).min(MAX_WEIGHT));
    let loads = (0..trace.ranks()).map(load).collect::<Result<_, _>>()?;
    let edges: Vec<(u32, u32, u64)> =
        pairs.iter().map(|pair| (pair.from.get(), pair.to.get(), pair.messages.min(MAX_WEIGHT))).collect();
    let graph = Graph::new(loads, &edges);
    let mut owners = vec![0; graph.len()];
    assign_part(&graph, &(0..graph.len() as u32).collect::<Vec<_>>(), 0, workers, &mut owners);
    Ok(owners)
}

/// Upper bound of loads and weights: the sum of a million of them stays below 2^62.
const MAX_WEIGHT: u64 = 1 << 42;

/// Assigns the vertices of this part of the graph to `workers` workers from `first`.
fn assign_part(part: &Graph, vertices: &[u32], first: u32, workers: usize, owners: &mut [u32]) {
    if workers == 1 {
        vertices.iter().for_each(|&vertex| owners[vertex as usize] = first);
        return;
    }
    let half = workers / 2;
    let sides = bisection::bisect(part, half as u64, workers as u64);
    for (side, first, workers) in [(false, first, half), (true, first + half as u32, workers - half)] {
        let local: Vec<u32> = (0..part.len() as u32).filter(|&one| sides[one as usize] == side).collect();
        let of_side: Vec<u32> = local.iter().map(|&one| vertices[one as usize]).collect();
        assign_part(&part.subgraph(&local), &of_side, first, workers, owners);
    }
}

/// Orders vertices by recursive bisection of a graph with these edges (one end, other end, weight), into halves of equal numbers.
pub fn order_by_halves(vertices: u32, edges: &[(u32, u32, u64)]) -> Vec<u32> {
    let edges: Vec<_> =
        edges.iter().map(|(one, other, weight)| (*one, *other, (*weight).min(MAX_WEIGHT))).collect();
    let graph = Graph::new(vec![1; vertices as usize], &edges);
    let mut order = Vec::new();
    order_part(&graph, &(0..vertices).collect::<Vec<_>>(), &mut order);
    order
}

fn order_part(part: &Graph, vertices: &[u32], order: &mut Vec<u32>) {
    if vertices.len() < 2 {
        order.extend(vertices);
        return;
    }
    let half = vertices.len() / 2;
    let mut sides = bisection::bisect(part, half as u64, vertices.len() as u64);
    // The bisection tolerates a difference.
    loop {
        let first = sides.iter().filter(|is_second| !**is_second).count();
        let from = match first.cmp(&half) {
            std::cmp::Ordering::Equal => break,
            order => order == std::cmp::Ordering::Less,
        };
        // Weight of the cut that a vertex adds, less what it takes away.
        let added = |vertex: u32| -> i128 {
            let edges = part.neighbours(vertex).iter();
            edges
                .map(|(to, weight)| i128::from(*weight) * if sides[*to as usize] == from { 1 } else { -1 })
                .sum()
        };
        let of_side = (0..part.len() as u32).filter(|vertex| sides[*vertex as usize] == from);
        let Some(best) = of_side.min_by_key(|vertex| (added(*vertex), *vertex)) else { break };
        sides[best as usize] = !from;
    }
    for side in [false, true] {
        let local: Vec<u32> = (0..part.len() as u32).filter(|&one| sides[one as usize] == side).collect();
        let of_side: Vec<u32> = local.iter().map(|&one| vertices[one as usize]).collect();
        order_part(&part.subgraph(&local), &of_side, order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A torus of 8 x 8 ranks in scrambled order, each of which sends to its right and lower neighbour.
    fn scrambled_grid() -> (Trace, Vec<u32>) {
        let number = |row: u32, column: u32| (row % 8 * 8 + column % 8) * 37 % 64;
        let mut text = String::new();
        for (row, column) in (0..64).map(|cell| (cell / 8, cell % 8)) {
            let me = number(row, column);
            text.push_str(&format!("{me} init\n"));
            for (to, from) in [
                (number(row, column + 1), number(row, column + 7)),
                (number(row + 1, column), number(row + 7, column)),
            ] {
                text.push_str(&format!("{me} isend {to} 0 100\n{me} recv {from} 0 100\n{me} waitall\n"));
            }
        }
        (trace_tools::from_text(&text).unwrap(), (0..64).map(|cell| number(cell / 8, cell % 8)).collect())
    }

    #[test]
    fn a_scrambled_torus_is_cut_as_well_as_by_hand() {
        let (trace, _) = scrambled_grid();
        let division = PartitionSource::Auto.assign(&trace, 4).unwrap();
        let cuts = division.cuts.unwrap();
        // Two rings of eight cut the torus in half, and each half needs another two of four: 32 messages. Blocks of
        // ranks in scrambled order cut most of 128.
        assert!(cuts.messages <= 36, "{cuts:?}");
        assert!(cuts.blocks_messages > 60, "{cuts:?}");
        assert_eq!(cuts.bytes, 100 * cuts.messages);
        let sizes: Vec<usize> = (0..4).map(|worker| division.partition.lps(worker).count()).collect();
        assert!(sizes.iter().all(|size| (14..=18).contains(size)), "{sizes:?}");
    }

    #[test]
    fn a_chain_is_cut_into_blocks() {
        let mut text = String::new();
        for me in 0..12 {
            text.push_str(&format!("{me} init\n"));
            if me > 0 {
                text.push_str(&format!("{me} recv {} 0 8\n", me - 1));
            }
            if me < 11 {
                text.push_str(&format!("{me} send {} 0 8\n", me + 1));
            }
        }
        let trace = trace_tools::from_text(&text).unwrap();
        for workers in [1, 2, 3, 5, 12] {
            let cuts = PartitionSource::Auto.assign(&trace, workers).unwrap().cuts.unwrap();
            assert_eq!(cuts.messages, workers as u64 - 1, "{workers} workers");
        }
    }

    #[test]
    fn more_workers_than_ranks_are_allowed() {
        let trace = trace_tools::from_text("0 init\n1 init\n").unwrap();
        let division = PartitionSource::Auto.assign(&trace, 7).unwrap();
        assert_eq!((division.partition.len(), division.partition.workers()), (2, 7));
    }

    #[test]
    fn a_file_names_a_worker_for_each_rank() {
        let trace = trace_tools::from_text("0 init\n1 init\n2 init\n0 send 2 0 5\n2 recv 0 0 5\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partition.txt");
        let divide = |text: &str| {
            std::fs::write(&path, text).unwrap();
            PartitionSource::File(path.clone()).assign(&trace, 2)
        };
        let division = divide("1\n0\n1\n").unwrap();
        assert_eq!(division.partition, Partition::new(&[1, 0, 1], 2));
        let cuts = PartitionCut { messages: 0, bytes: 0, blocks_messages: 1, blocks_bytes: 5 };
        assert_eq!(division.cuts, Some(cuts));
        for (text, words) in [
            ("1\n0\n2\n", ":3: found \"2\", expected a worker from 0 to 1"),
            ("1\nx\n0\n", ":2: found \"x\", expected"),
            ("1\n0\n", ": found 2 lines, expected one for each of 3 ranks"),
        ] {
            let error = divide(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
