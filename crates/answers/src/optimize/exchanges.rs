//! Hosts of ranks.

use trace_tools::transform::{CountedTraffic, Placement};

use super::OptimumError;
use super::search::Search;
use crate::placement::place;

/// Number of exchanges of two ranks that are tried before the best of them is taken.
const EXCHANGES: usize = 64;

impl Search<'_> {
    /// Maps ranks anew, and exchanges two at a time until none of these exchanges helps.
    pub(super) fn move_ranks(&mut self) -> Result<(), OptimumError> {
        let mut mapped = Vec::new();
        for (name, mapping) in [
            ("greedy mapping of ranks", Placement::Greedy(CountedTraffic::All)),
            ("mapping of ranks by bisection", Placement::Bisection(CountedTraffic::All)),
        ] {
            let run = self.changed_run(&self.best, 0)?;
            match place(&run.spec, &[&mapping]) {
                Ok((names, _)) => {
                    let platform = self.simulation().platform();
                    let host = |name: &String| platform.host_by_name(name).expect("hosts of the platform");
                    mapped.push((name.to_owned(), self.best.with_hosts(names.iter().map(host).collect())));
                }
                Err(error) if error.is_misuse() => {
                    self.refused.insert(name.to_owned(), error.to_string());
                }
                Err(error) => return Err(Box::new(error).into()),
            }
        }
        self.take_best(&mapped)?;
        let ranks = self.simulation().trace().ranks() as usize;
        let pairs = ranks * ranks.saturating_sub(1) / 2;
        // Goes round the pairs, a number of them at a time, until a whole round has not helped.
        let (mut next, mut failed) = (0, 0);
        while failed < pairs && !self.is_exhausted() {
            let hosts = self.hosts();
            let count = EXCHANGES.min(pairs - failed);
            let tried = (0..count).map(|index| pair((next + index) % pairs));
            let moved = tried.filter(|&(one, other)| hosts[one] != hosts[other]).map(|(one, other)| {
                let mut hosts = hosts.clone();
                hosts.swap(one, other);
                (format!("ranks {one} and {other} change places"), self.best.with_hosts(hosts))
            });
            let moved: Vec<_> = moved.collect();
            failed = if self.take_best(&moved)? { 0 } else { failed + count };
            next = (next + count) % pairs;
        }
        Ok(())
    }
}

/// Returns a pair of ranks by its number: (0, 1), (0, 2), (1, 2), (0, 3) and so on. There are too many of them to list.
fn pair(number: usize) -> (usize, usize) {
    let mut larger = ((1.0 + (1.0 + 8.0 * number as f64).sqrt()) / 2.0) as usize;
    // The root may be rounded either way.
    while larger * (larger - 1) / 2 > number {
        larger -= 1;
    }
    while larger * (larger + 1) / 2 <= number {
        larger += 1;
    }
    (number - larger * (larger - 1) / 2, larger)
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn pairs_are_numbered() {
        let mut number = 0;
        for larger in 1..200 {
            for smaller in 0..larger {
                assert_eq!(pair(number), (smaller, larger));
                number += 1;
            }
        }
        let last = 100_000_usize * 99_999 / 2 - 1;
        assert_eq!(pair(last), (99_998, 99_999));
    }
}
