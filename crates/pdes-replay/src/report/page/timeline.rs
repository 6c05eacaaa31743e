//! Zoomable timeline on a page, from a file in Chrome's trace-event format.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::hash::Hash;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// The reason why a timeline cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The file cannot be read.
    #[error("the timeline {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a timeline.
    #[error("the timeline {}: expected trace events in JSON (--timeline FILE.json): {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Error message, with line and column.
        message: String,
    },
    /// The file contains no state of a rank.
    #[error("the timeline {} has no state of a rank (events of phase \"X\")", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
struct Event {
    ph: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    pid: u64,
    #[serde(default)]
    tid: u64,
    /// Time stamp \[us\]; `dur` is in microseconds, too.
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(default)]
    args: Option<Arguments>,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    name: Option<serde_json::Value>,
    /// Call site or region of a state.
    #[serde(default)]
    site: Option<serde_json::Value>,
    /// Call that waits, of a wait state.
    #[serde(default)]
    call: Option<serde_json::Value>,
}

/// States of ranks and messages between them. Times are in nanoseconds since `origin`.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Time of the first state \[ns\].
    origin: f64,
    /// Names of states.
    names: Vec<String>,
    kinds: Vec<StateKind>,
    rows: Vec<Row>,
    /// Sender's row and time, receiver's row and time.
    messages: Vec<(usize, f64, usize, f64)>,
}

/// States with one name at one place. As JSON: index of the name, call site, and call of a wait state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct StateKind(usize, Option<String>, Option<String>);

/// The states of a rank.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    label: String,
    /// Begin \[ns\], length \[ns\] and index of the kind of each state.
    states: Vec<(f64, f64, usize)>,
}

/// Process and thread of an event.
type EventSource = (u64, u64);

/// Contents of a file, before they are laid out in rows.
#[derive(Default)]
struct TimelineBuilder {
    processes: BTreeMap<u64, String>,
    threads: BTreeMap<EventSource, String>,
    /// Begin, length, place, and index of the kind.
    states: Vec<(f64, f64, EventSource, usize)>,
    names: Vec<String>,
    index_of_name: HashMap<String, usize>,
    kinds: Vec<StateKind>,
    index_of_kind: HashMap<StateKind, usize>,
    messages: Vec<(EventSource, f64, EventSource, f64)>,
    /// Messages that were sent and have not arrived yet.
    sent: HashMap<String, (EventSource, f64)>,
}

impl Timeline {
    /// Reads trace events, plain or compressed (`.gz`). The text and the states are in memory while they are read: some 200 bytes for a state.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or contains no trace events.
    pub fn from_path(path: &Path) -> Result<Self, TimelineError> {
        let text = text(path).map_err(|source| TimelineError::Read { path: path.to_owned(), source })?;
        let builder = serde_json::from_slice::<TimelineBuilder>(&text)
            .map_err(|error| TimelineError::Format { path: path.to_owned(), message: error.to_string() })?;
        drop(text);
        Self::new(builder).ok_or_else(|| TimelineError::Empty { path: path.to_owned() })
    }

