//! Splitting of a stream of text into lines.

use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memchr2};
use trace_mmap::{MAX_NANOS, TraceError};

use crate::error::InputError;
use crate::foreign::recognise;
use crate::format::HEAD;
use crate::text::fields::integer;
use crate::text::{Field, Stream, TextError};

/// Size of the buffer \[B\]; it grows with the longest line.
const BUFFER: usize = 256 << 10;

/// Size of the buffer for the first bytes \[B\]: most files of many ranks need no larger one.
const FIRST: usize = 4 << 10;

/// Length of the longest line \[B\]: an `alltoallv` of a million ranks fits.
const MAX_LINE: usize = 64 << 20;

/// A line that is neither empty nor a comment, without white space at its ends.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    /// Its text.
    pub(crate) text: &'a [u8],
    /// True if it contains an equals sign, and therefore may have named fields.
    pub(crate) has_equals: bool,
}

/// Key of the measured time, the last field of a line.
const TIME: &[u8] = b"time=";

impl<'a> Line<'a> {
    /// Makes a line of its text.
    pub(crate) fn new(number: u64, text: &'a [u8]) -> Self {
        Self { number, text, has_equals: memchr(b'=', text).is_some() }
    }

    /// Splits the measured time off the end of the line, if there is one \[ns\].
    ///
    /// # Errors
    /// The time is not a whole number of nanoseconds, or exceeds eleven days.
    #[inline]
    pub(crate) fn split_time(self) -> Result<(Self, Option<u64>), TextError> {
        if self.has_equals { self.find_time() } else { Ok((self, None)) }
    }

    fn find_time(self) -> Result<(Self, Option<u64>), TextError> {
        let start =
            self.text.iter().rposition(|byte| matches!(byte, b' ' | b'\t')).map_or(0, |space| space + 1);
        let (text, last) = self.text.split_at(start);
        let Some(found) = last.strip_prefix(TIME) else { return Ok((self, None)) };
        let nanos = integer(found).and_then(|nanos| u64::try_from(nanos).ok());
        let Some(nanos) = nanos.filter(|nanos| *nanos <= MAX_NANOS) else {
            return Err(invalid_time(String::from_utf8_lossy(found).into_owned()));
        };
        let text = text.trim_ascii_end();
        Ok((Self::new(self.number, text), Some(nanos)))
    }
}

/// Checks a measured time \[ns\].
pub(crate) fn check_nanos(nanos: Option<u64>) -> Result<(), TextError> {
    match nanos {
        Some(nanos) if nanos > MAX_NANOS => Err(invalid_time(nanos.to_string())),
        _ => Ok(()),
    }
}

fn invalid_time(found: String) -> TextError {
    let expected = "a whole number of nanoseconds from 0 to 999999999999999";
    TextError::InvalidNumber { field: Field::new("time"), found, expected }
}

/// The lines of a stream that are neither empty nor comments.
pub(crate) struct Lines<'a> {
    stream: Stream<'a>,
    buffer: Vec<u8>,
    /// Part of the buffer that was read and not yet returned as a line.
    unread: Range<usize>,
    /// Length of the start of `unread` that is known to contain no newline \[B\].
    scanned: usize,
    /// True if the current line, as far as it is scanned, contains an equals sign.
    has_equals: bool,
    number: u64,
    has_ended: bool,
    /// The last line, if it has no newline, as a part of the buffer.
    unterminated: Option<Range<usize>>,
}

