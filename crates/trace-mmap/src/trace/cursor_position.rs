//! Serializable positions of cursors, from which another process can resume.

use serde::{Deserialize, Serialize};

use crate::archive::WalkPosition;

/// Position of a cursor in the actions of its rank.
///
/// It is valid only for the same trace and the same version of this crate. The time to resume from it depends on the depth of
/// loops and the number of columns, not on the number of actions before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorPosition {
    /// Number of actions read.
    pub(crate) position: u64,
    /// Position in the program of an archive; `None` if the actions are in memory.
    pub(crate) walk: Option<WalkPosition>,
}

impl CursorPosition {
    /// Returns the number of actions before it.
    pub fn position(&self) -> u64 {
        self.position
    }
}
