//! Records: events encoded as bytes whose lexicographic order is the order of the timeline.

use mpi_model::{ActionKind, Event, WaitState};
use pdes_core::{Bytes, Rank, SimTime};
use trace_mmap::{CommId, LocationId};

/// Order of events that a format requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By time of beginning, all ranks together.
    Time,
    /// By rank, then by time; a message occurs twice, at its sender and at its receiver.
    Rank,
}

/// An event, encoded for sorting and for files.
///
/// Records compare as their bytes do: by time and rank, or by rank and time, then by class as in the table, then by the
/// remaining fields. Equal records are equal events, so that the order is total.
///
/// | class | event | fields after time, rank and class |
/// |---|---|---|
/// | 0 | a state | end, kind, call site |
/// | 1 | a wait state | end, kind, wait state, call site |
/// | 2 | a message, at its sender | arrival, receiver, payload, tag, communicator, operation |
/// | 3 | a message, at its receiver | time of sending, sender, and as before |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record([u8; Self::SIZE]);

const STATE: u8 = 0;
const WAIT: u8 = 1;
const SENT: u8 = 2;
const RECEIVED: u8 = 3;
/// Operation field of a message that belongs to no collective operation.
const NO_OPERATION: u8 = u8::MAX;

const _: () = assert!(ActionKind::ALL.len() < NO_OPERATION as usize);

impl Record {
    /// Size of a record \[B\].
    pub const SIZE: usize = 42;

    /// Encodes an event and passes it to `keep`: once, or twice for a message in the order by rank.
    pub(crate) fn encode(event: &Event, order: Order, mut keep: impl FnMut(Self)) {
        match *event {
            Event::State { rank, kind, site, begin, end } => {
                let encoder = RecordEncoder::new(order, begin, rank, STATE).time(end);
                keep(encoder.byte(kind as u8).site(site).record);
            }
            Event::Wait { rank, kind, state, site, begin, end } => {
                let encoder = RecordEncoder::new(order, begin, rank, WAIT).time(end);
                keep(encoder.byte(kind as u8).byte(state as u8).site(site).record);
            }
            Event::Message { from, to, sent, arrived, .. } => {
                keep(RecordEncoder::new(order, sent, from, SENT).time(arrived).word(to.get()).message(event));
                if order == Order::Rank {
                    keep(
                        RecordEncoder::new(order, arrived, to, RECEIVED)
                            .time(sent)
                            .word(from.get())
                            .message(event),
                    );
                }
            }
        }
    }

    /// Decodes the event from a record in this order; `None` if the bytes are not a valid record.
    pub fn decode(&self, order: Order) -> Option<Event> {
        let mut decoder = RecordDecoder(&self.0);
        let (time, rank) = match order {
            Order::Time => (decoder.time()?, decoder.rank()?),
            Order::Rank => {
                let rank = decoder.rank()?;
                (decoder.time()?, rank)
            }
        };
        let class = decoder.byte()?;
        let other = decoder.time()?;
        match class {
            STATE => {
                let (kind, site) = (decoder.kind()?, decoder.site()?);
                Some(Event::State { rank, kind, site, begin: time, end: other })
            }
            WAIT => {
                let (kind, state) = (decoder.kind()?, *WaitState::ALL.get(usize::from(decoder.byte()?))?);
                Some(Event::Wait { rank, kind, state, site: decoder.site()?, begin: time, end: other })
            }
            SENT => decoder.message((rank, time), other, false),
            RECEIVED => decoder.message((rank, time), other, true),
            _ => None,
        }
    }

    /// Returns true if this is a message at its receiver.
    pub fn is_receipt(&self) -> bool {
        self.0[Self::CLASS] == RECEIVED
    }

    const CLASS: usize = size_of::<u64>() + size_of::<u32>();

    /// Returns the encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads consecutive records and ignores an incomplete one at the end.
    pub fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.as_chunks().0.iter().copied().map(Self).collect()
    }
}

/// Encoder of a record.
struct RecordEncoder {
    record: Record,
    at: usize,
}

impl RecordEncoder {
    fn new(order: Order, time: SimTime, rank: Rank, class: u8) -> Self {
        let encoder = Self { record: Record([0; Record::SIZE]), at: 0 };
        match order {
            Order::Time => encoder.time(time).word(rank.get()),
            Order::Rank => encoder.word(rank.get()).time(time),
        }
        .byte(class)
    }

    fn append(mut self, bytes: &[u8]) -> Self {
        self.record.0[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    /// Appends a time. All numbers are big-endian, so that bytes compare like numbers.
    fn time(self, time: SimTime) -> Self {
        self.append(&time.as_picos().to_be_bytes())
    }

    fn word(self, word: u32) -> Self {
        self.append(&word.to_be_bytes())
    }

    fn byte(self, byte: u8) -> Self {
        self.append(&[byte])
    }

    /// Appends a call site: 0 before the first one, else one more than its number.
    fn site(self, site: Option<LocationId>) -> Self {
        self.word(site.map_or(0, |site| site.get().saturating_add(1)))
    }

    /// Appends the fields that both ends of a message share, and returns the record.
    fn message(self, event: &Event) -> Record {
        let &Event::Message { bytes, tag, communicator, operation, .. } = event else { return self.record };
        let operation = operation.map_or(NO_OPERATION, |kind| kind as u8);
        self.append(&bytes.get().to_be_bytes()).word(tag).word(communicator.get()).byte(operation).record
    }
}

/// Decoder of a record.
struct RecordDecoder<'a>(&'a [u8]);

impl RecordDecoder<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn time(&mut self) -> Option<SimTime> {
        Some(SimTime::from_picos(u64::from_be_bytes(self.take()?)))
    }

