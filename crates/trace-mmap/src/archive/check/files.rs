//! Calls on files that are not open.

use std::collections::BTreeMap;

use pdes_core::Rank;

use super::Finding;
use super::loops::{LoopSums, Summary};
use crate::action::Action;
use crate::call::FileName;
use crate::open_files::{FileState, FileUse};
use crate::record::{CALL, LOOP_BEGIN, LOOP_END, Record};
use crate::side_tables::SideTables;
use crate::trace::RankTrace;

/// The effect of calls on a file: how often it must be open before them, and how much oftener after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Balance {
    needed: u64,
    change: i64,
}

impl Balance {
    fn of(used: FileUse) -> Self {
        match used {
            FileUse::Open => Self { needed: 0, change: 1 },
            FileUse::Access => Self { needed: 1, change: 0 },
            FileUse::Close => Self { needed: 1, change: -1 },
        }
    }
}

impl Summary for Balance {
    fn then(&self, next: &Self) -> Self {
        let needed = next.needed.saturating_add_signed(self.change.saturating_neg());
        Self { needed: self.needed.max(needed), change: self.change.saturating_add(next.change) }
    }
}

/// The uses of files of a rank, of its records in order.
#[derive(Default)]
pub(super) struct FileUses(LoopSums<FileName, Balance>);

impl FileUses {
    /// Adds the next record.
    pub(super) fn push(&mut self, record: Record, side: &SideTables) {
        match record.kind() {
            LOOP_BEGIN => self.0.begin(record.amount()),
            LOOP_END => self.0.end(),
            CALL => {
                let used = side.calls.get(record.index() as usize).and_then(FileUse::of);
                used.into_iter().for_each(|(file, used)| self.0.add(file.clone(), &Balance::of(used)));
            }
            _ => {}
        }
    }

    /// Finds the first call on a file in the wrong state, of a rank with all its records. Only where some call is on a file that the
    /// trace has not opened so often, the actions are followed one by one.
    pub(super) fn finish(self, trace: &RankTrace, rank: Rank) -> Option<Finding> {
        if self.0.finish().values().all(|used| used.needed == 0) {
            return None;
        }
        let mut files: BTreeMap<&FileName, FileState> = BTreeMap::new();
        (0..).zip(trace.cursor()).find_map(|(action, found)| {
            let Action::Call(id) = found else { return None };
            let call = trace.call(id);
            let (file, used) = FileUse::of(call)?;
            let misuse = files.entry(file).or_default().follow(used).err()?;
            Some(Finding::FileMisuse { rank, action, call: call.name(), file: file.clone(), misuse })
        })
    }
}
