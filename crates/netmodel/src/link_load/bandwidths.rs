//! Loads of a link at times in which its bandwidth is not that of the platform.

use serde::{Deserialize, Serialize};

/// Amounts that a link has carried at other bandwidths than that of the platform, by bandwidth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AmountsByBandwidth {
    /// The present bandwidth, if it is another one.
    present: Option<f64>,
    /// In ascending order of the bandwidths.
    amounts: Vec<(f64, f64)>,
}

impl AmountsByBandwidth {
    /// Sets the bandwidth from now on.
    pub(crate) fn set(&mut self, bandwidth: f64) {
        self.present = Some(bandwidth);
    }

    /// Adds what the link has carried at the present bandwidth.
    #[inline]
    pub(crate) fn add(&mut self, amount: f64) {
        if let Some(bandwidth) = self.present {
            self.add_at(bandwidth, amount);
        }
    }

    fn add_at(&mut self, bandwidth: f64, amount: f64) {
        match self.amounts.binary_search_by(|(known, _)| known.total_cmp(&bandwidth)) {
            Ok(place) => self.amounts[place].1 += amount,
            Err(place) => self.amounts.insert(place, (bandwidth, amount)),
        }
    }

    /// Adds the amounts of another part of the run.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.amounts.iter().for_each(|&(bandwidth, amount)| self.add_at(bandwidth, amount));
    }

    /// Returns the time in which a full link carries `total`, of which all that is not known here at the bandwidth `usual`.
    pub(crate) fn full_time(&self, total: f64, usual: f64) -> f64 {
        let carried = self.amounts.iter().filter(|(_, amount)| *amount > 0.0);
        carried.fold(total / usual, |time, &(bandwidth, amount)| time + amount / bandwidth - amount / usual)
    }
}
