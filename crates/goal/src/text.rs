//! GOAL text: parser and writer.
//!
//! ```text
//! file       = "num_ranks" INT { "rank" INT "{" { line } "}" }
//! line       = [ LABEL ":" ] operation | LABEL ( "requires" | "irequires" ) LABEL
//! operation  = "send" INT "b" "to" INT      [ "tag" TAG ] [ "cpu" INT ] [ "nic" INT ]
//!            | "recv" INT "b" "from" SOURCE [ "tag" TAG ] [ "cpu" INT ] [ "nic" INT ]
//!            | "calc" INT                                 [ "cpu" INT ]
//! SOURCE     = INT | "-1"                   TAG = INT | "-1"
//! LABEL      = letter { letter | digit | "_" }
//! ```
//!
//! An operation or dependency ends with its line. Comments, `// to the end of the line` and `/* to here */`, may stand
//! between lines. White space is needed only after a word.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::error::{TextError, TextProblem};
use crate::schedule::{After, Kind, Operation, RankBuilder, Schedule, ScheduleBuilder};

/// Parses a schedule from GOAL text, in one pass.
///
/// ```
/// let text = b"num_ranks 2\nrank 0 {\n l1: calc 700\n l2: send 8b to 1 tag 5\n l2 requires l1\n}\n\
///     rank 1 {\n recv 8b from 0 tag 5\n}\n";
/// let schedule = goal::read_text(text)?;
/// assert_eq!(schedule.extent().operations, 3);
/// # Ok::<(), goal::TextError>(())
/// ```
///
/// # Errors
/// Fails at the first mistake, with its line and column.
pub fn read_text(text: &[u8]) -> Result<Schedule, TextError> {
    let mut parser = Parser { scanner: Scanner { text, at: 0 }, labels: FxHashMap::default() };
    parser.file().map_err(|fault| {
        let before = &text[..fault.at];
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        TextError { line, column: (fault.at - start) as u64 + 1, problem: fault.problem }
    })
}

/// Writes a schedule as GOAL text from which [`read_text`] reads the same schedule.
///
/// # Errors
/// Fails if the writer fails.
pub fn write_text(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    let ranks = schedule.extent().ranks;
    writeln!(out, "num_ranks {ranks}")?;
    for rank in 0..ranks {
        writeln!(out, "\nrank {rank} {{")?;
        for (number, operation) in (1..).zip(schedule.operations(rank)) {
            write_operation(number, &operation, out)?;
        }
        for (on, operation, after) in schedule.dependencies(rank) {
            let word = if after == After::End { "requires" } else { "irequires" };
            writeln!(out, "l{} {word} l{}", operation + 1, on + 1)?;
        }
        writeln!(out, "}}")?;
    }
    Ok(())
}

fn write_operation(number: u64, operation: &Operation, out: &mut impl Write) -> io::Result<()> {
    let Operation { kind, size, peer, tag, cpu, nic } = *operation;
    let any = |number: Option<u32>| number.map_or(-1, i64::from);
    write!(out, "l{number}: ")?;
    match kind {
        Kind::Calculate => write!(out, "calc {size}")?,
        Kind::Send => write!(out, "send {size}b to {} tag {}", any(peer), any(tag))?,
        Kind::Receive => write!(out, "recv {size}b from {} tag {}", any(peer), any(tag))?,
    }
    if cpu > 0 {
        write!(out, " cpu {cpu}")?;
    }
    if nic > 0 && kind != Kind::Calculate {
        write!(out, " nic {nic}")?;
    }
    writeln!(out)
}

/// A mistake and its byte offset.
struct Fault {
    at: usize,
    problem: TextProblem,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    /// Operation numbers of the current rank by label.
    labels: FxHashMap<&'a [u8], u32>,
}

