//! Sums over a program with its loops multiplied out: actions, messages, bytes, column uses.

use crate::archive::layout::MAX_DEPTH;
use crate::call::Source;
use crate::record::{
    ACTION_KINDS, CALL, COLUMN, COMPUTE, IRECV, ISEND, LOOP_BEGIN, LOOP_END, OPTIONAL, RECV, Record, SEND,
    SEND_RECV,
};
use crate::side_tables::SideTables;
use crate::transfer::{NotPersistent, PersistentRequests, Transfer};

/// Number of messages of a channel and their total size [B].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Sums over the records of a program. Optional computations count as if none were absent. Takes constant time per record, however
/// often it is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) actions: u64,
    pub(crate) by_kind: [u64; ACTION_KINDS],
    /// Deepest nesting of loops.
    pub(crate) depth: u64,
    /// Number of uses of each column.
    pub(crate) columns: Vec<u64>,
    /// Messages of each outgoing channel.
    pub(crate) sends: Vec<Traffic>,
    /// Receives of each incoming channel with the sizes of their buffers, cancelled ones included.
    receives: Vec<Traffic>,
    /// Number of uses of each call.
    pub(crate) calls: Vec<u64>,
    /// Number of receives from any source.
    receives_from_any: u64,
    /// Number of cancelled receives of each incoming channel.
    cancelled: Vec<u64>,
    /// Number of cancelled receives from any source.
    cancelled_from_any: u64,
    persistent: PersistentRequests,
    /// Number of executions of the next record.
    multiplicity: u64,
    /// Number of executions of each loop around the next record, the outermost first.
    outer_multiplicities: Vec<u64>,
    /// Persistent requests at the begin of each loop around the next record.
    outer_persistent: Vec<PersistentRequests>,
}

/// Error of [`Tally::push`]: a sum exceeds 64 bits, loops do not nest, or iterations of a loop start different requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TallyError;

impl From<NotPersistent> for TallyError {
    fn from(_: NotPersistent) -> Self {
        Self
    }
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { multiplicity: 1, ..Self::default() }
    }

    /// Adds the next record, which may refer to the side tables as they are so far.
    #[inline]
    pub(crate) fn push(&mut self, record: Record, side: &SideTables) -> Result<(), TallyError> {
        let kind = match record.kind() {
            LOOP_BEGIN => return self.enter_loop(record.amount()),
            LOOP_END => return self.leave_loop(),
            COLUMN | OPTIONAL => {
                let index = record.index() as usize;
                let uses = entry_mut(&mut self.columns, index);
                *uses = uses.checked_add(self.multiplicity).ok_or(TallyError)?;
                COMPUTE
            }
            kind => kind,
        };
        add(&mut self.actions, self.multiplicity)?;
        let of_kind = self.by_kind.get_mut(usize::from(kind)).ok_or(TallyError)?;
        *of_kind += self.multiplicity;
        match record.kind() {
            SEND | ISEND => self.send(record.index(), record.amount()),
            RECV | IRECV => self.receive(record.index(), record.amount()),
            SEND_RECV => self.send_recv(record.index(), side),
            CALL => self.call(record.index(), side),
            _ => Ok(()),
        }
    }

    fn enter_loop(&mut self, count: u64) -> Result<(), TallyError> {
        self.outer_multiplicities.push(self.multiplicity);
        self.outer_persistent.push(self.persistent.clone());
        self.multiplicity =
            self.multiplicity.checked_mul(count).filter(|times| *times > 0).ok_or(TallyError)?;
        self.depth = self.depth.max(self.outer_multiplicities.len() as u64);
        if self.outer_multiplicities.len() <= MAX_DEPTH { Ok(()) } else { Err(TallyError) }
    }

    fn leave_loop(&mut self) -> Result<(), TallyError> {
        let outer = self.outer_multiplicities.pop().ok_or(TallyError)?;
        let is_once = std::mem::replace(&mut self.multiplicity, outer) == outer;
        // Otherwise a later iteration would start other persistent requests, and so send and receive other messages.
        let is_same = self.outer_persistent.pop().is_some_and(|before| before == self.persistent);
        if is_same || is_once { Ok(()) } else { Err(TallyError) }
    }

    fn call(&mut self, id: u32, side: &SideTables) -> Result<(), TallyError> {
        let call = side.calls.get(id as usize).ok_or(TallyError)?;
        add(entry_mut(&mut self.calls, id as usize), self.multiplicity)?;
        let mut persistent = std::mem::take(&mut self.persistent);
        let followed = persistent.visit_transfers(call, |transfer| self.transfer(transfer));
        self.persistent = persistent;
        followed
    }

    fn transfer(&mut self, transfer: Transfer) -> Result<(), TallyError> {
        match transfer {
            Transfer::Send(to, bytes) => self.send(to.get(), bytes.get()),
            Transfer::Receive(Source::Rank(from), bytes) => self.receive(from.get(), bytes.get()),
            Transfer::Receive(Source::Any { .. }, _) => add(&mut self.receives_from_any, self.multiplicity),
            Transfer::Cancelled(Source::Rank(from)) => {
                add(entry_mut(&mut self.cancelled, from.index()), self.multiplicity)
            }
            Transfer::Cancelled(Source::Any { .. }) => add(&mut self.cancelled_from_any, self.multiplicity),
            Transfer::Receive(Source::ProcNull, _) | Transfer::Cancelled(Source::ProcNull) => Ok(()),
        }
    }

    fn send(&mut self, channel: u32, bytes: u64) -> Result<(), TallyError> {
        entry_mut(&mut self.sends, channel as usize).add(self.multiplicity, bytes)
    }

    fn receive(&mut self, channel: u32, bytes: u64) -> Result<(), TallyError> {
        entry_mut(&mut self.receives, channel as usize).add(self.multiplicity, bytes)
    }

    fn send_recv(&mut self, id: u32, side: &SideTables) -> Result<(), TallyError> {
        let both = *side.send_recvs.get(id as usize).ok_or(TallyError)?;
        if let Some(to) = both.to {
            self.send(to.get(), both.send_bytes.get())?;
        }
        if let Some(from) = both.from {
            self.receive(from.get(), both.recv_bytes.get())?;
        }
        Ok(())
    }

    /// Returns the number of receives of each incoming channel without cancelled ones.
    pub(crate) fn received(&self) -> impl Iterator<Item = u64> + '_ {
        let cancelled = self.cancelled.iter().copied().chain(std::iter::repeat(0));
        self.receives.iter().zip(cancelled).map(|(all, cancelled)| all.messages.saturating_sub(cancelled))
    }

    /// Returns the number of receives from any source without cancelled ones.
    pub(crate) fn received_from_any(&self) -> u64 {
        self.receives_from_any.saturating_sub(self.cancelled_from_any)
    }

    /// Returns whether all loops have ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.outer_multiplicities.is_empty()
    }
}

