//! Reader of a shard as time-independent text.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};

use crate::deferred::Deferred;
use crate::header::ParsedHeader;
use crate::phrase::{Field, Fields, Phrase};
use crate::unit::{Kind, UNIT, Unit};

/// Maximum size of a phrase \[B\]: an `alltoallv` of a million ranks fits.
const MAX_PHRASE: u64 = 64 << 20;

/// Maximum size of the first line \[B\].
const MAX_HEADER: u64 = 4096;

/// Size of the text that is produced at once \[B\].
const CHUNK: usize = 64 << 10;

/// Last 16 bytes of a complete shard: the process has left MPI, and everything was written.
pub const COMPLETE_MARK: [u8; UNIT] = {
    let [head, amount] =
        Unit { amount: u64::from_le_bytes(*b"complete"), ..Unit::of_kind(Kind::End) }.words(false);
    ((head as u128) | (amount as u128) << 64).to_le_bytes()
};

/// Reads the actions of a shard as time-independent text, one line each, preceded by the header as a comment.
///
/// The text ends after the last complete record. The use of an undefined phrase, which no tracer writes, is an error.
#[derive(Debug)]
pub struct TextReader<R> {
    input: BufReader<R>,
    rank: u32,
    phrases: HashMap<u32, Vec<u8>>,
    text: Vec<u8>,
    /// Number of bytes of `text` that were read.
    consumed: usize,
    has_ended: bool,
}

impl<R: Read> TextReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// If the file cannot be read, or is no shard of this version.
    pub fn new(input: R) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(CHUNK, input);
        let mut text = Vec::new();
        Read::by_ref(&mut input).take(MAX_HEADER).read_until(b'\n', &mut text)?;
        match ParsedHeader::parse(&String::from_utf8_lossy(&text)) {
            ParsedHeader::Shard { rank, .. } => {
                Ok(Self { input, rank, phrases: HashMap::new(), text, consumed: 0, has_ended: false })
            }
            ParsedHeader::OtherVersion(found) => Err(invalid_data(format!(
                "found a shard of version {found}, expected {}; use the tracer that belongs to this program",
                ParsedHeader::VERSION
            ))),
            ParsedHeader::NotAShard => Err(invalid_data("found no first line of a shard".to_owned())),
        }
    }

    /// Fills the buffer with the text of the next records.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.consumed = 0;
        while self.text.len() < CHUNK && !self.has_ended {
            self.has_ended = self.record()?.is_none();
        }
        Ok(())
    }

    /// Reads a record and appends its line, if it is an action; returns `None` at the end.
    fn record(&mut self) -> io::Result<Option<()>> {
        let unit = self.unit()?.and_then(Unit::from_bytes);
        let Some((unit, has_deferred)) = unit.filter(|(unit, _)| unit.kind != Kind::End) else {
            return Ok(None);
        };
        if unit.kind == Kind::Phrase {
            return self.phrase(unit);
        }
        let later = match has_deferred {
            true => self.unit()?.map(Deferred::from_bytes),
            false => Some(Deferred::default()),
        };
        let Some(later) = later else { return Ok(None) };
        let Self { text, phrases, rank, .. } = self;
        let phrase = || {
            let bytes = phrases.get(&unit.index).map(Vec::as_slice).and_then(Fields::new);
            bytes.ok_or_else(|| invalid_data(format!("phrase {} is used and was not defined", unit.index)))
        };
        number(text, (*rank).into());
        text.push(b' ');
        match unit.kind {
            Kind::Init => text.extend(b"init"),
            Kind::Finalize => text.extend(b"finalize"),
            Kind::Compute => flops(text, f64::from_bits(unit.amount)),
            Kind::Wait => named(text, b"wait req", unit.slot.into()),
            Kind::Send | Kind::Isend | Kind::Recv | Kind::Irecv => message(text, unit, later, phrase()?.1)?,
            Kind::Call | Kind::Phrase | Kind::End => {
                let (name, fields) = phrase()?;
                text.extend(name);
                fields.for_each(|field| write_field(text, &field));
                if name == b"cancel" {
                    text.extend(if later.outcome == Deferred::CANCELLED {
                        &b" done=yes"[..]
                    } else {
                        b" done=no"
                    });
                }
            }
        }
        if let Some(nanos) = later.nanos {
            named(text, b" time", nanos as i64);
        }
        text.push(b'\n');
        Ok(Some(()))
    }

    fn phrase(&mut self, unit: Unit) -> io::Result<Option<()>> {
        if unit.amount > MAX_PHRASE {
            return Err(invalid_data(format!(
                "a phrase has {} bytes, expected at most {MAX_PHRASE}",
                unit.amount
            )));
        }
        let phrase = self.phrases.entry(unit.index).or_default();
        phrase.clear();
        let padded = unit.amount.next_multiple_of(UNIT as u64);
        // `take` instead of an allocation of this size: memory is bounded by the data that is really there.
        let read = Read::by_ref(&mut self.input).take(padded).read_to_end(phrase)?;
        phrase.truncate(unit.amount as usize);
        Ok((read as u64 == padded).then_some(()))
    }

    fn unit(&mut self) -> io::Result<Option<[u8; UNIT]>> {
        let mut bytes = [0; UNIT];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.consumed == self.text.len() {
            self.fill()?;
        }
        let len = buffer.len().min(self.text.len() - self.consumed);
        buffer[..len].copy_from_slice(&self.text[self.consumed..self.consumed + len]);
        self.consumed += len;
        Ok(len)
    }
}

