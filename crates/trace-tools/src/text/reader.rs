//! Parsing of the action of a line.

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::table::CallKind;
use trace_mmap::{Action, CallOp, CollectiveId, Datatype, RankBuilder, Unmodelled};

use crate::text::call::read_call;
use crate::text::fields::{integer, real};
use crate::text::verb::Verb;
use crate::text::{Field, Fields, FileWarnings, Line, TextError};

/// Size of the largest message \[B\], and the largest count.
pub(super) const MAX_BYTES: u64 = 1 << 48;

/// Reads the rank at the start of a line.
#[inline]
pub(crate) fn read_rank(fields: &mut Fields<'_>) -> Result<u64, TextError> {
    let found = fields.next().unwrap_or_default();
    let rank = integer(found).and_then(|number| u64::try_from(number).ok());
    rank.ok_or_else(|| invalid(Field::new("rank"), found, "a whole number that is not negative"))
}

/// State of the reading of the text of a rank, which gives its next lines their meaning.
#[derive(Default)]
pub(crate) struct RankText {
    /// The datatype of omitted fields, `None` before the first `init`.
    default_type: Option<Datatype>,
    /// The collective operations by their text, and whether that has extra fields.
    collectives: FxHashMap<Box<[u8]>, (CollectiveId, bool)>,
}

impl RankText {
    fn set_default_type(&mut self, datatype: Datatype) {
        if self.default_type.replace(datatype) != Some(datatype) {
            // The same text now means another collective.
            self.collectives.clear();
        }
    }

    /// Finds a collective by its text; also returns whether the text has extra fields.
    pub(super) fn collective(&self, text: &[u8]) -> Option<(CollectiveId, bool)> {
        self.collectives.get(text).copied()
    }

    pub(super) fn add_collective(&mut self, text: &[u8], id: CollectiveId, has_extra: bool) {
        self.collectives.insert(text.into(), (id, has_extra));
    }
}

/// Reads the action of a line, whose text begins behind the rank.
pub(crate) fn read_action(
    line: Line<'_>,
    state: &mut RankText,
    builder: &mut RankBuilder<'_>,
    warnings: &mut FileWarnings,
) -> Result<Action, TextError> {
    let text = line.text;
    let mut fields = Fields::new(text);
    let verb = Verb::find(fields.next().ok_or(TextError::MissingAction)?)?;
    let size = builder.ranks();
    let mut reader = Reader { verb, fields, state, builder, size };
    if verb == Verb::Call(CallKind::Unmodelled, 0) {
        return reader.unmodelled();
    }
    let (action, has_extra) = if verb.is_call() || line.has_equals && verb.takes_keys() {
        read_call(reader)?
    } else if let Verb::Collective(kind, _) = verb {
        reader.collective(kind, text)?
    } else {
        let action = reader.action()?;
        (action, reader.has_more())
    };
    if has_extra && !verb.ignores_extra_fields() {
        warnings.extra_fields.count(line.number);
    }
    if verb.makes_communicator() && action == Action::Communicator {
        warnings.communicators.count(line.number);
    }
    Ok(action)
}

/// Parser of one line, which adds to the builder of its rank.
pub(super) struct Reader<'a, 'r, 's> {
    pub(super) verb: Verb,
    pub(super) fields: Fields<'a>,
    pub(super) state: &'r mut RankText,
    pub(super) builder: &'r mut RankBuilder<'s>,
    /// Number of ranks of the communicator.
    pub(super) size: u32,
}

impl<'a> Reader<'a, '_, '_> {
    #[inline]
    pub(super) fn action(&mut self) -> Result<Action, TextError> {
        match self.verb {
            Verb::Compute => Ok(Action::Compute { flops: self.amount("amount of computation")? }),
            Verb::Call(CallKind::Send, _) => self.send(),
            Verb::Call(CallKind::Recv, _) => self.recv(),
            Verb::Call(CallKind::Isend, _) => self.isend(),
            Verb::Call(CallKind::Irecv, _) => self.irecv(),
            Verb::Call(CallKind::Wait, _) => self.wait(),
            Verb::Call(CallKind::Test, _) => self.test(),
            Verb::Call(CallKind::Waitall, _) => Ok(self.builder.wait_all()),
            Verb::Init => {
                let datatype = if self.has_more() { Datatype::DOUBLE } else { Datatype::BYTE };
                self.state.set_default_type(datatype);
                Ok(Action::Init)
            }
            Verb::Finalize => Ok(Action::Finalize),
            Verb::Call(CallKind::SendRecv, _) => self.send_recv(),
            Verb::Sleep => Ok(Action::Sleep { seconds: self.amount("time to sleep")? }),
            Verb::Location => self.location(),
            // The calls on communicators; collectives and other calls are read elsewhere.
            _ => Ok(Action::Communicator),
        }
    }

