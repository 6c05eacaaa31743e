//! Phrases: interned fields of actions, to which records refer by number.

use crate::unit::UNIT;

const NUMBER: u8 = 0;
const NAMED: u8 = 1;
const LIST: u8 = 2;
const WORD: u8 = 3;

/// Encoded fields of an action, or of a channel of messages.
///
/// The name comes first, then the fields, each with a type byte: 0 and a number; 1, a key and a number; 2, a key, a count,
/// and numbers; 3, a key and a text, which stands alone if the key is empty. Names and keys are preceded by their length in
/// one byte, counts and text lengths have four bytes; numbers have eight, signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase(Vec<u8>);

impl Phrase {
    /// Name of a phrase that is a channel: peer, tag and communicator follow.
    pub const CHANNEL: &'static str = "channel";

    /// Returns a phrase with the name of an action, of at most 255 bytes.
    pub fn new(name: &str) -> Self {
        let mut phrase = Self::default();
        phrase.begin(name);
        phrase
    }

    /// Clears the phrase and begins it with the name of an action.
    pub fn begin(&mut self, name: &str) {
        self.0.clear();
        self.short(name);
    }

    /// Appends a number.
    #[inline]
    pub fn number(&mut self, number: i64) {
        self.0.push(NUMBER);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a number with a key.
    #[inline]
    pub fn named(&mut self, key: &str, number: i64) {
        self.0.push(NAMED);
        self.short(key);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a list of numbers with a key.
    pub fn list<T: Copy + Into<i64>>(&mut self, key: &str, numbers: &[T]) {
        self.0.push(LIST);
        self.short(key);
        self.0.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
        for number in numbers {
            self.0.extend_from_slice(&(*number).into().to_le_bytes());
        }
    }

    /// Appends a text with a key, or without one if that is empty. The text has neither white space nor control characters.
    pub fn word(&mut self, key: &str, text: &str) {
        self.0.push(WORD);
        self.short(key);
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn short(&mut self, text: &str) {
        debug_assert!(text.len() <= 255);
        self.0.push(text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes, padded with zeros to a whole unit.
    pub fn padded(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.resize(self.0.len().next_multiple_of(UNIT), 0);
        bytes
    }
}

/// A field of a phrase.
pub(crate) enum Field<'a> {
    Number(i64),
    Named(&'a [u8], i64),
    List(&'a [u8], &'a [[u8; 8]]),
    Word(&'a [u8], &'a [u8]),
}

/// Decoder of a phrase, an iterator over its fields; it ends at the first malformed byte.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Returns the name, and a decoder of the fields behind it.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<(&'a [u8], Self)> {
        let mut fields = Self(bytes);
        Some((fields.short()?, fields))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let len = *self.0.first()?;
        self.0 = &self.0[1..];
        self.take(len.into())
    }

    fn len(&mut self) -> Option<usize> {
        let bytes = self.0.first_chunk::<4>().copied()?;
        self.0 = &self.0[4..];
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn number(&mut self) -> Option<i64> {
        let bytes = self.0.first_chunk::<8>().copied()?;
        self.0 = &self.0[8..];
        Some(i64::from_le_bytes(bytes))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let kind = self.take(1)?[0];
        Some(match kind {
            NUMBER => Field::Number(self.number()?),
            NAMED => Field::Named(self.short()?, self.number()?),
            LIST => {
                let key = self.short()?;
                let len = self.len()?.checked_mul(8)?;
                Field::List(key, self.take(len)?.as_chunks().0)
            }
            WORD => {
                let key = self.short()?;
                let len = self.len()?;
                Field::Word(key, self.take(len)?)
            }
            _ => return None,
        })
    }
}