    /// Lays out the contents of a file; `None` if there is no state.
    fn new(mut builder: TimelineBuilder) -> Option<Self> {
        // Of states that begin together, the longer one encloses the other: [`flatten`] relies on this order.
        builder.states.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.total_cmp(&one.1)));
        builder.messages.sort_by(|one, other| one.1.total_cmp(&other.1));
        let origin = builder.states.first()?.0;
        let mut rows = builder.rows();
        let mut states = vec![Vec::new(); rows.labels.len()];
        for (begin, length, place, kind) in builder.states {
            states[rows.find(place)].push((rounded(begin - origin), rounded(begin - origin + length), kind));
        }
        let messages = builder.messages.into_iter();
        let messages = messages.map(|(from, sent, to, arrived)| {
            (rows.find(from), rounded(sent - origin), rows.find(to), rounded(arrived - origin))
        });
        let messages = messages.collect();
        let labels = std::mem::take(&mut rows.labels).into_iter().zip(states);
        let rows = labels.map(|(label, states)| Row { label, states: flatten(&states) }).collect();
        Some(Self { origin, names: builder.names, kinds: builder.kinds, rows, messages })
    }

    /// Returns the timeline as data of a page. `blob` has the states and messages, as a sequence of numbers of 7 bits per byte, lowest
    /// first, compressed by gzip, in base64: for each row the number of states, then of each the gap since the end of the one before
    /// \[ps\], its length \[ps\] and its kind; then the number of messages, and of each the row of the sender, the time since the send of
    /// the one before, the row of the receiver, and the time of flight.
    pub(super) fn data(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let mut bytes = GzEncoder::new(Vec::new(), Compression::default());
        let picos = |nanos: f64| (nanos * 1e3).round().max(0.0) as u64;
        let mut write = |number: u64| write_number(&mut bytes, number).map_err(serde_json::Error::io);
        for row in &self.rows {
            write(row.states.len() as u64)?;
            let mut end = 0;
            for &(begin, length, kind) in &row.states {
                let begin = picos(begin).max(end);
                write(begin - end)?;
                write(picos(length))?;
                write(kind as u64)?;
                end = begin + picos(length);
            }
        }
        write(self.messages.len() as u64)?;
        let mut before = 0;
        for &(from, sent, to, arrived) in &self.messages {
            let sent = picos(sent);
            write(from as u64)?;
            write(sent - before)?;
            write(to as u64)?;
            write(picos(arrived).saturating_sub(sent))?;
            before = sent;
        }
        let bytes = bytes.finish().map_err(serde_json::Error::io)?;
        let labels: Vec<&str> = self.rows.iter().map(|row| row.label.as_str()).collect();
        to_raw_value(&json!({
            "origin_ns": self.origin, "names": self.names, "kinds": self.kinds, "labels": labels,
            "blob": STANDARD.encode(bytes),
        }))
    }
}

/// The rows of a timeline: one per process if there are several processes, else one per thread.
struct Rows {
    by_process: bool,
    sources: Vec<EventSource>,
    labels: Vec<String>,
}

impl Rows {
    fn place(&self, (process, thread): EventSource) -> EventSource {
        if self.by_process { (process, 0) } else { (process, thread) }
    }

    fn find(&self, place: EventSource) -> usize {
        self.sources.binary_search(&self.place(place)).expect("each place has a row")
    }
}

/// Flattens nested states, given by begin and end: a state is cut where others lie in it, so that the result does not overlap. The input
/// is sorted by begin, longer states first. Returns begins and lengths.
fn flatten(states: &[(f64, f64, usize)]) -> Vec<(f64, f64, usize)> {
    let mut flat = Vec::new();
    let mut put = |from: f64, to: f64, name: usize| {
        if to > from {
            flat.push((from, rounded(to - from), name));
        }
    };
    let (mut open, mut at): (Vec<(f64, usize)>, f64) = (Vec::new(), f64::NEG_INFINITY);
    for &(begin, end, name) in states {
        while let Some(&(last, outer)) = open.last() {
            put(at, last.min(begin), outer);
            at = at.max(last.min(begin));
            if last > begin {
                break;
            }
            open.pop();
        }
        at = at.max(begin);
        open.push((end, name));
    }
    while let Some((end, name)) = open.pop() {
        put(at, end, name);
        at = at.max(end);
    }
    flat
}

fn text(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text)?;
    } else {
        file.read_to_end(&mut text)?;
    }
    Ok(text)
}

impl TimelineBuilder {
    /// Determines the rows, in the order of processes and threads.
    fn rows(&self) -> Rows {
        let states = self.states.iter().map(|state| state.2);
        let ends = self.messages.iter().flat_map(|&(from, _, to, _)| [from, to]);
        let all: BTreeSet<EventSource> = states.chain(ends).collect();
        let by_process = all.first().map(|place| place.0) != all.last().map(|place| place.0);
        let mut rows = Rows { by_process, sources: Vec::new(), labels: Vec::new() };
        let places: BTreeSet<EventSource> = all.into_iter().map(|place| rows.place(place)).collect();
        rows.sources = places.into_iter().collect();
        let by_process = by_process || rows.sources.len() == 1;
        let label = |place: &EventSource| {
            let (label, number) = match by_process {
                true => (self.processes.get(&place.0), place.0),
                false => (self.threads.get(place), place.1),
            };
            label.cloned().unwrap_or_else(|| format!("rank {number}"))
        };
        rows.labels = rows.sources.iter().map(label).collect();
        rows
    }

