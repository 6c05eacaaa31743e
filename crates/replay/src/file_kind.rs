//! Kinds of files, as the program reads and writes them: recognized from content, and named by suffix.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A kind of file, and the command that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// The kind with its article, such as `a diagnosis`.
    pub name: &'static str,
    /// Advice for the user of such a file: the command or key that takes it.
    pub advice: &'static str,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is {}; {}", self.name, self.advice)
    }
}

/// Number of bytes by which files other than JSON and TOML are told apart \[B\].
const HEAD: u64 = 4096;

/// Largest file that may be TOML \[B\].
const MOST_TOML: u64 = 1 << 24;

/// A trace of a program.
pub const TRACE: FileKind =
    FileKind { name: "a trace", advice: "replay it with: pdes-replay run FILE --platform PLATFORM" };
/// A platform, in TOML or in SimGrid's XML.
pub const PLATFORM: FileKind = FileKind {
    name: "a platform",
    advice: "name it with --platform, or as [platform] file in a configuration",
};
const TIMELINE: FileKind = FileKind {
    name: "a timeline",
    advice: "show it in a viewer such as Perfetto, or with: pdes-replay report RUN.json --timeline FILE -o RUN.html",
};
const SWEPT: FileKind =
    FileKind { name: "the result of a sweep", advice: "its page is sweep.html, its table sweep.csv" };
const WHAT_IF: FileKind = FileKind {
    name: "the result of a test of hypotheses",
    advice: "its page is what-if.html; the report of each hypothesis is reports/NAME.json",
};
const PAGE: FileKind = FileKind { name: "a page", advice: "open it in a browser" };

/// Kinds of TOML files by a key at the top, and of JSON files by keys that all are there.
const TOML_KINDS: [(&str, FileKind); 10] = [
    ("grid", SWEEP),
    ("axis", SWEEP),
    ("hypothesis", HYPOTHESES),
    ("problem", RULES),
    ("event", RULES),
    ("topology", PLATFORM),
    ("host", PLATFORM),
    ("trace", CONFIGURATION),
    ("platform", CONFIGURATION),
    ("network", CONFIGURATION),
];
const SWEEP: FileKind = FileKind { name: "a sweep", advice: "run it with: pdes-replay sweep FILE -o DIR" };
const HYPOTHESES: FileKind = FileKind {
    name: "a file of hypotheses",
    advice: "test them with: pdes-replay what-if FILE --config CONFIG -o DIR",
};
const RULES: FileKind =
    FileKind { name: "a file of rules", advice: "name it with: pdes-replay diagnose CONFIG --rules FILE" };
/// A configuration.
pub const CONFIGURATION: FileKind =
    FileKind { name: "a configuration", advice: "replay it with: pdes-replay run FILE" };
/// The report of a run.
pub const REPORT: FileKind = FileKind { name: "a report", advice: "show it with: pdes-replay report FILE" };
const JSON_KINDS: [(&[&str], FileKind); 8] = [
    (&["format", "simulated_time_s", "parameters"], REPORT),
    (
        &["pop", "problems", "regions"],
        FileKind {
            name: "a diagnosis",
            advice: "show it with the report of the run: pdes-replay report RUN.json --diagnosis FILE -o RUN.html",
        },
    ),
    (&["traceEvents"], TIMELINE),
    (&["hypotheses"], WHAT_IF),
    (&["key", "result"], SWEPT),
    (&["sweep"], SWEPT),
    (
        &["Application", "resources"],
        FileKind { name: "a file of metrics", advice: "it is for talp ci-report" },
    ),
    (
        &["format", "predicted", "serial_s"],
        FileKind { name: "a profile of regions", advice: "name it as parallel.partition in a configuration" },
    ),
];

