//! Trial of the first windows of a run: whether several threads have enough to do.

/// Number of windows on trial.
const WINDOWS: u32 = 256;
/// Least number of flows that begin in a window, on average: barriers take the time of some.
const MIN_FLOWS: u64 = 8;
/// Least quotient of the work of all subnetworks and that of the subnetwork with most, on average over windows.
const MIN_SPEEDUP: f64 = 1.2;
/// Work of a flow in addition to that of the flows in its subnetwork, which share links with it.
const FLOW_WORK: u64 = 16;

/// Work of the subnetworks in the windows so far.
#[derive(Debug, Default)]
pub(super) struct Trial {
    windows: u32,
    /// Flows begun until the present window, by subnetwork.
    begun: Vec<u64>,
    flows: u64,
    /// Sum of the work of all subnetworks, and of that with most in each window.
    work: u64,
    critical: u64,
}

impl Trial {
    /// Adds a window. Takes the number of flows that have begun so far in each subnetwork, and of those under way.
    pub(super) fn add_window(&mut self, subnetworks: impl ExactSizeIterator<Item = (u64, usize)>) {
        if self.is_over() {
            return;
        }
        self.windows += 1;
        self.begun.resize(subnetworks.len(), 0);
        let mut most = 0;
        for ((begun, under_way), before) in subnetworks.zip(&mut self.begun) {
            let flows = begun - std::mem::replace(before, begun);
            let work = flows * (FLOW_WORK + under_way as u64);
            (self.flows, self.work, most) = (self.flows + flows, self.work + work, most.max(work));
        }
        self.critical += most;
    }

    /// Returns whether the windows on trial are over.
    pub(super) fn is_over(&self) -> bool {
        self.windows == WINDOWS
    }

    /// Returns whether the windows on trial are over, and had too little to do for several threads.
    pub(super) fn is_futile(&self) -> bool {
        self.is_over()
            && (self.flows < u64::from(WINDOWS) * MIN_FLOWS
                || (self.work as f64) < MIN_SPEEDUP * self.critical as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_futile(windows: u32, flows: [u64; 3]) -> bool {
        let mut trial = Trial::default();
        for window in 1..=u64::from(windows) {
            trial.add_window(flows.map(|flows| (flows * window, 4 * flows as usize)).into_iter());
        }
        trial.is_futile()
    }

    #[test]
    fn subnetworks_with_equal_work_are_worth_their_threads() {
        assert!(!is_futile(WINDOWS, [20, 20, 20]));
        assert!(is_futile(WINDOWS, [60, 1, 1]), "nearly all is in one");
        assert!(is_futile(WINDOWS, [2, 2, 2]), "there are few flows");
        assert!(!is_futile(WINDOWS - 1, [60, 1, 1]), "it is too early to tell");
        assert!(is_futile(2 * WINDOWS, [60, 1, 1]));
    }
}
