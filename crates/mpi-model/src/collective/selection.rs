//! Selection of the algorithm of a collective call.

use std::sync::Arc;

use super::measured::MeasuredTimes;
use super::operation::Operation;
use super::selector::Selector;

/// Selection of algorithms for a communicator: those of a selector, except where the user has chosen.
///
/// For each call, the first of the user's rows whose bounds hold decides; then measured times, if there are any of the operation; then
/// the algorithm chosen for the operation; then the selector.
///
/// ```
/// use mpi_model::collective::{Operation, Selection, Selector};
/// let mut selection = Selection::new(Selector::Default);
/// selection.choose(Operation::Bcast, "flattree").unwrap();
/// let error = selection.choose(Operation::Bcast, "flatree").unwrap_err();
/// assert!(error.to_string().contains("\"flattree\""));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    selector: Selector,
    choices: [Choice; Operation::ALL.len()],
}

/// Choices for one operation; algorithms are indices into its table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Choice {
    rows: Vec<(Bounds, usize)>,
    measured: Option<Arc<MeasuredTimes>>,
    chosen: Option<usize>,
    /// Algorithm of the selector.
    by_selector: usize,
}

/// Bounds within which a row of a user's table holds; an absent bound always holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Exclusive upper bound on the number of ranks.
    pub ranks_below: Option<u32>,
    /// Exclusive upper bound on the size \[B\], as [`Operation`] defines it.
    pub bytes_below: Option<u64>,
}

/// Error of choosing an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no such algorithm.
    #[error(
        "found {found:?}, which is no algorithm for {}; did you mean {nearest:?}? There are {}",
        operation.name(), operation.algorithms().collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// The operation.
        operation: Operation,
        /// Name that was requested.
        found: String,
        /// Most similar name.
        nearest: &'static str,
    },
    /// Switches carry out the operation, and do not form a tree.
    #[error(
        "{:?} for {} needs switches in a tree, such as a fat tree or hosts around one switch, and those of the platform are not: choose an \
         algorithm of the ranks",
        Selection::IN_NETWORK, operation.name()
    )]
    NoSwitchTree {
        /// The operation.
        operation: Operation,
    },
    /// The algorithm does not work for this number of ranks.
    #[error("{algorithm:?} for {} needs {needs}, found {ranks}", operation.name())]
    Unsuitable {
        /// The operation.
        operation: Operation,
        /// The algorithm.
        algorithm: &'static str,
        /// Requirement of the algorithm.
        needs: RankRequirement,
        /// The number of ranks.
        ranks: u32,
    },
}

/// Numbers of ranks for which an algorithm is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankRequirement {
    /// Any number.
    AnyNumber,
    /// A power of two.
    PowerOfTwo,
    /// At most two.
    AtMostTwo,
}

impl RankRequirement {
    pub(super) fn is_met(self, ranks: u32) -> bool {
        match self {
            Self::AnyNumber => true,
            Self::PowerOfTwo => ranks.is_power_of_two(),
            Self::AtMostTwo => ranks <= 2,
        }
    }
}

impl std::fmt::Display for RankRequirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AnyNumber => "any number of ranks",
            Self::PowerOfTwo => "a power of two of ranks",
            Self::AtMostTwo => "at most two ranks",
        })
    }
}

impl Selection {
    /// Name of the algorithms that switches carry out.
    pub const IN_NETWORK: &'static str = "in_network";

    /// Returns the selection that follows a selector for all operations.
    pub fn new(selector: Selector) -> Self {
        let choices = Operation::ALL.map(|operation| {
            let otherwise = find(operation, selector.name()).expect("every operation knows every selector");
            Choice { by_selector: otherwise, ..Choice::default() }
        });
        Self { selector, choices }
    }

    /// Returns whether the selector costs operations in closed form.
    pub(super) fn is_analytic(&self) -> bool {
        self.selector == Selector::Analytic
    }

    /// Returns the selector.
    pub fn selector(&self) -> Selector {
        self.selector
    }

    /// Chooses an algorithm for all calls of an operation for which no row holds.
    ///
    /// # Errors
    /// If there is no such algorithm.
    pub fn choose(&mut self, operation: Operation, algorithm: &str) -> Result<(), SelectionError> {
        let chosen = Some(resolve(operation, algorithm)?);
        let choice = &mut self.choices[operation as usize];
        (choice.chosen, choice.measured) = (chosen, None);
        Ok(())
    }

    /// Gives all calls of an operation for which no row holds measured times, in place of an algorithm.
    pub fn measure(&mut self, operation: Operation, times: MeasuredTimes) {
        self.choices[operation as usize].measured = Some(Arc::new(times));
    }

    /// Returns the measured times of an operation, if there are any.
    pub fn measured(&self, operation: Operation) -> Option<&MeasuredTimes> {
        self.choices[operation as usize].measured.as_deref()
    }

    /// Returns the times that a call takes in place of those of an algorithm; one rank alone has none.
    pub(super) fn measured_for(
        &self,
        operation: Operation,
        ranks: u32,
        bytes: u64,
    ) -> Option<&MeasuredTimes> {
        let choice = &self.choices[operation as usize];
        let is_measured = ranks > 1 && choice.row(ranks, bytes).is_none();
        choice.measured.as_deref().filter(|_| is_measured)
    }

    /// Chooses an algorithm for the calls within bounds for which no earlier row holds.
    ///
    /// # Errors
    /// If there is no such algorithm.
    pub fn add_row(
        &mut self,
        operation: Operation,
        bounds: Bounds,
        algorithm: &str,
    ) -> Result<(), SelectionError> {
        let row = (bounds, resolve(operation, algorithm)?);
        self.choices[operation as usize].rows.push(row);
        Ok(())
    }

