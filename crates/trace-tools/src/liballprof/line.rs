//! A line, and its fields.

use trace_mmap::table::CollectiveKind;
use trace_mmap::{Location, TraceError};

use crate::timed::Function;

/// A line of a trace of liballprof is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiballprofError {
    /// A line is no call.
    #[error("found \"{found}\", expected a call, such as MPI_Barrier:begin:handle,rank,size:end")]
    NoCall {
        /// The begin of the line.
        found: String,
    },
    /// A call has fewer arguments than its function.
    #[error("{name} ends before its {expected}")]
    MissingArgument {
        /// The function.
        name: String,
        /// The argument.
        expected: &'static str,
    },
    /// An argument is no number.
    #[error("{name} has the {expected} \"{found}\", expected {form}")]
    Argument {
        /// The function.
        name: String,
        /// The argument.
        expected: &'static str,
        /// The text found.
        found: String,
        /// Its form.
        form: &'static str,
    },
    /// A call is on a communicator that none of the calls before it can have made.
    #[error(
        "{name} is on the communicator {handle} of {size} ranks; no call before it has made one, or by a function whose members the \
         trace does not tell"
    )]
    Communicator {
        /// The function.
        name: String,
        /// The handle.
        handle: i64,
        /// The number of ranks in the call.
        size: i64,
    },
    /// A communicator has another number of ranks than the calls that made it give it.
    #[error("{name} is on a communicator of {found} ranks, which has {expected} by the calls that made it")]
    Members {
        /// The function.
        name: String,
        /// The number of ranks in the call.
        found: i64,
        /// The number of ranks by the calls.
        expected: u32,
    },
}

/// A call.
pub(super) struct CallLine<'a> {
    pub(super) line: u64,
    pub(super) name: &'a str,
    /// Times \[ns\].
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
    arguments: Vec<&'a [u8]>,
    /// Index of the next argument.
    next: usize,
}

/// A communicator in a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawCommunicator {
    pub(super) handle: i64,
    pub(super) size: i64,
}

impl<'a> CallLine<'a> {
    /// Splits a line.
    pub(super) fn parse(line: u64, text: &'a [u8]) -> Result<Self, LiballprofError> {
        let no_call = || LiballprofError::NoCall { found: excerpt(text) };
        let mut fields = text.split(|byte| *byte == b':');
        let name = fields.next().and_then(|name| str::from_utf8(name).ok());
        let name =
            name.filter(|name| name.starts_with("MPI_") && name.bytes().all(|byte| byte.is_ascii_graphic()));
        let (name, begin) = name.zip(fields.next()).ok_or_else(no_call)?;
        let mut arguments: Vec<_> = fields.collect();
        let end = arguments.pop().ok_or_else(no_call)?;
        let time = |field: &[u8]| match field {
            b"-" => Ok(None),
            digits => nanos(digits).map(Some).ok_or_else(|| LiballprofError::Argument {
                name: name.to_owned(),
                expected: "time",
                found: excerpt(digits),
                form: "microseconds, such as 1298365588610809 or 12.5",
            }),
        };
        Ok(Self { line, name, begin: time(begin)?, end: time(end)?, arguments, next: 0 })
    }

    /// Adds the place to an error.
    pub(super) fn locate(file: &std::path::Path, line: u64, kind: LiballprofError) -> TraceError {
        TraceError::Action { location: Location { file: file.to_path_buf(), line }, kind: kind.into() }
    }

    /// Returns the number of arguments that are left.
    pub(super) fn left(&self) -> usize {
        self.arguments.len() - self.next
    }

    fn text(&mut self, expected: &'static str) -> Result<&'a [u8], LiballprofError> {
        let missing = || LiballprofError::MissingArgument { name: self.name.to_owned(), expected };
        let argument = *self.arguments.get(self.next).ok_or_else(missing)?;
        self.next += 1;
        Ok(argument)
    }

    /// Skips arguments.
    pub(super) fn skip(&mut self, count: usize, expected: &'static str) -> Result<(), LiballprofError> {
        (0..count).try_for_each(|_| self.text(expected).map(|_| ()))
    }

    /// Reads a number or an address.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<i64, LiballprofError> {
        let found = self.text(expected)?;
        parse(found).ok_or_else(|| self.invalid(expected, found, "a whole number"))
    }

