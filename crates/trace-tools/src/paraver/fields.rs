//! Fields of a line, separated by colons.

use super::ParaverError;

/// The fields of a line that are not read yet.
pub(super) struct Fields<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Starts at the first field of a line.
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: Some(line) }
    }

    /// Returns the next field as text.
    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a [u8], ParaverError> {
        let rest = self.rest.ok_or(ParaverError::MissingField { field })?;
        let (text, rest) = match memchr::memchr(b':', rest) {
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(text)
    }

    /// Reads the next field as a whole number.
    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, ParaverError> {
        const EXPECTED: &str = "a whole number below 2^64";
        let found = self.text(field)?;
        parse(found).ok_or_else(|| invalid(field, found, EXPECTED))
    }

    /// Reads a number from 1 to a limit.
    pub(super) fn index(&mut self, field: &'static str, limit: u64) -> Result<u64, ParaverError> {
        match self.number(field)? {
            found if (1..=limit).contains(&found) => Ok(found),
            found => Err(ParaverError::OutOfRange { field, found, limit }),
        }
    }

    /// Skips a number, which may be negative.
    pub(super) fn skip_number(&mut self, field: &'static str) -> Result<(), ParaverError> {
        let found = self.text(field)?;
        let digits = found.strip_prefix(b"-").unwrap_or(found);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(invalid(field, found, "a whole number"));
        }
        Ok(())
    }

    /// Returns whether there are no more fields.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_none()
    }

    /// Checks that there are no more fields.
    pub(super) fn finish(self) -> Result<(), ParaverError> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(ParaverError::ExtraField { found: excerpt(rest) }),
        }
    }
}

/// Parses a whole number of decimal digits only.
pub(super) fn parse(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit).then_some(text)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Makes the error that a field is no number of the expected kind.
#[cold]
pub(super) fn invalid(field: &'static str, found: &[u8], expected: &'static str) -> ParaverError {
    ParaverError::InvalidNumber { field, found: excerpt(found), expected }
}

/// Returns the start of a text for an error.
pub(super) fn excerpt(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    match text.get(..LONGEST) {
        Some(start) => format!("{}...", start.escape_ascii()),
        None => text.escape_ascii().to_string(),
    }
}