    fn add(&mut self, event: Event) {
        let (place, time) = ((event.pid, event.tid), event.ts * 1e3);
        let flow = event.id.as_ref().map(ToString::to_string);
        match (event.ph.as_str(), flow) {
            // Events without duration are invisible.
            ("X", _) if event.dur > 0.0 => {
                let kind = self.kind(event.name.unwrap_or_default(), event.args);
                self.states.push((time, event.dur * 1e3, place, kind));
            }
            ("M", _) => {
                let label = event.args.and_then(|arguments| arguments.name);
                let label = label.as_ref().and_then(|label| label.as_str().map(str::to_owned));
                match event.name.as_deref() {
                    Some("process_name") => self.processes.extend(label.map(|label| (place.0, label))),
                    Some("thread_name") => self.threads.extend(label.map(|label| (place, label))),
                    _ => {}
                }
            }
            ("s", Some(flow)) => {
                self.sent.insert(flow, (place, time));
            }
            ("f", Some(flow)) => {
                let begin = self.sent.remove(&flow);
                self.messages.extend(begin.map(|(from, begin)| (from, begin, place, time)));
            }
            _ => {}
        }
    }

    fn kind(&mut self, name: String, arguments: Option<Arguments>) -> usize {
        let name = index_of(name, &mut self.names, &mut self.index_of_name);
        let text = |value: Option<serde_json::Value>| value?.as_str().map(str::to_owned);
        let (site, call) =
            arguments.map_or((None, None), |arguments| (text(arguments.site), text(arguments.call)));
        index_of(StateKind(name, site, call), &mut self.kinds, &mut self.index_of_kind)
    }
}

/// Returns the index of a value among those that are known, to which it is added.
fn index_of<T: Clone + Eq + Hash>(value: T, known: &mut Vec<T>, indices: &mut HashMap<T, usize>) -> usize {
    *indices.entry(value).or_insert_with_key(|value| {
        known.push(value.clone());
        known.len() - 1
    })
}

/// Reads both forms of [the format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): an array of
/// events, or an object that has it. Events are laid out one by one.
impl<'de> Deserialize<'de> for TimelineBuilder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Events;

        impl<'de> Visitor<'de> for Events {
            type Value = TimelineBuilder;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an array of trace events, or an object with traceEvents")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<TimelineBuilder, A::Error> {
                let mut builder = TimelineBuilder::default();
                while let Some(event) = events.next_element()? {
                    builder.add(event);
                }
                Ok(builder)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<TimelineBuilder, A::Error> {
                let mut builder = None;
                while let Some(key) = fields.next_key::<String>()? {
                    if key == "traceEvents" {
                        builder = Some(fields.next_value()?);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                }
                builder.ok_or_else(|| serde::de::Error::missing_field("traceEvents"))
            }
        }

        deserializer.deserialize_any(Events)
    }
}

/// Writes a number, 7 bits per byte, the lowest first.
fn write_number(output: &mut impl Write, mut number: u64) -> std::io::Result<()> {
    while number >= 0x80 {
        output.write_all(&[number as u8 | 0x80])?;
        number >>= 7;
    }
    output.write_all(&[number as u8])
}