    fn rank(&mut self) -> Option<Rank> {
        Some(Rank::new(u32::from_be_bytes(self.take()?)))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    /// Decodes a call site, of which there may be none.
    fn site(&mut self) -> Option<Option<LocationId>> {
        let number = u32::from_be_bytes(self.take()?);
        Some(number.checked_sub(1).map(LocationId::new))
    }

    fn kind(&mut self) -> Option<ActionKind> {
        ActionKind::ALL.get(usize::from(self.byte()?)).copied()
    }

    /// Decodes the rest of a message, of which one end and the time of the other are known.
    fn message(&mut self, (here, at): (Rank, SimTime), other: SimTime, is_receipt: bool) -> Option<Event> {
        let there = self.rank()?;
        let (from, to, sent, arrived) =
            if is_receipt { (there, here, other, at) } else { (here, there, at, other) };
        let bytes = Bytes::new(u64::from_be_bytes(self.take()?));
        let tag = u32::from_be_bytes(self.take()?);
        let communicator = CommId::new(u32::from_be_bytes(self.take()?));
        let operation = match self.byte()? {
            NO_OPERATION => None,
            kind => Some(*ActionKind::ALL.get(usize::from(kind))?),
        };
        Some(Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates events within about 1000 ps on four ranks.
    pub(crate) fn events() -> impl Strategy<Value = Event> {
        let span = (0..1000_u64, 0..50_u64).prop_map(|(begin, length)| (begin, begin + length));
        let kind = prop::sample::select(ActionKind::ALL.to_vec());
        let wait = prop::sample::select(WaitState::ALL.to_vec());
        let numbers = (any::<u64>(), any::<u32>(), any::<u32>());
        let site = prop::option::of((0..3_u32).prop_map(LocationId::new));
        let of = (0..3_u8, prop::option::of(kind.clone()), site);
        let parts = ((0..4_u32, 0..4_u32), span, kind, wait, numbers, of);
        parts.prop_map(
            |(
                (one, other),
                (begin, end),
                kind,
                state,
                (bytes, tag, communicator),
                (class, operation, site),
            )| {
                let (rank, to) = (Rank::new(one), Rank::new(other));
                let (begin, end) = (SimTime::from_picos(begin), SimTime::from_picos(end));
                let (bytes, communicator) = (Bytes::new(bytes), CommId::new(communicator));
                match class {
                    0 => Event::State { rank, kind, site, begin, end },
                    1 => Event::Wait { rank, kind, state, site, begin, end },
                    _ => Event::Message {
                        from: rank,
                        to,
                        sent: begin,
                        arrived: end,
                        bytes,
                        tag,
                        communicator,
                        operation,
                    },
                }
            },
        )
    }

    fn packed(event: &Event, order: Order) -> Vec<Record> {
        let mut records = Vec::new();
        Record::encode(event, order, |record| records.push(record));
        records
    }

    proptest! {
        #[test]
        fn events_round_trip(event in events()) {
            let by_time = packed(&event, Order::Time);
            prop_assert_eq!(by_time.len(), 1);
            prop_assert_eq!(by_time[0].decode(Order::Time), Some(event));
            prop_assert!(!by_time[0].is_receipt());
            let by_rank = packed(&event, Order::Rank);
            let is_message = matches!(event, Event::Message { .. });
            let receipts: Vec<bool> = by_rank.iter().map(Record::is_receipt).collect();
            prop_assert_eq!(receipts, if is_message { vec![false, true] } else { vec![false] });
            prop_assert!(by_rank.iter().all(|record| record.decode(Order::Rank) == Some(event)));
            let bytes: Vec<u8> = by_rank.iter().flat_map(|record| record.as_bytes().to_vec()).collect();
            prop_assert_eq!(Record::from_bytes(&bytes), by_rank);
        }
    }

    #[test]
    fn records_sort_by_time_or_by_rank() {
        let state = |rank, begin, end| {
            let (begin, end) = (SimTime::from_picos(begin), SimTime::from_picos(end));
            Event::State { rank: Rank::new(rank), kind: ActionKind::Recv, site: None, begin, end }
        };
        let (late, early) = (state(0, 300, 300), state(1, 255, 256));
        let record = |event, order| packed(&event, order)[0];
        assert!(record(early, Order::Time) < record(late, Order::Time));
        assert!(record(late, Order::Rank) < record(early, Order::Rank));
        // An event without duration comes before one that begins at the same time and lasts.
        assert!(record(late, Order::Time) < record(state(0, 300, 301), Order::Time));
    }

    #[test]
    fn invalid_records_are_refused() {
        let no_class = Record([9; Record::SIZE]);
        assert_eq!(no_class.decode(Order::Time), None);
    }
}