    /// Reads a datatype and returns its size \[B\]: `handle,size,extent`.
    pub(super) fn size(&mut self) -> Result<u64, LiballprofError> {
        let (found, size) = self.parts("datatype", 1, "handle,size,extent")?;
        u64::try_from(size).map_err(|_| self.invalid("datatype", found, "a size that is not negative"))
    }

    /// Reads a number of elements.
    pub(super) fn count(&mut self, expected: &'static str) -> Result<u64, LiballprofError> {
        let found = self.text(expected)?;
        let count = parse(found).and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| self.invalid(expected, found, "a whole number that is not negative"))
    }

    /// Returns the communicator of a call, if it has one, without reading it. Then it is the last argument of three numbers, but for
    /// functions that only ask for it or make another one: there it is the first one.
    pub(super) fn peek_communicator(&self) -> Option<RawCommunicator> {
        let asks = ["MPI_Comm_", "MPI_Cart_", "MPI_Graph_", "MPI_Topo_"];
        let index = match Function::of(self.name) {
            _ if asks.iter().any(|begin| self.name.starts_with(begin)) => 0,
            Function::Collective { kind: CollectiveKind::Barrier, .. } => 0,
            Function::SendInit(_) | Function::RecvInit | Function::Collective { .. } => self.last_triple()?,
            function if function.sends() || function.receives() => self.last_triple()?,
            _ => return None,
        };
        let parts: Vec<_> = self.arguments.get(index)?.split(|byte| *byte == b',').map(parse).collect();
        let [Some(handle), _, Some(size)] = parts[..] else { return None };
        Some(RawCommunicator { handle, size })
    }

    /// Returns the index of the last argument of three numbers but the first one, which is a datatype.
    fn last_triple(&self) -> Option<usize> {
        let is_triple =
            |index: &usize| self.arguments[*index].iter().filter(|byte| **byte == b',').count() == 2;
        (0..self.arguments.len()).filter(is_triple).skip(1).last()
    }

    /// Reads a communicator: `handle,rank,size`. The rank is not that of the file in traces that were copied.
    pub(super) fn communicator(&mut self) -> Result<RawCommunicator, LiballprofError> {
        let at = self.next;
        let (_, handle) = self.parts("communicator", 0, "handle,rank,size")?;
        self.next = at;
        Ok(RawCommunicator { handle, size: self.parts("communicator", 2, "handle,rank,size")?.1 })
    }

    fn parts(
        &mut self,
        expected: &'static str,
        index: usize,
        form: &'static str,
    ) -> Result<(&'a [u8], i64), LiballprofError> {
        let found = self.text(expected)?;
        let parts: Vec<_> = found.split(|byte| *byte == b',').collect();
        let part = parts.get(index).filter(|_| parts.len() == 3).and_then(|part| parse(part));
        part.map(|part| (found, part)).ok_or_else(|| self.invalid(expected, found, form))
    }

    /// Reads a vector of numbers that follows its address.
    pub(super) fn vector(&mut self, expected: &'static str) -> Result<Vec<u64>, LiballprofError> {
        self.number(expected)?;
        let found = self.text(expected)?;
        let counts = found
            .split(|byte| *byte == b',')
            .map(|count| u64::try_from(parse(count)?).ok())
            .collect::<Option<_>>();
        counts.ok_or_else(|| self.invalid(expected, found, "numbers with commas between them"))
    }

    fn invalid(&self, expected: &'static str, found: &[u8], form: &'static str) -> LiballprofError {
        LiballprofError::Argument { name: self.name.to_owned(), expected, found: excerpt(found), form }
    }
}

/// Parses a number; addresses above 2^63 are negative.
fn parse(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|address| address as i64))
}

/// Parses microseconds \[ns\].
fn nanos(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let (true, true) = (is_number(whole), is_number(fraction)) else { return None };
    let nanos = format!("{fraction:0<3}")[..3].parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(nanos)
}

fn excerpt(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    text[..text.len().min(LONGEST)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds() {
        let cases: [(&[u8], Option<u64>); 7] = [
            (b"12", Some(12_000)),
            (b"1.5", Some(1500)),
            (b"1298365588610809.0625", Some(1_298_365_588_610_809_062)),
            (b"1.", None),
            (b"-3", None),
            (b"1e5", None),
            (b"99999999999999999999", None),
        ];
        for (text, expected) in cases {
            assert_eq!(nanos(text), expected, "{}", text.escape_ascii());
        }
    }
}