impl<'a> Lines<'a> {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        Self::new(Stream::open(path)?)
    }

    /// Starts at the first line of a stream.
    ///
    /// # Errors
    /// The stream cannot be read or has another format.
    pub(crate) fn new(stream: Stream<'a>) -> Result<Self, TraceError> {
        let buffer = vec![0; FIRST];
        let mut lines = Self {
            stream,
            buffer,
            unread: 0..0,
            scanned: 0,
            has_equals: false,
            number: 0,
            has_ended: false,
            unterminated: None,
        };
        // A decoder may return its first bytes a few at a time.
        while lines.unread.len() < HEAD && !lines.has_ended {
            lines.fill()?;
        }
        match recognise(&lines.buffer[lines.unread.clone()]) {
            Some(found) => Err(InputError::Foreign { file: lines.stream.file().to_path_buf(), found }.into()),
            None => Ok(lines),
        }
    }

    /// Returns the name of the file.
    pub(crate) fn file(&self) -> &Path {
        self.stream.file()
    }

    /// Returns the next line that is neither empty nor a comment, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        while let Some(range) = self.next_range()? {
            let range = trim(&self.buffer, range);
            if !range.is_empty() && self.buffer[range.start] != b'#' {
                return Ok(Some(self.line(range)));
            }
        }
        Ok(None)
    }

    /// Returns the next line, also if it is a comment, or `None` at the end.
    pub(crate) fn next_or_comment(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        let range = self.next_range()?.map(|range| trim(&self.buffer, range));
        Ok(range.map(|range| self.line(range)))
    }

    /// Returns the last line of a file, which was read, if it has no newline and may have lost its end: unless it is a comment.
    pub(crate) fn unterminated(&self) -> Option<Line<'_>> {
        let range = trim(&self.buffer, self.unterminated.clone()?);
        let line = self.line(range);
        Some(line).filter(|line| self.stream.is_file() && !line.text.is_empty() && line.text[0] != b'#')
    }

    fn line(&self, range: Range<usize>) -> Line<'_> {
        Line { number: self.number, text: &self.buffer[range], has_equals: self.has_equals }
    }

    /// Makes an error of this file.
    pub(crate) fn error(&self, line: u64, kind: TextError) -> TraceError {
        super::error(self.file(), line, kind)
    }

    #[inline]
    fn next_range(&mut self) -> Result<Option<Range<usize>>, TraceError> {
        self.has_equals = false;
        loop {
            let from = self.unread.start + self.scanned;
            if let Some(length) = memchr2(b'\n', b'=', &self.buffer[from..self.unread.end]) {
                let end = from + length;
                if self.buffer[end] == b'\n' {
                    return Ok(Some(self.take(end, end + 1)));
                }
                self.has_equals = true;
                self.scanned += length + 1;
                continue;
            }
            self.scanned = self.unread.len();
            if self.has_ended {
                if self.unread.is_empty() {
                    return Ok(None);
                }
                let last = self.unread.clone();
                self.unterminated = Some(last.clone());
                return Ok(Some(self.take(last.end, last.end)));
            }
            self.fill()?;
        }
    }

    fn take(&mut self, end: usize, next: usize) -> Range<usize> {
        let line = self.unread.start..end;
        self.unread.start = next;
        self.scanned = 0;
        self.number += 1;
        line
    }

    /// Reads more of the stream after the unread part.
    #[cold]
    fn fill(&mut self) -> Result<(), TraceError> {
        let was_full = self.unread.end == self.buffer.len();
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.len() > MAX_LINE {
            return Err(self.error(self.number + 1, TextError::LineTooLong { limit: MAX_LINE }));
        }
        if self.unread.end == self.buffer.len() || was_full && self.buffer.len() < BUFFER {
            self.buffer.resize((2 * self.buffer.len()).max(BUFFER), 0);
        }
        let read = self.stream.read(&mut self.buffer[self.unread.end..])?;
        self.unread.end += read;
        self.has_ended = read == 0;
        Ok(())
    }
}

/// Cuts white space off both ends.
#[inline]
fn trim(buffer: &[u8], mut range: Range<usize>) -> Range<usize> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r');
    while range.start < range.end && is_space(buffer[range.start]) {
        range.start += 1;
    }
    while range.start < range.end && is_space(buffer[range.end - 1]) {
        range.end -= 1;
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(u64, String)> {
        let mut lines = Lines::new(Stream::from_text(Path::new("t"), text)).expect("text");
        let mut found = Vec::new();
        while let Some(line) = lines.next().expect("short lines") {
            found.push((line.number, String::from_utf8_lossy(line.text).into_owned()));
        }
        found
    }

    #[test]
    fn comments_and_empty_lines_count_but_do_not_show() {
        let found = split("# head\r\n\n \t 0 init \r\n#0 barrier\n0 finalize");
        assert_eq!(found, [(3, "0 init".to_owned()), (5, "0 finalize".to_owned())]);
    }

    #[test]
    fn lines_longer_than_the_buffer_stay_whole() {
        let long = "x".repeat(3 * BUFFER + 7);
        let found = split(&format!("a\n{long}\nb\n"));
        assert_eq!(found, [(1, "a".to_owned()), (2, long), (3, "b".to_owned())]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let text = "x".repeat(2 * MAX_LINE);
        let mut lines = Lines::new(Stream::from_text(Path::new("t"), &text)).expect("text");
        let result = lines.next().map(|line| line.map(|line| line.number));
        let expected = TextError::LineTooLong { limit: MAX_LINE };
        assert_eq!(result.expect_err("a line too long").kind(), Some(&expected));
    }
}