impl<'a> Parser<'a> {
    fn file(&mut self) -> Result<Schedule, Fault> {
        self.scanner.skip_trivia()?;
        self.scanner.expect(b"num_ranks", "\"num_ranks\"")?;
        let ranks = self.scanner.number(u64::from(u32::MAX) - 1)? as u32;
        let mut schedule = ScheduleBuilder::new(ranks);
        let mut rank = RankBuilder::default();
        while schedule.next_rank() < ranks {
            self.scanner.skip_trivia()?;
            self.scanner.expect(b"rank", "\"rank\"")?;
            let at = self.scanner.skip_blanks();
            let found = self.scanner.number(u64::MAX)?;
            let expected = schedule.next_rank();
            if found != u64::from(expected) {
                return Err(Fault { at, problem: TextProblem::RankOrder { found, expected } });
            }
            self.scanner.expect(b"{", "\"{\"")?;
            rank.clear();
            self.rank(&mut rank)?;
            schedule.push(&rank).map_err(|error| Fault { at, problem: TextProblem::Schedule(error) })?;
        }
        self.scanner.skip_trivia()?;
        if self.scanner.peek().is_some() {
            return Err(self.scanner.unexpected("the end of the text: all ranks were there"));
        }
        let at = self.scanner.at;
        schedule.finish().map_err(|error| Fault { at, problem: TextProblem::Schedule(error) })
    }

    /// Reads the lines of a rank and the closing brace.
    fn rank(&mut self, rank: &mut RankBuilder) -> Result<(), Fault> {
        self.labels.clear();
        loop {
            self.scanner.skip_trivia()?;
            let at = self.scanner.at;
            if self.scanner.accept(b"}") {
                return Ok(());
            }
            let Some(word) = self.scanner.word() else {
                return Err(self.scanner.unexpected("an operation, a label or \"}\""));
            };
            if let Some(kind) = kind(word) {
                rank.push(self.operation(kind)?);
            } else {
                self.labelled(word, at, rank)?;
            }
            self.scanner.line_end()?;
        }
    }

    /// Reads the rest of a line that starts with a label: a definition or a dependency.
    fn labelled(&mut self, label: &'a [u8], at: usize, rank: &mut RankBuilder) -> Result<(), Fault> {
        self.scanner.skip_blanks();
        if self.scanner.accept(b":") {
            return self.definition(label, at, rank);
        }
        let after = if self.scanner.accept(b"requires") {
            After::End
        } else if self.scanner.accept(b"irequires") {
            After::Start
        } else {
            return Err(self.scanner.unexpected("\":\", \"requires\" or \"irequires\""));
        };
        let other_at = self.scanner.skip_blanks();
        let other = self.scanner.word().ok_or_else(|| self.scanner.unexpected("a label"))?;
        let (operation, on) = (self.lookup(label, at)?, self.lookup(other, other_at)?);
        rank.depend(operation, on, after);
        Ok(())
    }

    fn definition(&mut self, label: &'a [u8], at: usize, rank: &mut RankBuilder) -> Result<(), Fault> {
        self.scanner.skip_blanks();
        let before = self.scanner.at;
        let kind = self.scanner.word().and_then(kind).ok_or_else(|| {
            self.scanner.at = before;
            self.scanner.unexpected("\"send\", \"recv\" or \"calc\"")
        })?;
        let number = rank.push(self.operation(kind)?);
        match self.labels.insert(label, number) {
            None => Ok(()),
            Some(_) => Err(Fault { at, problem: TextProblem::DuplicateLabel(lossy(label)) }),
        }
    }

    fn lookup(&self, label: &[u8], at: usize) -> Result<u32, Fault> {
        let unknown = || Fault { at, problem: TextProblem::UnknownLabel(lossy(label)) };
        self.labels.get(label).copied().ok_or_else(unknown)
    }

    /// Reads the rest of an operation after its keyword.
    fn operation(&mut self, kind: Kind) -> Result<Operation, Fault> {
        let scanner = &mut self.scanner;
        let mut operation = Operation { kind, ..Operation::calculate(scanner.number(u64::MAX)?) };
        if kind == Kind::Calculate {
            operation.cpu = scanner.option(b"cpu")?;
            return Ok(operation);
        }
        scanner.expect(b"b", "\"b\"")?;
        match kind {
            Kind::Send => scanner.expect(b"to", "\"to\"")?,
            _ => scanner.expect(b"from", "\"from\"")?,
        }
        operation.peer = match kind {
            Kind::Send => Some(scanner.number(u64::from(u32::MAX) - 1)? as u32),
            _ => scanner.number_or_any()?,
        };
        scanner.skip_blanks();
        operation.tag = if scanner.accept(b"tag") { scanner.number_or_any()? } else { Some(0) };
        operation.cpu = scanner.option(b"cpu")?;
        operation.nic = scanner.option(b"nic")?;
        Ok(operation)
    }
}

