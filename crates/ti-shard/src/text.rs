//! Shards as time-independent text.

use std::io::{self, Read};

use crate::phrase::Field;
use crate::reader::{Action, Message, Record, ShardReader};
use crate::unit::Kind;

/// Size of the text that is produced at once \[B\].
const CHUNK: usize = 64 << 10;

/// Reads the actions of a shard as time-independent text, one line each, preceded by the header as a comment.
#[derive(Debug)]
pub struct TextReader<R> {
    records: ShardReader<R>,
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
        let records = ShardReader::new(input)?;
        let text = records.header().to_vec();
        Ok(Self { records, text, consumed: 0, has_ended: false })
    }

    /// Fills the buffer with the text of the next records.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.consumed = 0;
        let rank = self.records.rank().into();
        while self.text.len() < CHUNK && !self.has_ended {
            match self.records.read_record()? {
                Some(record) => write_line(&mut self.text, rank, &record),
                None => self.has_ended = true,
            }
        }
        Ok(())
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

fn write_line(text: &mut Vec<u8>, rank: i64, record: &Record<'_>) {
    number(text, rank);
    text.push(b' ');
    match record.action {
        Action::Init => text.extend(b"init"),
        Action::Finalize => text.extend(b"finalize"),
        Action::Compute { flops: amount } => flops(text, amount),
        Action::Wait { request } => named(text, b"wait req", request.into()),
        Action::Message(message) => write_message(text, message),
        Action::Call { text: call, cancelled } => {
            text.extend(call);
            if let Some(cancelled) = cancelled {
                text.extend(if cancelled { &b" done=yes"[..] } else { b" done=no" });
            }
        }
    }
    if let Some(nanos) = record.nanos {
        named(text, b" time", nanos as i64);
    }
    text.push(b'\n');
}

fn write_message(text: &mut Vec<u8>, message: Message) {
    let name: &[u8] = match message.kind {
        Kind::Send => b"send",
        Kind::Isend => b"isend",
        Kind::Recv => b"recv",
        _ => b"irecv",
    };
    text.extend(name);
    for field in [message.peer, message.tag, message.bytes as i64] {
        text.push(b' ');
        number(text, field);
    }
    if message.communicator != 0 {
        named(text, b" comm", message.communicator);
    }
    if let Some(request) = message.request {
        named(text, b" req", request.into());
    }
    if let Some(source) = message.source {
        named(text, b" source", source.into());
    }
}

/// Appends a field, after a space.
pub(crate) fn write_field(text: &mut Vec<u8>, field: &Field<'_>) {
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