impl Traffic {
    fn add(&mut self, messages: u64, bytes: u64) -> Result<(), TallyError> {
        add(&mut self.messages, messages)?;
        add(&mut self.bytes, bytes.checked_mul(messages).ok_or(TallyError)?)
    }
}

fn add(sum: &mut u64, more: u64) -> Result<(), TallyError> {
    *sum = sum.checked_add(more).ok_or(TallyError)?;
    Ok(())
}

/// Returns an entry, which is added if missing.
#[inline]
fn entry_mut<T: Clone + Default>(entries: &mut Vec<T>, index: usize) -> &mut T {
    if index >= entries.len() {
        entries.resize(index + 1, T::default());
    }
    &mut entries[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::channel::OutIdx;
    use pdes_core::Bytes;

    fn sum(records: &[Record]) -> Result<Tally, TallyError> {
        let mut tally = Tally::new();
        records.iter().try_for_each(|record| tally.push(*record, &SideTables::default()))?;
        Ok(tally)
    }

    #[test]
    fn loops_multiply() {
        let send = Record::encode(Action::Send { to: OutIdx::new(1), bytes: Bytes::new(10) });
        let records = [
            Record::loop_begin(3),
            Record::column(0),
            Record::loop_begin(4),
            send,
            Record::loop_end(),
            Record::loop_end(),
            Record::column(0),
        ];
        let tally = sum(&records).expect("small numbers");
        assert_eq!((tally.actions, tally.depth, tally.is_closed()), (3 + 12 + 1, 2, true));
        assert_eq!(tally.columns, [4]);
        assert_eq!(tally.sends, [Traffic::default(), Traffic { messages: 12, bytes: 120 }]);
        assert_eq!(tally.by_kind[usize::from(COMPUTE)], 4);
    }

    #[test]
    fn overflows_and_open_loops_are_errors() {
        let (begin, end) = (Record::loop_begin, Record::loop_end());
        let init = Record::encode(Action::Init);
        assert_eq!(sum(&[begin(1 << 32), begin(1 << 32), init, end, end]), Err(TallyError));
        assert_eq!(sum(&[begin(0), init, end]), Err(TallyError));
        assert_eq!(sum(&[end]), Err(TallyError));
        assert_eq!(sum(&[begin(2), init]).map(|tally| tally.is_closed()), Ok(false));
        assert_eq!(sum(&vec![begin(1); MAX_DEPTH + 1]), Err(TallyError));
        assert_eq!(sum(&[Record::from_words(77, 0)]), Err(TallyError));
    }
}
