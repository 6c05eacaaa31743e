//! Elements of a file in XML, one after the other.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use trace_mmap::TraceError;

use super::HdtraceError;
use crate::error::InputError;

/// An element.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    /// The elements inside it, without those inside these.
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Returns an attribute.
    pub(super) fn optional(&self, attribute: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self, attribute: &'static str) -> Result<&str, HdtraceError> {
        let missing = || HdtraceError::Missing { call: self.name.clone(), attribute };
        self.optional(attribute).ok_or_else(missing)
    }

    /// Reads an attribute as a number of 0 or more.
    pub(super) fn number(&self, attribute: &'static str) -> Result<u64, HdtraceError> {
        let text = self.text(attribute)?;
        text.parse().map_err(|_| self.invalid(attribute, text, "a whole number of 0 or more"))
    }

    /// Reads an attribute as a number, which may be negative.
    pub(super) fn signed(&self, attribute: &'static str) -> Result<i64, HdtraceError> {
        let text = self.text(attribute)?;
        text.parse().map_err(|_| self.invalid(attribute, text, "a whole number"))
    }

    /// Reads a time in seconds \[ns\].
    pub(super) fn nanos(&self, attribute: &'static str) -> Result<u64, HdtraceError> {
        const LONGEST: f64 = 1e15;
        let text = self.text(attribute)?;
        let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let nanos = Some(text).filter(|_| is_decimal).and_then(|text| format!("{text}e9").parse().ok());
        let nanos = nanos.filter(|nanos: &f64| *nanos <= LONGEST);
        nanos
            .map(|nanos| nanos.round() as u64)
            .ok_or_else(|| self.invalid(attribute, text, "a decimal number of seconds, below a million"))
    }

    fn invalid(&self, attribute: &'static str, found: &str, expected: &'static str) -> HdtraceError {
        let found = found.chars().take(80).collect();
        HdtraceError::Invalid { call: self.name.clone(), attribute, found, expected }
    }
}

/// What comes next in a file.
pub(super) enum Next {
    /// An element that holds others.
    Begin(Element),
    /// The end of such an element.
    End,
    /// The end of the file.
    Eof,
}

/// The elements of a file.
pub(super) struct Elements {
    file: PathBuf,
    reader: Reader<BufReader<File>>,
    buffer: Vec<u8>,
    /// Number of elements so far, also inside others.
    pub(super) number: u64,
    /// True if the last element was an empty one, whose end comes next.
    is_empty: bool,
    depth: u64,
}

impl Elements {
    pub(super) fn open(file: &Path) -> Result<Self, TraceError> {
        let opened = File::open(file).map_err(InputError::io(file))?;
        let reader = Reader::from_reader(BufReader::with_capacity(1 << 16, opened));
        let file = file.to_path_buf();
        Ok(Self { file, reader, buffer: Vec::new(), number: 0, is_empty: false, depth: 0 })
    }

    /// Makes an error of the current element.
    pub(super) fn error(&self, error: HdtraceError) -> TraceError {
        error.locate(&self.file, self.number)
    }

    /// Returns the begin or the end of the next element.
    pub(super) fn next(&mut self) -> Result<Next, TraceError> {
        if std::mem::take(&mut self.is_empty) {
            return Ok(Next::End);
        }
        loop {
            self.buffer.clear();
            let event = self.reader.read_event_into(&mut self.buffer);
            let found = match event.map_err(|error| error.to_string()) {
                Ok(Event::Start(start)) => {
                    self.depth += 1;
                    element(&start)
                }
                Ok(Event::Empty(start)) => {
                    self.is_empty = true;
                    element(&start)
                }
                Ok(Event::End(_)) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(Next::End);
                }
                Ok(Event::Eof) if self.depth == 0 => return Ok(Next::Eof),
                Ok(Event::Eof) => Err("the file ends inside an element".to_owned()),
                Ok(_) => continue,
                Err(error) => Err(error),
            };
            self.number += 1;
            return match found {
                Ok(element) => Ok(Next::Begin(element)),
                Err(error) => Err(self.error(HdtraceError::Xml(error))),
            };
        }
    }

    /// Passes over the rest of the current element.
    pub(super) fn skip(&mut self) -> Result<(), TraceError> {
        let mut depth = 1_u64;
        while depth > 0 {
            match self.next()? {
                Next::Begin(_) => depth += 1,
                Next::End | Next::Eof => depth -= 1,
            }
        }
        Ok(())
    }

    /// Returns the next call of a file of calls, with its number; `None` at its end.
    pub(super) fn next_call(&mut self) -> Result<Option<(Element, u64)>, TraceError> {
        loop {
            match self.next()? {
                Next::Begin(element) if element.name == "Program" => {}
                Next::Begin(element) if element.name == "Nested" => self.skip()?,
                Next::Begin(mut element) => {
                    let number = self.number;
                    while let Next::Begin(child) = self.next()? {
                        self.skip()?;
                        element.children.push(child);
                    }
                    return Ok(Some((element, number)));
                }
                Next::End => {}
                Next::Eof => return Ok(None),
            }
        }
    }
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let attribute = |attribute: Result<quick_xml::events::attributes::Attribute<'_>, _>| {
        let attribute =
            attribute.map_err(|error: quick_xml::events::attributes::AttrError| error.to_string())?;
        let value = attribute.unescape_value().map_err(|error| error.to_string())?;
        Ok::<_, String>((text(attribute.key.as_ref()), value.into_owned()))
    };
    let attributes = start.attributes().map(attribute).collect::<Result<_, _>>()?;
    Ok(Element { name: text(start.name().as_ref()), attributes, children: Vec::new() })
}