/// Recognizes a file or directory that the program reads or writes; `None` if it is of no known kind, or cannot be read.
pub fn recognize(path: &Path) -> Option<FileKind> {
    if path.is_dir() {
        let has = |name: &str| path.join(name).exists();
        return match () {
            () if has("what-if.html") || has("summary.json") => Some(WHAT_IF),
            () if has("sweep.csv") || has("runs.jsonl") => Some(SWEPT),
            () if has("rank-0.txt") || has("rank-0.txt.gz") || has("rank-0.txt.zst") => Some(TRACE),
            () => None,
        };
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let start = head.trim_ascii_start();
    let begins = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| start.starts_with(prefix));
    if head.starts_with(&trace_mmap::ARCHIVE_MAGIC) {
        return Some(TRACE);
    }
    if begins(&[b"<!DOCTYPE html", b"<html"]) {
        return Some(PAGE);
    }
    if begins(&[b"<?xml", b"<platform", b"<!DOCTYPE platform"]) {
        return Some(PLATFORM);
    }
    if begins(&[b"{", b"["])
        && let Some(kind) = recognize_json(path)
    {
        return Some(kind);
    }
    if begins(&[b"PAR1"]) || path.file_name().is_some_and(|name| name == "sweep.csv") {
        return Some(SWEPT);
    }
    let text =
        std::str::from_utf8(&head).or_else(|error| std::str::from_utf8(&head[..error.valid_up_to()])).ok()?;
    let is_small = std::fs::metadata(path).is_ok_and(|file| file.len() <= MOST_TOML);
    let whole = is_small.then(|| std::fs::read_to_string(path).ok()).flatten();
    if let Some(kind) = whole.and_then(|text| recognize_toml(&text.parse().ok()?)) {
        return Some(kind);
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words = lines.next()?.split_whitespace();
    let is_action = words.next()?.parse::<u32>().is_ok() && words.next() == Some("init");
    is_action.then_some(TRACE)
}

/// Recognizes a file in TOML by its keys.
pub fn recognize_toml(table: &toml::Table) -> Option<FileKind> {
    TOML_KINDS.iter().find(|(key, _)| table.contains_key(*key)).map(|(_, kind)| *kind)
}

fn recognize_json(path: &Path) -> Option<FileKind> {
    let reader = std::io::BufReader::new(File::open(path).ok()?);
    // What follows the first value does not matter: a journal has one in each line.
    let keys = serde_json::Deserializer::from_reader(reader).deserialize_any(Keys).ok()?;
    let Some(keys) = keys else { return Some(TIMELINE) };
    JSON_KINDS.iter().find(|(needed, _)| needed.iter().all(|key| keys.contains(*key))).map(|(_, kind)| *kind)
}

/// Collects the keys of a JSON object; `None` for a list of objects, which trace events may be.
struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Option<BTreeSet<String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
            keys.insert(key);
        }
        Ok(Some(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(IgnoredAny) = list.next_element()? {}
        Ok(None)
    }
}

/// Suffixes of formats of files that the program, or others, write.
const SUFFIXES: [&str; 17] = [
    "html", "htm", "svg", "png", "pdf", "jpg", "jpeg", "csv", "parquet", "json", "jsonl", "toml", "xml",
    "pdt", "txt", "gz", "zst",
];

/// Returns why a file with this name cannot be one of these formats; `None` if it can. A name without the suffix of a format says nothing.
///
/// ```
/// use replay::file_kind::other_suffix;
/// assert_eq!(other_suffix("run.json".as_ref(), &["json"]), None);
/// assert_eq!(other_suffix("run.1".as_ref(), &["json"]), None);
/// assert_eq!(other_suffix("run.SVG".as_ref(), &["json"]).as_deref(), Some("found the suffix .svg, expected .json"));
/// ```
pub fn other_suffix(path: &Path, expected: &[&str]) -> Option<String> {
    let suffix = path.extension()?.to_string_lossy().to_ascii_lowercase();
    let is_other = SUFFIXES.contains(&suffix.as_str()) && !expected.contains(&suffix.as_str());
    is_other.then(|| format!("found the suffix .{suffix}, expected .{}", expected.join(" or .")))
}
