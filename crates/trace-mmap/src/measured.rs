//! Measured times: the duration of each action in the recorded run.

use std::sync::Arc;

use pdes_core::SimDuration;

use crate::action::Action;
use crate::archive::{ArchivedRank, Damage};
use crate::column::{ABSENT, Column, PrefetchedColumns};
use crate::record::{MAX_AMOUNT_BITS, Record};
use crate::store::Records;
use crate::trace::Cursor;

/// Picoseconds per nanosecond, the unit in which times are stored.
const PICOS_PER_NANO: u64 = 1000;

/// Longest time that can be stored \[ns\]: smaller whole numbers are exact as doubles, and in picoseconds fit 64 bits.
pub const MAX_NANOS: u64 = 999_999_999_999_999;

/// The measured times of a rank.
#[derive(Debug)]
pub(crate) enum MeasuredTimes {
    /// In memory or in a temporary file, as records: a computation whose amount is the time \[ns\], or any other record if the
    /// action has no time.
    Memory(Records),
    /// In an archive: a column for each kind of action, and the offset of their blocks.
    Archive { columns: Arc<[Column]>, blocks: u64 },
}

/// Encodes a time as a record of [`MeasuredTimes::Memory`].
pub(crate) fn encode_time(nanos: Option<u64>) -> Record {
    Record::encode(nanos.map_or(Action::Init, |nanos| Action::Compute { flops: nanos as f64 }))
}

/// Iterator over the actions of a rank, each with its duration in the recorded run; `None` if that is unknown.
///
/// If the times are damaged, it ends early and [`Trace::integrity`](crate::Trace::integrity) reports the damage.
#[derive(Clone, Debug)]
pub struct TimedActions<'a> {
    actions: Cursor<'a>,
    times: TimesReader<'a>,
}

#[derive(Clone, Debug)]
enum TimesReader<'a> {
    Memory(Cursor<'a>),
    Archive { ahead: PrefetchedColumns<'a>, blocks: u64, rank: &'a ArchivedRank },
}

impl<'a> TimedActions<'a> {
    pub(crate) fn in_memory(actions: Cursor<'a>, times: &'a Records) -> Self {
        Self { actions, times: TimesReader::Memory(Cursor::in_memory(times)) }
    }

    pub(crate) fn archived(rank: &'a ArchivedRank, columns: &'a [Column], blocks: u64) -> Self {
        let times = TimesReader::Archive { ahead: PrefetchedColumns::new(columns), blocks, rank };
        Self { actions: Cursor::archived(rank), times }
    }

    /// Returns the time of the next action, which is `action` \[ns\].
    fn time(&mut self, action: Action) -> Result<Option<u64>, Damage> {
        match &mut self.times {
            TimesReader::Memory(times) => Ok(match times.next() {
                Some(Action::Compute { flops }) => Some(flops as u64),
                _ => None,
            }),
            TimesReader::Archive { ahead, blocks, rank } => {
                let column = u32::from(Record::encode(action).kind());
                let mut bits = ahead.take(column);
                if bits > MAX_AMOUNT_BITS && bits != ABSENT {
                    bits = ahead.refill_and_take(column, rank.shard(), *blocks)?;
                }
                match bits {
                    ABSENT => Ok(None),
                    // Only a forged archive has longer times: they count as absent.
                    bits if bits <= MAX_AMOUNT_BITS => {
                        Ok(Some(f64::from_bits(bits) as u64).filter(|nanos| *nanos <= MAX_NANOS))
                    }
                    _ => Err(Damage::Column),
                }
            }
        }
    }
}

impl Iterator for TimedActions<'_> {
    type Item = (Action, Option<SimDuration>);

    fn next(&mut self) -> Option<Self::Item> {
        let action = self.actions.next()?;
        match self.time(action) {
            Ok(nanos) => Some((action, nanos.map(|nanos| SimDuration::from_picos(nanos * PICOS_PER_NANO)))),
            Err(damage) => {
                if let TimesReader::Archive { rank, .. } = self.times {
                    rank.report_damage(damage);
                }
                None
            }
        }
    }
}

/// Returns a time in the unit of text traces \[ns\], rounded down.
pub fn nanos(time: SimDuration) -> u64 {
    time.as_picos() / PICOS_PER_NANO
}
