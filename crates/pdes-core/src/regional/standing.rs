//! How regions stand, as workers and processes tell each other.

use crate::SimTime;

/// What a worker brings to a meeting.
pub(super) const WORDS: usize = 5;

/// How regions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Letters that were sent in this phase.
    pub(super) letters: u64,
    /// The next event of any.
    pub(super) event: SimTime,
    /// The next boundary that matters to any.
    pub(super) boundary: SimTime,
    /// The earliest failure of any.
    pub(super) failure: SimTime,
    /// When a process has met a conditional event.
    pub(super) conditional: SimTime,
}

impl Standing {
    pub(super) const NOTHING: Self = Self {
        letters: 0,
        event: SimTime::MAX,
        boundary: SimTime::MAX,
        failure: SimTime::MAX,
        conditional: SimTime::MAX,
    };

    pub(super) fn merge(&mut self, other: Self) {
        self.letters += other.letters;
        self.event = self.event.min(other.event);
        self.boundary = self.boundary.min(other.boundary);
        self.failure = self.failure.min(other.failure);
        self.conditional = self.conditional.min(other.conditional);
    }

    /// Returns what is brought to a [meeting](crate::Meeting).
    pub(super) fn words(self) -> [u64; WORDS] {
        let Self { letters, event, boundary, failure, conditional } = self;
        let [event, boundary, failure, conditional] =
            [event, boundary, failure, conditional].map(SimTime::as_picos);
        [letters, event, boundary, failure, conditional]
    }

    /// Returns how all stand, from what they have brought.
    pub(super) fn of(brought: impl Iterator<Item = [u64; WORDS]>) -> Self {
        let mut all = Self::NOTHING;
        for [letters, times @ ..] in brought {
            let [event, boundary, failure, conditional] = times.map(SimTime::from_picos);
            all.merge(Self { letters, event, boundary, failure, conditional });
        }
        all
    }
}
