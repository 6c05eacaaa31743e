//! Limits of the fields of records, given by the tables of their rank.

use crate::record::{
    CALL, COLLECTIVE, COLUMN, COMPUTE, IRECV, ISEND, LOCATION, LOOP_BEGIN, LOOP_END, NULL_REQUEST, OPTIONAL,
    RECORD_KINDS, RECV, Record, SEND, SEND_RECV, SLEEP, TEST, WAIT,
};

/// Size of the largest message [B].
pub(crate) const MAX_BYTES: u64 = 1 << 48;

/// Bits of the largest finite amount. The bits of infinity, NaN and negative amounts are greater as integers.
pub(crate) const MAX_AMOUNT_BITS: u64 = f64::MAX.to_bits();

/// Sizes of the tables to which the records of a rank refer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TableSizes {
    pub(crate) outgoing: usize,
    pub(crate) incoming: usize,
    pub(crate) slots: u32,
    pub(crate) collectives: usize,
    pub(crate) send_recvs: usize,
    pub(crate) locations: usize,
    pub(crate) calls: usize,
}

/// Limits of the fields of one kind of record.
#[derive(Clone, Copy, Debug)]
struct Limit {
    max_amount: u64,
    end_index: u32,
    end_slot: u32,
}

/// Limits of the fields of the records of a rank, by kind.
#[derive(Clone, Debug)]
pub(crate) struct Limits([Limit; RECORD_KINDS]);

/// Returns limits that are equal for all actions and admit no other record.
const fn only_actions(limit: Limit) -> [Limit; RECORD_KINDS] {
    const NONE: Limit = Limit { max_amount: 0, end_index: 0, end_slot: 0 };
    let mut limits = [limit; RECORD_KINDS];
    limits[COLUMN as usize] = NONE;
    limits[OPTIONAL as usize] = NONE;
    limits[LOOP_BEGIN as usize] = NONE;
    limits[LOOP_END as usize] = NONE;
    limits
}

impl Limits {
    /// Creates the limits for tables of these sizes.
    pub(crate) fn new(sizes: &TableSizes) -> Self {
        let mut limits = only_actions(Limit { max_amount: 0, end_index: 1, end_slot: 1 });
        let end = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        for (kind, size) in [
            (SEND, sizes.outgoing),
            (ISEND, sizes.outgoing),
            (RECV, sizes.incoming),
            (IRECV, sizes.incoming),
            (COLLECTIVE, sizes.collectives),
            (SEND_RECV, sizes.send_recvs),
            (LOCATION, sizes.locations),
            (CALL, sizes.calls),
        ] {
            limits[usize::from(kind)].end_index = end(size);
        }
        for kind in [ISEND, IRECV, NULL_REQUEST, WAIT, TEST] {
            limits[usize::from(kind)].end_slot = sizes.slots;
        }
        for kind in [SEND, ISEND, RECV, IRECV] {
            limits[usize::from(kind)].max_amount = MAX_BYTES;
        }
        for kind in [COMPUTE, SLEEP] {
            limits[usize::from(kind)].max_amount = MAX_AMOUNT_BITS;
        }
        Self(limits)
    }

    /// Returns whether the record is an action within the limits.
    #[inline]
    pub(crate) fn admit(&self, record: Record) -> bool {
        self.0.get(usize::from(record.kind())).is_some_and(|limit| {
            record.amount <= limit.max_amount
                && record.index() < limit.end_index
                && record.slot().get() < limit.end_slot
        })
    }
}

/// Largest fields of the records of a program, by kind.
#[derive(Clone, Debug)]
pub(crate) struct FieldMaxima([Option<FieldMaximum>; RECORD_KINDS]);

/// Largest fields of the records of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct FieldMaximum {
    amount: u64,
    index: u32,
    slot: u32,
}

impl Default for FieldMaxima {
    fn default() -> Self {
        Self([None; RECORD_KINDS])
    }
}

impl FieldMaxima {
    /// Adds a record; returns `None` if its kind is unknown.
    pub(crate) fn add(&mut self, record: Record) -> Option<()> {
        let need = self.0.get_mut(usize::from(record.kind()))?.get_or_insert_default();
        need.amount = need.amount.max(record.amount);
        need.index = need.index.max(record.index());
        need.slot = need.slot.max(record.slot().get());
        Some(())
    }

    /// Returns whether all actions are within the limits.
    pub(crate) fn are_within(&self, limits: &Limits) -> bool {
        let is_action = |kind: u8| !matches!(kind, COLUMN | OPTIONAL);
        (0..).zip(&self.0).zip(&limits.0).filter(|((kind, _), _)| is_action(*kind)).all(
            |((_, need), limit)| {
                need.is_none_or(|need| {
                    need.amount <= limit.max_amount
                        && need.index < limit.end_index
                        && need.slot < limit.end_slot
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::call::CallId;
    use crate::channel::{OutIdx, Slot};
    use pdes_core::Bytes;

    #[test]
    fn fields_beyond_the_tables_are_refused() {
        let limits = Limits::new(&TableSizes { outgoing: 3, slots: 2, ..TableSizes::default() });
        let isend = |to, bytes, slot| {
            let (to, bytes, slot) = (OutIdx::new(to), Bytes::new(bytes), Slot::new(slot));
            limits.admit(Record::encode(Action::Isend { to, bytes, slot }))
        };
        assert!(isend(2, MAX_BYTES, 1));
        assert!(!isend(3, 0, 0));
        assert!(!isend(0, MAX_BYTES + 1, 0));
        assert!(!isend(0, 0, 2));
        assert!(limits.admit(Record::encode(Action::Init)));
        for flops in [-1.0, f64::NAN, f64::INFINITY, -0.0] {
            assert!(!limits.admit(Record::encode(Action::Compute { flops })), "{flops}");
        }
        assert!(limits.admit(Record::encode(Action::Compute { flops: f64::MAX })));
        assert!(!limits.admit(Record::encode(Action::Call(CallId::new(0)))));
        for record in [
            Record::column(0),
            Record::optional(0),
            Record::loop_begin(2),
            Record::loop_end(),
            Record::from_words(0xff, 0),
        ] {
            assert!(!limits.admit(record));
        }
    }
}
