//! Names of the call sites and regions of ranks.

use std::collections::{BTreeMap, HashMap};

use mpi_model::Event;
use pdes_core::Rank;

/// Names of the call sites and regions of ranks, by their numbers. Ranks with the same names share them.
#[derive(Clone, Debug, Default)]
pub struct SiteNames {
    tables: Vec<Vec<String>>,
    number_of_table: HashMap<Vec<String>, usize>,
    table_of_rank: BTreeMap<Rank, usize>,
}

impl SiteNames {
    /// Adds the names of a rank, in the order of their numbers.
    pub fn add(&mut self, rank: Rank, names: Vec<String>) {
        let number = *self.number_of_table.entry(names).or_insert_with_key(|names| {
            self.tables.push(names.clone());
            self.tables.len() - 1
        });
        self.table_of_rank.insert(rank, number);
    }

    /// Returns the name of the call site of a state or a wait; `None` before the first one, and of messages.
    pub(crate) fn of_event(&self, event: &Event) -> Option<&str> {
        let (Event::State { rank, site, .. } | Event::Wait { rank, site, .. }) = event else { return None };
        let table = self.tables.get(*self.table_of_rank.get(rank)?)?;
        table.get((*site)?.index()).map(String::as_str)
    }
}