    /// Returns the algorithm chosen for an operation, if there is one.
    pub fn chosen(&self, operation: Operation) -> Option<&'static str> {
        self.choices[operation as usize].chosen.map(|place| operation.entry(place).0)
    }

    /// Returns the rows of an operation, in order.
    pub fn rows(&self, operation: Operation) -> impl Iterator<Item = (Bounds, &'static str)> + '_ {
        let rows = self.choices[operation as usize].rows.iter();
        rows.map(move |&(bounds, place)| (bounds, operation.entry(place).0))
    }

    /// Checks that the algorithms chosen by name work for a number of ranks.
    ///
    /// # Errors
    /// If one does not.
    pub fn check(&self, ranks: u32) -> Result<(), SelectionError> {
        for operation in Operation::ALL {
            let choice = &self.choices[operation as usize];
            let rows =
                choice.rows.iter().filter(|(bounds, _)| bounds.ranks_below.is_none_or(|end| ranks < end));
            for place in rows.map(|&(_, place)| place).chain(choice.chosen) {
                let (algorithm, needs) = operation.entry(place);
                if !needs.is_met(ranks) {
                    return Err(SelectionError::Unsuitable { operation, algorithm, needs, ranks });
                }
            }
        }
        Ok(())
    }

    /// Returns an operation that switches may carry out, which have to form a tree, if there is one.
    pub fn needs_switch_tree(&self) -> Option<Operation> {
        self.first_with(Self::IN_NETWORK)
    }

    /// Returns whether any operation is costed in closed form: at its begin, by times of messages without contention.
    pub fn looks_ahead(&self) -> bool {
        let closed_forms = [Selector::Analytic.name(), Self::IN_NETWORK];
        self.is_analytic()
            || self.choices.iter().any(|choice| choice.measured.is_some())
            || closed_forms.into_iter().any(|algorithm| self.first_with(algorithm).is_some())
    }

    /// Returns the first operation for which an algorithm is chosen.
    fn first_with(&self, algorithm: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|&operation| {
            let Choice { rows, chosen, .. } = &self.choices[operation as usize];
            let mut places = rows.iter().map(|(_, place)| place).chain(chosen);
            places.any(|place| operation.entry(*place).0 == algorithm)
        })
    }

    /// Returns the index of the algorithm of a call in the table of its operation.
    pub(super) fn algorithm_index(&self, operation: Operation, ranks: u32, bytes: u64) -> usize {
        let choice = &self.choices[operation as usize];
        choice.row(ranks, bytes).or(choice.chosen).unwrap_or(choice.by_selector)
    }
}

impl Choice {
    /// Returns the algorithm of the first row that holds.
    fn row(&self, ranks: u32, bytes: u64) -> Option<usize> {
        let holds = |bounds: &Bounds| {
            bounds.ranks_below.is_none_or(|end| ranks < end)
                && bounds.bytes_below.is_none_or(|end| bytes < end)
        };
        self.rows.iter().find(|(bounds, _)| holds(bounds)).map(|&(_, place)| place)
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::new(Selector::Default)
    }
}

fn find(operation: Operation, algorithm: &str) -> Option<usize> {
    operation.algorithms().position(|name| name == algorithm)
}

fn resolve(operation: Operation, algorithm: &str) -> Result<usize, SelectionError> {
    find(operation, algorithm).ok_or_else(|| {
        let found = algorithm.to_lowercase();
        let distance = |name: &&'static str| strsim::levenshtein(&found, &name.to_lowercase());
        let nearest = operation.algorithms().min_by_key(distance).unwrap_or_default();
        SelectionError::Unknown { operation, found: algorithm.to_owned(), nearest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_matching_row_decides() {
        let mut selection = Selection::new(Selector::Default);
        let mut add = |ranks_below, bytes_below, algorithm| {
            selection.add_row(Operation::Bcast, Bounds { ranks_below, bytes_below }, algorithm).unwrap();
        };
        add(Some(8), Some(100), "flattree");
        add(Some(8), None, "NTSL");
        selection.choose(Operation::Bcast, "NTSB").unwrap();
        let name = |ranks, bytes| {
            Operation::Bcast.entry(selection.algorithm_index(Operation::Bcast, ranks, bytes)).0
        };
        assert_eq!([name(7, 99), name(7, 100), name(8, 99)], ["flattree", "NTSL", "NTSB"]);
        assert_eq!(selection.algorithm_index(Operation::Reduce, 8, 0), 0);
    }

    #[test]
    fn unknown_name_error_suggests_nearest() {
        let mut selection = Selection::default();
        let error = selection.choose(Operation::Barrier, "OMPI_tre").unwrap_err();
        let SelectionError::Unknown { nearest, .. } = error else { panic!("{error}") };
        assert_eq!(nearest, "ompi_tree");
    }

    #[test]
    fn unsupported_number_of_ranks_is_rejected() {
        let mut selection = Selection::default();
        let bounds = Bounds { ranks_below: Some(8), bytes_below: None };
        selection.add_row(Operation::Allreduce, bounds, "rab1").unwrap();
        assert_eq!((selection.check(4), selection.check(9)), (Ok(()), Ok(())));
        assert!(matches!(selection.check(6), Err(SelectionError::Unsuitable { ranks: 6, .. })));
    }

    #[test]
    fn every_operation_knows_every_selector() {
        for operation in Operation::ALL {
            for selector in Selector::ALL {
                assert!(find(operation, selector.name()).is_some(), "{operation:?} {selector:?}");
            }
        }
    }
}
