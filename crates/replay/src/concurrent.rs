//! Many replays at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// Calls `run` with each item, `at_once` at a time; returns the results in their order. `done` counts the items that are done.
///
/// # Errors
/// Returns the first error that comes, and begins no other item.
///
/// # Panics
/// Panics if `at_once` is zero.
pub fn run_all<T: Sync, R: Send, E: Send>(
    items: &[T],
    at_once: usize,
    done: &AtomicU64,
    run: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    assert!(at_once > 0, "at least one run at a time");
    let counted = |item| {
        let result = run(item)?;
        // A display elsewhere reads this counter; nothing depends on its order.
        done.fetch_add(1, Ordering::Relaxed);
        Ok(result)
    };
    let pool = ThreadPoolBuilder::new().num_threads(at_once).build().expect("the system can start threads");
    pool.install(|| items.par_iter().with_max_len(1).map(counted).collect())
}
