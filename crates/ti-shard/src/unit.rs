//! Units: the 16-byte words of records.

/// Size of a unit \[B\].
pub const UNIT: usize = 16;

/// Flag in the first byte of a complete record.
const IS_WRITTEN: u8 = 1 << 7;

/// Flag of a record that is followed by a [deferred](crate::Deferred) unit.
const HAS_DEFERRED: u8 = 1 << 6;

/// Kind of a record. The numbers up to 17 are those of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `init`.
    Init = 0,
    /// `finalize`.
    Finalize = 1,
    /// `compute`: the amount is the bits of a double \[flop\].
    Compute = 4,
    /// `send`: the index is the phrase of the channel, the amount the size \[B\]; likewise for the next three.
    Send = 6,
    /// `isend`: the slot is the number of the request.
    Isend = 7,
    /// `recv`.
    Recv = 8,
    /// `irecv`: the slot is the number of the request.
    Irecv = 9,
    /// `wait`: the slot is the number of the request.
    Wait = 13,
    /// Any other action: the index is its phrase.
    Call = 17,
    /// No action: defines the phrase with this index, until it is redefined. The amount is its size \[B\]; its bytes
    /// follow, padded to whole units.
    Phrase = 32,
    /// No action: the process has left MPI, and everything was written.
    End = 33,
    /// No action: the call of this record has returned an error and done nothing.
    Failed = 34,
}

impl Kind {
    fn from_number(number: u8) -> Option<Self> {
        const ALL: [Kind; 12] = [
            Kind::Init,
            Kind::Finalize,
            Kind::Compute,
            Kind::Send,
            Kind::Isend,
            Kind::Recv,
            Kind::Irecv,
            Kind::Wait,
            Kind::Call,
            Kind::Phrase,
            Kind::End,
            Kind::Failed,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// First unit of a record.
///
/// | bits of the first word | meaning |
/// |---|---|
/// | 0-5 | kind |
/// | 6, 7 | 2: the record is complete; 3: and a deferred unit follows; 1: the process has begun the action, and the next record overwrites it |
/// | 8-31 | slot |
/// | 32-63 | index |
///
/// The second word is the amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Kind of the record.
    pub kind: Kind,
    /// Number of a request, below [`MAX_SLOTS`](Self::MAX_SLOTS).
    pub slot: u32,
    /// Number of a phrase.
    pub index: u32,
    /// Size \[B\], or bits of an amount of computation \[flop\].
    pub amount: u64,
}

impl Unit {
    /// Exclusive upper bound of slots.
    pub const MAX_SLOTS: u32 = 1 << 24;

    /// Returns a unit of a kind, with zeros elsewhere.
    pub const fn of_kind(kind: Kind) -> Self {
        Self { kind, slot: 0, index: 0, amount: 0 }
    }

    /// Returns the two words.
    #[inline]
    pub const fn words(self, has_deferred: bool) -> [u64; 2] {
        let flags = IS_WRITTEN | if has_deferred { HAS_DEFERRED } else { 0 };
        let head = (self.kind as u8 | flags) as u64 | (self.slot as u64) << 8 | (self.index as u64) << 32;
        [head, self.amount]
    }

    /// Returns the bytes.
    pub fn to_bytes(self, has_deferred: bool) -> [u8; UNIT] {
        unit_from_words(self.words(has_deferred))
    }

    /// Returns the two words of the record of an action that has begun.
    #[inline]
    pub const fn begun_words(self) -> [u64; 2] {
        let [head, amount] = self.words(true);
        [head & !(IS_WRITTEN as u64), amount]
    }

    /// Returns a unit and what follows; `None` if no record begins here.
    pub(crate) fn from_bytes(bytes: [u8; UNIT]) -> Option<(Self, Form)> {
        let [head, amount] = words_of_unit(bytes);
        let first = head as u8;
        let form = match (first & IS_WRITTEN != 0, first & HAS_DEFERRED != 0) {
            (true, false) => Form::Plain,
            (true, true) => Form::Deferred,
            (false, true) => Form::Begun,
            (false, false) => return None,
        };
        let kind = Kind::from_number(first & !(IS_WRITTEN | HAS_DEFERRED))?;
        Some((Self { kind, slot: head as u32 >> 8, index: (head >> 32) as u32, amount }, form))
    }
}

/// Form of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    /// A deferred unit follows.
    Deferred,
    /// The action has begun, and nothing follows.
    Begun,
}

/// Returns the bytes of two words.
pub(crate) fn unit_from_words([first, second]: [u64; 2]) -> [u8; UNIT] {
    let mut bytes = [0; UNIT];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

/// Returns the two words of a unit.
pub(crate) fn words_of_unit(bytes: [u8; UNIT]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    [word(0), word(8)]
}