    fn location(&mut self) -> Result<Action, TextError> {
        let file = self.next_field(Field::new("file name"))?;
        let line =
            self.integer_between(Field::new("line number"), 0, i64::from(i32::MAX), "a line number")?;
        Ok(Action::Location(self.builder.location(&String::from_utf8_lossy(file), line as u32)))
    }

    /// Reads the name and the arguments of a call that the replay does not model.
    fn unmodelled(&mut self) -> Result<Action, TextError> {
        let words: Vec<_> = self.fields.by_ref().map(String::from_utf8_lossy).collect();
        Ok(self.builder.call(&CallOp::Unmodelled(Unmodelled::new(&words.join(" "))?))?)
    }

    /// Returns whether fields are left.
    pub(super) fn has_more(&self) -> bool {
        self.fields.has_more()
    }

    /// Takes the next field.
    #[inline]
    pub(super) fn next_field(&mut self, field: Field) -> Result<&'a [u8], TextError> {
        self.fields.next().ok_or_else(|| TextError::MissingField { action: self.verb.name(), field })
    }

    /// Takes an integer from `low` to `high`.
    #[inline]
    pub(super) fn integer_between(
        &mut self,
        field: Field,
        low: i64,
        high: i64,
        expected: &'static str,
    ) -> Result<i64, TextError> {
        let found = self.next_field(field)?;
        match integer(found) {
            Some(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(invalid(field, found, expected)),
        }
    }

    /// Takes a count of elements.
    #[inline]
    pub(super) fn count(&mut self, field: Field) -> Result<u64, TextError> {
        self.integer_between(field, 0, MAX_BYTES as i64, "a whole number from 0 to 2^48")
            .map(|count| count as u64)
    }

    /// Takes a finite amount that is not negative.
    #[inline]
    pub(super) fn amount(&mut self, name: &'static str) -> Result<f64, TextError> {
        let field = Field::new(name);
        let found = self.next_field(field)?;
        match real(found) {
            // Adding zero turns -0 into 0, so that equal amounts have equal bits.
            Some(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount + 0.0),
            _ => Err(invalid(field, found, "a finite number that is not negative")),
        }
    }

    /// Takes a datatype, by default that of the rank.
    #[inline]
    pub(super) fn datatype(&mut self, name: &'static str) -> Result<Datatype, TextError> {
        if !self.has_more() {
            return self.default_type(name);
        }
        let field = Field::new(name);
        let found = self.integer_between(
            field,
            i64::from(i32::MIN),
            i64::from(i32::MAX),
            "the identifier of a datatype",
        )?;
        Datatype::from_id(found as i32).ok_or(TextError::UnknownDatatype { field, found })
    }

    /// Returns the rank's default datatype.
    pub(super) fn default_type(&self, name: &'static str) -> Result<Datatype, TextError> {
        let no_default =
            || TextError::NoDefaultDatatype { action: self.verb.name(), field: Field::new(name) };
        self.state.default_type.ok_or_else(no_default)
    }

    /// Converts a number to a world rank.
    #[inline]
    pub(super) fn rank_of(&self, field: Field, found: i64) -> Result<Rank, TextError> {
        rank_below(self.builder.ranks(), field, found)
    }

    /// Multiplies a count by the size of an element.
    #[inline]
    pub(super) fn bytes(&self, field: Field, count: u64, datatype: Datatype) -> Result<Bytes, TextError> {
        let size = datatype.size().get();
        match datatype.size().checked_mul(count) {
            Some(bytes) if bytes.get() <= MAX_BYTES => Ok(bytes),
            _ => Err(TextError::TooManyBytes { field, count, size }),
        }
    }
}

/// Converts a number to a rank below `ranks`.
#[inline]
pub(super) fn rank_below(ranks: u32, field: Field, found: i64) -> Result<Rank, TextError> {
    match u32::try_from(found) {
        Ok(number) if number < ranks => Ok(Rank::new(number)),
        _ => Err(TextError::PeerOutOfRange { field, found, ranks }),
    }
}

/// Makes the error that a field is not the expected number.
#[cold]
pub(super) fn invalid(field: Field, found: &[u8], expected: &'static str) -> TextError {
    TextError::InvalidNumber { field, found: String::from_utf8_lossy(found).into_owned(), expected }
}