/// Rounds to a picosecond.
fn rounded(nanos: f64) -> f64 {
    (nanos * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Timeline, TimelineError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Timeline::from_path(file.path())
    }

    #[test]
    fn states_and_messages_have_rows() {
        let text = r#"{"displayTimeUnit":"ns","traceEvents":[
            {"ph":"M","name":"thread_name","pid":0,"tid":3,"args":{"name":"rank 3 of x"}},
            {"ph":"X","name":"recv","pid":0,"tid":3,"ts":2.5,"dur":1.25},
            {"ph":"X","name":"compute","pid":0,"tid":1,"ts":2.0,"dur":0.5,"args":{"bytes":3}},
            {"ph":"s","name":"message","cat":"m","id":7,"pid":0,"tid":1,"ts":2.5},
            {"ph":"f","name":"message","cat":"m","id":7,"bp":"e","pid":0,"tid":3,"ts":3.75}]}"#;
        let timeline = read(text).unwrap();
        assert_eq!(timeline.origin, 2000.0);
        assert_eq!(timeline.names, ["recv", "compute"]);
        let labels: Vec<_> = timeline.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["rank 1", "rank 3 of x"]);
        assert_eq!(timeline.rows[1].states, [(500.0, 1250.0, 0)]);
        assert_eq!(timeline.messages, [(0, 500.0, 1, 1750.0)]);
        // The other form of the format.
        let array = read(r#"[{"ph":"X","name":"</script>","pid":5,"ts":1,"dur":1},{"ph":"X","name":"b","pid":6,"ts":1,"dur":1}]"#).unwrap();
        assert_eq!(array.rows[0].label, "rank 5");
        assert_eq!(array.names[0], "</script>");
    }

    /// Our own files have a process per rank, with its states in one thread and the ends of messages in another.
    #[test]
    fn ranks_are_processes_where_there_are_several() {
        let text = r#"{"traceEvents":[
            {"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"rank 0"}},
            {"ph":"M","name":"process_sort_index","pid":1,"tid":1,"args":{"sort_index":0}},
            {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"states"}},
            {"ph":"M","name":"process_name","pid":2,"tid":3,"args":{"name":"rank 1"}},
            {"ph":"X","name":"send","pid":1,"tid":1,"ts":0,"dur":1},
            {"ph":"X","name":"recv","pid":2,"tid":3,"ts":0,"dur":9,"args":{"site":"a.c:1"}},
            {"ph":"X","name":"late_sender","pid":2,"tid":3,"ts":0,"dur":4,"args":{"site":"a.c:1","call":"recv"}},
            {"ph":"X","name":"recv","pid":2,"tid":3,"ts":9,"dur":1,"args":{"site":7}},
            {"ph":"X","name":"sent","pid":1,"tid":2,"ts":0,"dur":0},
            {"ph":"s","name":"message","id":0,"pid":1,"tid":2,"ts":0},
            {"ph":"f","name":"message","id":0,"pid":2,"tid":4,"ts":9}]}"#;
        let timeline = read(text).unwrap();
        let labels: Vec<_> = timeline.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(labels, ["rank 0", "rank 1"]);
        assert_eq!(timeline.names, ["send", "recv", "late_sender"]);
        let kind = |name: usize, site: Option<&str>, call: Option<&str>| {
            let kind = StateKind(name, site.map(str::to_owned), call.map(str::to_owned));
            timeline.kinds.iter().position(|known| *known == kind).unwrap()
        };
        let (late, recv) = (kind(2, Some("a.c:1"), Some("recv")), kind(1, Some("a.c:1"), None));
        // What is no text is no place.
        let last = kind(1, None, None);
        let states = [(0.0, 4000.0, late), (4000.0, 5000.0, recv), (9000.0, 1000.0, last)];
        assert_eq!(timeline.rows[1].states, states);
        assert_eq!(timeline.messages, [(0, 0.0, 1, 9000.0)]);
    }

    #[test]
    fn states_are_cut_where_others_lie_in_them() {
        let states = [(0.0, 10.0, 0), (2.0, 8.0, 1), (3.0, 4.0, 2), (10.0, 11.0, 3), (13.0, 14.0, 0)];
        let expected = [
            (0.0, 2.0, 0),
            (2.0, 1.0, 1),
            (3.0, 1.0, 2),
            (4.0, 4.0, 1),
            (8.0, 2.0, 0),
            (10.0, 1.0, 3),
            (13.0, 1.0, 0),
        ];
        assert_eq!(flatten(&states), expected);
    }

    #[test]
    fn invalid_timelines_are_reported() {
        assert!(matches!(read("{\"a\": 1}"), Err(TimelineError::Format { .. })));
        assert!(matches!(read("[]"), Err(TimelineError::Empty { .. })));
        assert!(matches!(Timeline::from_path(Path::new("/none.json")), Err(TimelineError::Read { .. })));
    }

    #[test]
    fn data_are_differences_of_times() {
        let text = r#"[{"ph":"X","name":"a","pid":0,"ts":1,"dur":0.001},{"ph":"X","name":"b","pid":0,"ts":1.0015,"dur":0.3}]"#;
        let timeline = read(text).unwrap();
        let data: serde_json::Value = serde_json::from_str(timeline.data().unwrap().get()).unwrap();
        let bytes = STANDARD.decode(data["blob"].as_str().unwrap()).unwrap();
        let mut numbers = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut numbers).unwrap();
        // Two states: 1000 ps long at once, and 300,000 ps long, 500 ps later; no messages.
        let expected = [2, 0, 0xe8, 0x07, 0, 0xf4, 0x03, 0xe0, 0xa7, 0x12, 1, 0];
        assert_eq!(numbers, expected);
        assert_eq!((data["origin_ns"].as_f64(), data["names"][1].as_str()), (Some(1000.0), Some("b")));
        assert_eq!(data["kinds"], json!([[0, null, null], [1, null, null]]));
    }
}
