//! Algorithms of collective operations.

use mpi_model::collective::{Selection, Selector};

use super::OptimumError;
use super::search::Search;

impl Search<'_> {
    /// Chooses the best algorithm of each operation, until none helps.
    pub(super) fn choose_algorithms(&mut self) -> Result<(), OptimumError> {
        // Closed forms, trials of all algorithms in one run, and what switches do are none of a library.
        let left_out = [Selector::Automatic.name(), Selector::Analytic.name(), Selection::IN_NETWORK];
        let is_real = |name: &&str| !left_out.contains(name);
        loop {
            let known = self.best_ps;
            for operation in self.operations.clone() {
                let named = |algorithm: &'static str| {
                    (
                        format!("{} by {algorithm}", operation.name()),
                        self.best.with_algorithm(operation, algorithm),
                    )
                };
                let variants: Vec<_> = operation.algorithms().filter(is_real).map(named).collect();
                self.take_best(&variants)?;
            }
            if self.best_ps == known || self.is_exhausted() {
                return Ok(());
            }
        }
    }
}
