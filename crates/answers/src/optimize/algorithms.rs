//! Algorithms of collective operations.

use mpi_model::collective::Selector;

use super::OptimumError;
use super::search::Search;

impl Search<'_> {
    /// Chooses the best algorithm of each operation, until none helps.
    pub(super) fn choose_algorithms(&mut self) -> Result<(), OptimumError> {
        // Closed forms, and trials of all algorithms in one run, are none of a library.
        let is_real = |name: &&str| {
            ![Selector::Automatic, Selector::Analytic].iter().any(|selector| selector.name() == *name)
        };
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
