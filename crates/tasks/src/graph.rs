//! Tasks, and the order that follows from their data.

use std::collections::BTreeSet;

use pdes_core::Bytes;
use serde::Serialize;

/// Number of a task.
pub type TaskId = usize;

/// Number of a piece of data.
pub type DataId = usize;

/// Kernel of tasks of the Cholesky factorisation of a matrix by tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// Factorisation of a tile of the diagonal.
    Potrf,
    /// Solution of a triangular system.
    Trsm,
    /// Symmetric update of a tile of the diagonal.
    Syrk,
    /// Update of another tile.
    Gemm,
}

impl Kernel {
    /// All kernels.
    pub const ALL: [Self; 4] = [Self::Potrf, Self::Trsm, Self::Syrk, Self::Gemm];

    /// Returns the name in LAPACK.
    pub fn name(self) -> &'static str {
        match self {
            Self::Potrf => "potrf",
            Self::Trsm => "trsm",
            Self::Syrk => "syrk",
            Self::Gemm => "gemm",
        }
    }
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its kernel.
    pub kernel: Kernel,
    /// Its work \[flop\].
    pub flops: f64,
    /// Data that it reads; of these it writes the last one.
    pub data: Vec<DataId>,
    /// Tasks that cannot begin before it has ended.
    pub successors: Vec<TaskId>,
    /// Number of tasks without whose ends it cannot begin.
    pub predecessors: usize,
}

/// A directed graph of tasks, each after its predecessors, and of the data that they use.
#[derive(Clone, Debug, Default)]
pub struct TaskGraph {
    /// The tasks, in an order in which they could run.
    pub tasks: Vec<Task>,
    /// Size of each piece of data.
    pub data: Vec<Bytes>,
    /// Of each piece of data, the task that has written it last, and those that have read it since.
    last_writers: Vec<Option<TaskId>>,
    readers: Vec<Vec<TaskId>>,
}

impl TaskGraph {
    /// Makes the Cholesky factorisation of a dense symmetric matrix of `tiles` by `tiles` tiles, each of `size` by `size` numbers of double
    /// precision. It has `tiles (tiles + 1) (tiles + 2) / 6` tasks.
    pub fn cholesky(tiles: usize, size: u32) -> Self {
        let mut graph = Self::default();
        let bytes = Bytes::new(8 * u64::from(size) * u64::from(size));
        // The lower half, row by row.
        let tile = |row: usize, column: usize| row * (row + 1) / 2 + column;
        (0..tiles * (tiles + 1) / 2).for_each(|_| graph.add_data(bytes));
        let cube = f64::from(size).powi(3);
        for step in 0..tiles {
            let pivot = tile(step, step);
            graph.add(Kernel::Potrf, cube / 3.0, vec![pivot]);
            for row in step + 1..tiles {
                graph.add(Kernel::Trsm, cube, vec![pivot, tile(row, step)]);
            }
            for row in step + 1..tiles {
                graph.add(Kernel::Syrk, cube, vec![tile(row, step), tile(row, row)]);
                for column in step + 1..row {
                    let data = vec![tile(row, step), tile(column, step), tile(row, column)];
                    graph.add(Kernel::Gemm, 2.0 * cube, data);
                }
            }
        }
        graph
    }

    /// Adds a piece of data.
    pub fn add_data(&mut self, size: Bytes) {
        self.data.push(size);
        self.last_writers.push(None);
        self.readers.push(Vec::new());
    }

    /// Adds a task that reads data and writes the last of them: after the tasks that have written what it reads, and those that have read
    /// what it writes.
    ///
    /// # Panics
    /// If there are no data, or others than were added.
    pub fn add(&mut self, kernel: Kernel, flops: f64, data: Vec<DataId>) {
        let task = self.tasks.len();
        let written = *data.last().expect("a task writes something");
        let mut before: BTreeSet<TaskId> = data.iter().filter_map(|&read| self.last_writers[read]).collect();
        before.extend(self.readers[written].drain(..));
        data.iter().for_each(|&read| self.readers[read].push(task));
        self.readers[written].clear();
        self.last_writers[written] = Some(task);
        before.iter().for_each(|&before| self.tasks[before].successors.push(task));
        self.tasks.push(Task { kernel, flops, data, successors: Vec::new(), predecessors: before.len() });
    }

    /// Returns the work of all tasks of a kernel \[flop\].
    pub fn flops_of(&self, kernel: Kernel) -> f64 {
        self.tasks.iter().filter(|task| task.kernel == kernel).map(|task| task.flops).sum()
    }

    /// Returns for each task the longest sum of times from its begin to the end of the graph, if tasks take these times \[s\].
    pub fn ranks(&self, time_s: impl Fn(&Task) -> f64) -> Vec<f64> {
        let mut ranks = vec![0.0; self.tasks.len()];
        for (number, task) in self.tasks.iter().enumerate().rev() {
            let after = task.successors.iter().map(|&successor| ranks[successor]).fold(0.0, f64::max);
            ranks[number] = time_s(task) + after;
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cholesky_factorisation_has_its_tasks_and_work() {
        for tiles in 1..9_usize {
            let graph = TaskGraph::cholesky(tiles, 6);
            let count = |kernel| graph.tasks.iter().filter(|task| task.kernel == kernel).count();
            let pairs = tiles * (tiles - 1) / 2;
            let expected = [tiles, pairs, pairs, tiles * (tiles - 1) * tiles.saturating_sub(2) / 6];
            assert_eq!(Kernel::ALL.map(count), expected);
            assert_eq!(graph.tasks.len(), tiles * (tiles + 1) * (tiles + 2) / 6);
            // A third of the cube of the size, as of one tile.
            let flops: f64 = Kernel::ALL.into_iter().map(|kernel| graph.flops_of(kernel)).sum();
            assert!((flops - (6 * tiles).pow(3) as f64 / 3.0).abs() < 1e-6 * flops, "{tiles}: {flops}");
            // From each tile of the diagonal to the next one: potrf, trsm, syrk.
            let longest = graph.ranks(|_| 1.0)[0];
            assert_eq!(longest, (3 * tiles - 2) as f64);
        }
    }
}