fn kind(word: &[u8]) -> Option<Kind> {
    match word {
        b"send" => Some(Kind::Send),
        b"recv" => Some(Kind::Receive),
        b"calc" => Some(Kind::Calculate),
        _ => None,
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Cursor in the text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips blanks and returns the new offset.
    #[inline]
    fn skip_blanks(&mut self) -> usize {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at
    }

    /// Skips blanks, line ends and comments.
    fn skip_trivia(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let len = match rest.get(1) {
            Some(b'/') => rest.iter().position(|&byte| byte == b'\n').or(Some(rest.len())),
            Some(b'*') => rest[2..].windows(2).position(|pair| pair == b"*/").map(|end| end + 4),
            _ => return Err(self.unexpected("\"//\" or \"/*\"")),
        };
        let endless = || {
            let found = "an unterminated comment".to_owned();
            Fault { at: self.at, problem: TextProblem::Unexpected { found, expected: "a closing \"*/\"" } }
        };
        self.at += len.ok_or_else(endless)?;
        Ok(())
    }

    /// Reads a word, if one starts here.
    #[inline]
    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = &self.text[self.at..];
        rest.first().filter(|byte| byte.is_ascii_alphabetic())?;
        let len = rest.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'));
        let word = &rest[..len.unwrap_or(rest.len())];
        self.at += word.len();
        Some(word)
    }

    /// Consumes these bytes if the text continues with them; returns true if so.
    #[inline]
    fn accept(&mut self, bytes: &[u8]) -> bool {
        let is_here = self.text[self.at..].starts_with(bytes);
        self.at += if is_here { bytes.len() } else { 0 };
        is_here
    }

    #[inline]
    fn expect(&mut self, bytes: &[u8], expected: &'static str) -> Result<(), Fault> {
        self.skip_blanks();
        if self.accept(bytes) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    #[inline]
    fn number(&mut self, most: u64) -> Result<u64, Fault> {
        let at = self.skip_blanks();
        let mut value = Some(0_u64);
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == at {
            return Err(self.unexpected("a number"));
        }
        let found = || lossy(&self.text[at..self.at]);
        let beyond = || Fault { at, problem: TextProblem::Number { found: found(), most } };
        value.filter(|&value| value <= most).ok_or_else(beyond)
    }

    /// Reads a number, or -1 for any.
    fn number_or_any(&mut self) -> Result<Option<u32>, Fault> {
        self.skip_blanks();
        if self.accept(b"-1") {
            return Ok(None);
        }
        Ok(Some(self.number(u64::from(u32::MAX) - 1)? as u32))
    }

    /// Reads an option, a keyword with a number; returns 0 if the keyword is absent.
    fn option(&mut self, word: &[u8]) -> Result<u8, Fault> {
        self.skip_blanks();
        if !self.accept(word) {
            return Ok(0);
        }
        Ok(self.number(u8::MAX.into())? as u8)
    }

    /// Checks that the line ends here, up to comments.
    fn line_end(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b'\n') => return Ok(()),
                Some(b'\r') if self.text.get(self.at + 1) == Some(&b'\n') => return Ok(()),
                Some(b'/') => self.skip_comment()?,
                Some(_) => return Err(self.unexpected("the end of the line (or an option before it)")),
            }
        }
    }

    /// Returns the error for the text found here.
    fn unexpected(&self, expected: &'static str) -> Fault {
        const SHOWN: usize = 20;
        let rest = &self.text[self.at.min(self.text.len())..];
        let ends = |byte: &u8| byte.is_ascii_whitespace();
        let len = rest.iter().take(SHOWN).position(ends).unwrap_or(rest.len().min(SHOWN));
        let found = match rest.first() {
            None => "the end of the text".to_owned(),
            Some(b'\n' | b'\r') => "the end of the line".to_owned(),
            Some(_) => format!("{:?}", lossy(&rest[..len.max(1)])),
        };
        Fault { at: self.at, problem: TextProblem::Unexpected { found, expected } }
    }
}
