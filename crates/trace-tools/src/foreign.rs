//! Recognition of files that are no traces of this format, by their first bytes.

use std::fmt;

use crate::format::HEAD;

/// Advice for traces of other tools.
const RECORD: &str = "this format is not read; record the program with `pdes-replay trace acquire`";

/// Advice for archives of OTF2, which a build with the library reads.
const OTF2: &str = "this format is read by builds with `--features otf2`, which need its library";
const ANCHOR: &str = "name the anchor, which ends in .otf2";

/// A file of another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The format with its article, such as `an OTF2 anchor`.
    pub name: &'static str,
    /// The remedy.
    pub advice: &'static str,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this looks like {}; {}", self.name, self.advice)
    }
}

/// A file of no format of a registry, and of none of [`FORMATS`].
pub(crate) const UNKNOWN: Foreign =
    Foreign { name: "a file of an unknown format", advice: "expected a trace" };

/// A format, and whether the first bytes of a file are of it.
struct Format {
    foreign: Foreign,
    matches: fn(&[u8]) -> bool,
}

/// All formats; those that are certain come first.
const FORMATS: [Format; 10] = [
    format("an OTF2 anchor", OTF2, |head| head.starts_with(b"\x03BOTF2")),
    format("an OTF2 file of events or definitions", ANCHOR, |head| head.starts_with(b"\x03B\x01\0\0\0\0\0")),
    format("a DUMPI trace as text", RECORD, |head| contains(head, b"\nMPI_Init entering at walltime ")),
    format(
        "a Chakra execution trace",
        "make its schedule with `pdes-replay trace convert`, and name any of its files PREFIX.RANK.et",
        |head| matches!(head, [length, 0x0a, digits, b'0'..=b'9', b'.', ..] if length.checked_sub(2) == Some(*digits)),
    ),
    format("a data file of an archive", "name the archive itself", |head| {
        head.starts_with(b"\x89PDS\r\n\x1a\n")
    }),
    format("a program", "record it with `pdes-replay trace acquire`", |head| {
        head.starts_with(b"\x7fELF") || head.starts_with(b"#!")
    }),
    format("a platform in XML", "name it with --platform", |head| {
        let head = head.trim_ascii_start();
        head.starts_with(b"<?xml") || head.starts_with(b"<platform") || head.starts_with(b"<!DOCTYPE")
    }),
    format(
        "a file in JSON",
        "`pdes-replay report` reads reports, and with them diagnoses and timelines",
        |head| head.trim_ascii_start().starts_with(b"{"),
    ),
    format("a platform or configuration in TOML", "name it with --platform or --config", |head| {
        let is_assignment = |line: &[u8]| {
            // Names of files may contain the sign, but no such value.
            [b" = ".as_slice(), b"={", b"=[", b"=\"", b"='"].iter().any(|sign| contains(line, sign))
        };
        first_line(head).is_some_and(|line| line.starts_with(b"[") || is_assignment(line))
    }),
    format(
        "a binary file",
        "expected time-independent text (plain, gzip or zstd) or an archive (.pdt)",
        |head| head.iter().any(|byte| byte.is_ascii_control() && !b"\t\n\r\x0c".contains(byte)),
    ),
];

/// Recognises a file of another format by its first bytes, after decompression.
pub(crate) fn recognise(first_bytes: &[u8]) -> Option<Foreign> {
    let head = &first_bytes[..first_bytes.len().min(HEAD)];
    FORMATS.iter().find(|format| (format.matches)(head)).map(|format| format.foreign)
}

const fn format(name: &'static str, advice: &'static str, matches: fn(&[u8]) -> bool) -> Format {
    Format { foreign: Foreign { name, advice }, matches }
}

fn contains(head: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(head, part).is_some()
}

/// Returns the first line that is neither empty nor a comment.
fn first_line(head: &[u8]) -> Option<&[u8]> {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty() && !line.starts_with(b"#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(head: &[u8]) -> Option<&'static str> {
        recognise(head).map(|foreign| foreign.name)
    }

    #[test]
    fn traces_are_not_foreign() {
        let traces: [&[u8]; 8] = [
            b"",
            b"0 init\n0 compute 5\n",
            b"# a comment = one\n\n  12\tbarrier\n",
            b"rank-0.txt\nrank-1.txt\n",
            b"../traces/a b.txt\r\n",
            "# gr\u{fc}\u{df}e\n0 location r\u{e9}sous.c 5\n".as_bytes(),
            b"0 location a=b.c 5\n",
            // No length of a Chakra execution trace.
            b"2\n\xff5.\n",
        ];
        for trace in traces {
            assert_eq!(recognise(trace), None, "{}", trace.escape_ascii());
        }
    }

    #[test]
    fn other_formats_are_named() {
        let cases: [(&[u8], &str); 8] = [
            (b"\x03BOTF2\0\x03", "an OTF2 anchor"),
            (b"\x03B\x01\0\0\0\0\0\0\0\x3c", "an OTF2 file of events or definitions"),
            (b"version=1.0.0\nMPI_Init entering at walltime 1.5", "a DUMPI trace as text"),
            (b"\x07\n\x050.0.4N\x08\x02", "a Chakra execution trace"),
            (b"#!/bin/sh\n", "a program"),
            (b"# a platform\n[topology]\nkind = \"torus\"\n", "a platform or configuration in TOML"),
            (b"topology={kind=\"cluster\",hosts=16}\n", "a platform or configuration in TOML"),
            (b"\x8f\x12]iy\xff", "a binary file"),
        ];
        for (head, expected) in cases {
            assert_eq!(name(head), Some(expected), "{}", head.escape_ascii());
        }
    }
}
