//! Places of cursors, to go on from there in another process.

use serde::{Deserialize, Serialize};

use crate::archive::Place;

/// Where a cursor is in the actions of its rank.
///
/// It means something for the same trace and the same version of this crate only. To go on from it takes time in the depth of
/// loops and the number of columns, whatever lies before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Actions read.
    pub(crate) position: u64,
    /// `None` where the actions are in memory.
    pub(crate) place: Option<Place>,
}

impl Mark {
    /// Returns the number of actions before it.
    pub fn position(&self) -> u64 {
        self.position
    }
}
