//! Work of the cursor benchmarks on each action.

use pdes_core::Rank;
use trace_mmap::{Action, Trace};

/// Sums amounts, sizes and numbers of actions, so that each action is decoded, as in a replay.
pub(crate) fn sum(trace: &Trace) -> (f64, u64) {
    let mut total = (0.0, 0);
    for rank in 0..trace.ranks() {
        for action in trace.rank(Rank::new(rank)).cursor() {
            match action {
                Action::Compute { flops } => total.0 += flops,
                Action::Send { bytes, .. } | Action::Recv { bytes, .. } => total.1 += bytes.get(),
                _ => total.1 += 1,
            }
        }
    }
    total
}