/// Appends a message: peer, tag and size, with the actual values in place of wildcards.
fn message(text: &mut Vec<u8>, unit: Unit, later: Deferred, fields: Fields<'_>) -> io::Result<()> {
    let mut numbers = fields.map_while(|field| match field {
        Field::Number(number) => Some(number),
        _ => None,
    });
    let (Some(peer), Some(tag), Some(communicator)) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Err(invalid_data(format!("phrase {} is no {}", unit.index, Phrase::CHANNEL)));
    };
    let (name, posts): (&[u8], _) = match unit.kind {
        Kind::Send => (b"send", false),
        Kind::Isend => (b"isend", true),
        Kind::Recv => (b"recv", false),
        _ => (b"irecv", true),
    };
    text.extend(name);
    let tag = later.tag().map_or(tag, |tag| tag as i64);
    for field in [peer, tag, unit.amount as i64] {
        text.push(b' ');
        number(text, field);
    }
    if communicator != 0 {
        named(text, b" comm", communicator);
    }
    if posts {
        named(text, b" req", unit.slot.into());
    }
    if let Some(source) = later.source() {
        named(text, b" source", source as i64);
    }
    Ok(())
}

fn write_field(text: &mut Vec<u8>, field: &Field<'_>) {
    text.push(b' ');
    match *field {
        Field::Number(value) => number(text, value),
        Field::Named(key, value) => named(text, key, value),
        Field::List(key, values) => {
            text.extend(key);
            text.push(b'=');
            list(text, values);
        }
        Field::Word(key, value) => {
            text.extend(key);
            if !key.is_empty() {
                text.push(b'=');
            }
            text.extend(value);
        }
    }
}

fn number(text: &mut Vec<u8>, number: i64) {
    text.extend(itoa::Buffer::new().format(number).as_bytes());
}

fn named(text: &mut Vec<u8>, key: &[u8], value: i64) {
    text.extend(key);
    text.push(b'=');
    number(text, value);
}

/// Appends an amount of computation, exact to the last bit.
fn flops(text: &mut Vec<u8>, flops: f64) {
    text.extend(b"compute ");
    if flops.fract() == 0.0 && flops.abs() < 9e15 {
        number(text, flops as i64);
    } else {
        text.extend(format!("{flops:?}").as_bytes());
    }
}

/// Appends numbers as a list with runs of three and more as ranges; `-` if there are none.
fn list(text: &mut Vec<u8>, numbers: &[[u8; 8]]) {
    let at = |index: usize| i64::from_le_bytes(numbers[index]);
    if numbers.is_empty() {
        text.push(b'-');
    }
    let mut first = 0;
    while first < numbers.len() {
        if first > 0 {
            text.push(b',');
        }
        let (len, stride) = run(numbers.len() - first, |index| at(first + index));
        number(text, at(first));
        if len > 1 {
            text.push(b'-');
            number(text, at(first + len - 1));
        }
        if len > 1 && stride != 1 {
            text.push(b':');
            number(text, stride);
        }
        first += len;
    }
}

/// Returns the length and the stride of the arithmetic run at the beginning of the numbers; length 1 if it would have fewer
/// than three.
fn run(len: usize, at: impl Fn(usize) -> i64) -> (usize, i64) {
    if len < 3 {
        return (1, 1);
    }
    let stride = at(1).wrapping_sub(at(0));
    let more = (2..len).take_while(|&index| at(index).wrapping_sub(at(index - 1)) == stride).count();
    if more == 0 || stride == 0 { (1, 1) } else { (more + 2, stride) }
}

fn invalid_data(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ranges() {
        let values: [(&[i64], &str); 8] = [
            (&[], "-"),
            (&[4], "4"),
            (&[4, 5], "4,5"),
            (&[3, 0, 1, 2, 8, 12, 16], "3,0-2,8-16:4"),
            (&[7, 6, 5], "7-5:-1"),
            (&[2, 2, 2], "2,2,2"),
            (
                &[i64::MIN, i64::MAX, i64::MIN],
                "-9223372036854775808,9223372036854775807,-9223372036854775808",
            ),
            (&[0, 1, 2, 2, 2], "0-2,2,2"),
        ];
        for (numbers, expected) in values {
            let bytes: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
            let mut text = Vec::new();
            list(&mut text, &bytes);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
    }
}
