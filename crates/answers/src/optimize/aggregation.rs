//! Messages that become one.

use toml::Table;

use super::OptimumError;
use super::search::Search;
use crate::messages::{selector, transform};

/// Numbers of consecutive messages of a channel that become one.
const COUNTS: [u32; 3] = [2, 4, 8];

/// Messages of one place of a program, several of which become one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Aggregation {
    /// Region or call site; `None` for all messages.
    pub(super) place: Option<String>,
    /// Number of consecutive messages of a channel; `None` for those of an exchange.
    count: Option<u32>,
}

impl Aggregation {
    pub(super) fn transform(&self) -> Table {
        let place = self.place.as_deref().map(selector);
        transform("aggregate", [place, self.count.map(|count| ("count", i64::from(count).into()))])
    }

    fn name(&self) -> String {
        let messages =
            self.place.as_ref().map_or("messages".to_owned(), |place| format!("messages of {place}"));
        match self.count {
            Some(count) => format!("{messages}: {count} become one"),
            None => format!("{messages}: those of an exchange become one"),
        }
    }
}

impl Search<'_> {
    /// Joins messages of all places, or of one of them, until that does not help.
    pub(super) fn aggregate(&mut self) -> Result<(), OptimumError> {
        if self.spec.code.is_some() {
            self.refused.insert("aggregation".to_owned(), "the program runs, and has no trace".to_owned());
            return Ok(());
        }
        let mut places: Vec<Option<String>> = self.base.sending_regions().into_iter().map(Some).collect();
        // One place has all messages.
        if places.len() == 1 {
            places.clear();
        }
        places.insert(0, None);
        let counts = || std::iter::once(None).chain(COUNTS.map(Some));
        loop {
            let aggregations = places
                .iter()
                .flat_map(|place| counts().map(|count| Aggregation { place: place.clone(), count }));
            // Messages that are joined everywhere are not joined in one place, too.
            let best = &self.best;
            let is_apart = |tried: &Aggregation| {
                best.aggregations
                    .iter()
                    .all(|known| known.place == tried.place || known.place.is_some() && tried.place.is_some())
            };
            let variants: Vec<_> = aggregations
                .filter(is_apart)
                .map(|aggregation| (aggregation.name(), best.with_aggregation(aggregation)))
                .collect();
            if !self.take_best(&variants)? || self.is_exhausted() {
                return Ok(());
            }
        }
    }
}
