//! Timelines as Chrome trace events in JSON.
//!
//! The format is "Trace Event Format" (Chrome's tracing page), in its object form. A rank is a process of two threads:
//! one has its states with wait states inside them, the other the ends of its messages. An end is an event without
//! duration, so that an arrow begins and ends at the times of the message, whatever the rank does then.

use std::borrow::Cow;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use mpi_model::{ActionKind, Event};
use outputs::AtomicFile;
use pdes_core::{Rank, SimDuration, SimTime};
use serde::Serialize;

use crate::counter::Counter;

/// Event of the format.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
#[serde(tag = "ph")]
enum TraceEvent<'a> {
    /// Name or sort index of a process or a thread.
    #[serde(rename = "M")]
    Metadata { name: Cow<'a, str>, pid: u64, tid: u64, args: Metadata },
    /// Event with a duration.
    #[serde(rename = "X")]
    Complete {
        name: Cow<'a, str>,
        cat: Cow<'a, str>,
        ts: f64,
        dur: f64,
        pid: u64,
        tid: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Args<'a>>,
    },
    /// Value of a counter from an instant on.
    #[serde(rename = "C")]
    Counter { name: Cow<'a, str>, pid: u64, ts: f64, args: CounterArgs },
    /// Start of an arrow, bound to the event before.
    #[serde(rename = "s")]
    FlowStart { name: Cow<'a, str>, cat: Cow<'a, str>, id: u64, ts: f64, pid: u64, tid: u64 },
    /// End of an arrow, bound to the event before.
    #[serde(rename = "f")]
    FlowEnd { name: Cow<'a, str>, cat: Cow<'a, str>, id: u64, bp: Cow<'a, str>, ts: f64, pid: u64, tid: u64 },
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
#[serde(rename_all = "snake_case")]
enum Metadata {
    Name(String),
    SortIndex(u32),
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
struct CounterArgs {
    value: f64,
}

/// Attributes of an event with a duration.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
#[serde(untagged)]
enum Args<'a> {
    Message(MessageArgs<'a>),
    State(StateArgs<'a>),
}

/// Attributes of a state or a wait.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
struct StateArgs<'a> {
    /// Call site or region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    site: Option<Cow<'a, str>>,
    /// Call that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<Cow<'a, str>>,
}

/// Attributes of a message.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(PartialEq, serde::Deserialize))]
struct MessageArgs<'a> {
    from: u32,
    to: u32,
    bytes: u64,
    tag: u32,
    communicator: u32,
    operation: Option<Cow<'a, str>>,
}

/// Writer of a file of trace events.
#[derive(Debug)]
pub(crate) struct ChromeWriter {
    file: Output,
    is_first: bool,
    messages: u64,
    /// Parts of the machine that have counters, in their order.
    parts: Vec<String>,
}

/// Number of the first process that stands for a part of the machine: there are fewer ranks.
const PARTS: u64 = 1 << 21;

#[derive(Debug)]
enum Output {
    Plain(AtomicFile),
    /// Buffered, since the compressor is slow with small writes.
    Gzip(Box<BufWriter<GzEncoder<AtomicFile>>>),
}

/// Name and category of messages.
const MESSAGE: Cow<'static, str> = Cow::Borrowed("message");

impl ChromeWriter {
    pub(crate) fn create(path: &Path, ranks: &[Rank]) -> io::Result<Self> {
        let draft = AtomicFile::create(path)?;
        let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
        let file = if is_compressed {
            let encoder = GzEncoder::new(draft, Compression::fast());
            Output::Gzip(Box::new(BufWriter::with_capacity(1 << 16, encoder)))
        } else {
            Output::Plain(draft)
        };
        let mut chrome = Self { file, is_first: true, messages: 0, parts: Vec::new() };
        chrome.file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        ranks.iter().try_for_each(|&rank| chrome.write_names(rank))?;
        Ok(chrome)
    }

    /// Writes an event, with the name of its call site.
    pub(crate) fn write(&mut self, event: &Event, site: Option<&str>) -> io::Result<()> {
        let site = site.map(Cow::Borrowed);
        match *event {
            Event::State { rank, kind, begin, end, .. } => {
                let args = site.is_some().then_some(StateArgs { site, call: None });
                self.write_complete(rank, [kind.name(), category(kind)], (begin, end), args)
            }
            Event::Wait { rank, kind, state, begin, end, .. } => {
                let args = StateArgs { site, call: Some(Cow::Borrowed(kind.name())) };
                self.write_complete(rank, [state.name(), "wait"], (begin, end), Some(args))
            }
            Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation } => {
                let operation = operation.map(|kind| Cow::Borrowed(kind.name()));
                let (bytes, communicator) = (bytes.get(), communicator.get());
                let args =
                    MessageArgs { from: from.get(), to: to.get(), bytes, tag, communicator, operation };
                self.write_message((from, sent), (to, arrived), args)
            }
        }
    }

    /// Writes a counter: a part of the machine is a process, behind those of the ranks.
    pub(crate) fn write_counter(&mut self, counter: &Counter) -> io::Result<()> {
        let number = match self.parts.iter().position(|part| *part == counter.part) {
            Some(number) => number,
            None => {
                self.parts.push(counter.part.clone());
                self.parts.len() - 1
            }
        };
        let pid = PARTS + number as u64;
        let name = Metadata::Name(counter.part.clone());
        self.write_event(&TraceEvent::Metadata { name: "process_name".into(), pid, tid: pid, args: name })?;
        counter.values.iter().try_for_each(|&(at, value)| {
            let args = CounterArgs { value };
            self.write_event(&TraceEvent::Counter {
                name: Cow::Borrowed(&counter.name),
                pid,
                ts: micros(at),
                args,
            })
        })
    }

    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.file.write_all(b"\n]}\n")?;
        match self.file {
            Output::Plain(draft) => draft.commit(),
            Output::Gzip(buffer) => {
                let encoder = buffer.into_inner().map_err(IntoInnerError::into_error)?;
                encoder.finish()?.commit()
            }
        }
    }

    fn write_complete(
        &mut self,
        rank: Rank,
        [name, category]: [&'static str; 2],
        (begin, end): (SimTime, SimTime),
        args: Option<StateArgs<'_>>,
    ) -> io::Result<()> {
        let (pid, tid) = state_thread(rank);
        let (name, cat, args) = (Cow::Borrowed(name), Cow::Borrowed(category), args.map(Args::State));
        self.write_event(&TraceEvent::Complete {
            name,
            cat,
            ts: micros(begin),
            dur: duration_micros(end - begin),
            pid,
            tid,
            args,
        })
    }

    /// Writes both ends of a message, and the arrow.
    fn write_message(
        &mut self,
        (from, sent): (Rank, SimTime),
        (to, arrived): (Rank, SimTime),
        args: MessageArgs<'_>,
    ) -> io::Result<()> {
        let id = self.messages;
        self.messages += 1;
        let end = |name, (pid, tid), at, args| TraceEvent::Complete {
            name: Cow::Borrowed(name),
            cat: MESSAGE,
            ts: micros(at),
            dur: 0.0,
            pid,
            tid,
            args: Some(Args::Message(args)),
        };
        let (pid, tid) = message_thread(from);
        self.write_event(&end("sent", (pid, tid), sent, args.clone()))?;
        self.write_event(&TraceEvent::FlowStart {
            name: MESSAGE,
            cat: MESSAGE,
            id,
            ts: micros(sent),
            pid,
            tid,
        })?;
        let (pid, tid) = message_thread(to);
        self.write_event(&end("arrived", (pid, tid), arrived, args))?;
        let bp = Cow::Borrowed("e");
        self.write_event(&TraceEvent::FlowEnd {
            name: MESSAGE,
            cat: MESSAGE,
            id,
            bp,
            ts: micros(arrived),
            pid,
            tid,
        })
    }

    /// Writes the names of a rank's process and threads.
    fn write_names(&mut self, rank: Rank) -> io::Result<()> {
        let mut say = |name, (pid, tid), args| {
            self.write_event(&TraceEvent::Metadata { name: Cow::Borrowed(name), pid, tid, args })
        };
        say("process_name", state_thread(rank), Metadata::Name(format!("rank {rank}")))?;
        say("process_sort_index", state_thread(rank), Metadata::SortIndex(rank.get()))?;
        say("thread_name", state_thread(rank), Metadata::Name("states".to_owned()))?;
        say("thread_name", message_thread(rank), Metadata::Name("messages".to_owned()))
    }

    fn write_event(&mut self, event: &TraceEvent<'_>) -> io::Result<()> {
        self.file.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        Ok(serde_json::to_writer(&mut self.file, event)?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(draft) => draft.write(bytes),
            Self::Gzip(buffer) => buffer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(draft) => draft.flush(),
            Self::Gzip(buffer) => buffer.flush(),
        }
    }
}

fn category(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Compute => "compute",
        ActionKind::Sleep => "sleep",
        ActionKind::Copy => "copy",
        _ => "mpi",
    }
}

/// Returns the process and the thread of a rank's states. Viewers reserve number 0.
fn state_thread(rank: Rank) -> (u64, u64) {
    let rank = u64::from(rank.get());
    (rank + 1, 2 * rank + 1)
}

/// Returns the process and the thread of a rank's messages.
fn message_thread(rank: Rank) -> (u64, u64) {
    let (pid, tid) = state_thread(rank);
    (pid, tid + 1)
}

/// Converts to microseconds, the unit of the format; with six decimals, exact below 1000 s.
fn micros(at: SimTime) -> f64 {
    at.as_picos() as f64 / 1e6
}

fn duration_micros(time: SimDuration) -> f64 {
    time.as_picos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;
    use crate::Format;
    use crate::sample;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct TraceFile<'a> {
        display_time_unit: String,
        #[serde(borrow)]
        trace_events: Vec<TraceEvent<'a>>,
    }

    fn text(name: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let summary = sample::write(Format::Chrome, &path);
        assert_eq!(summary.bytes, std::fs::metadata(&path).unwrap().len());
        let file = std::fs::File::open(&path).unwrap();
        let mut text = String::new();
        if name.ends_with(".gz") {
            flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        } else {
            std::io::BufReader::new(file).read_to_string(&mut text).unwrap();
        }
        text
    }

    /// Checks the fields of each phase against the format.
    #[test]
    fn fields_follow_the_format() {
        let text = text("run.json");
        let TraceFile { display_time_unit, trace_events } = serde_json::from_str(&text).unwrap();
        assert_eq!(display_time_unit, "ns");
        let count =
            |test: fn(&TraceEvent<'_>) -> bool| trace_events.iter().filter(|event| test(event)).count();
        assert_eq!(count(|event| matches!(event, TraceEvent::Metadata { .. })), 4 * 3, "of three ranks");
        assert_eq!(count(|event| matches!(event, TraceEvent::Complete { args: None, .. })), 4);
        let is_state =
            |event: &TraceEvent<'_>| matches!(event, TraceEvent::Complete { args: Some(Args::State(_)), .. });
        assert_eq!(count(is_state), 2 + 1, "those with a call site, and the wait");
        let is_message = |event: &TraceEvent<'_>| {
            matches!(event, TraceEvent::Complete { args: Some(Args::Message(_)), .. })
        };
        assert_eq!(count(is_message), 2 * 2);
        let wait = TraceEvent::Complete {
            name: "late_sender".into(),
            cat: "wait".into(),
            ts: 1.0,
            dur: 4.0,
            pid: 2,
            tid: 3,
            args: Some(Args::State(StateArgs { site: Some("in.c:7".into()), call: Some("recv".into()) })),
        };
        assert!(trace_events.contains(&wait));
        let name = TraceEvent::Metadata {
            name: "process_name".into(),
            pid: 10,
            tid: 19,
            args: Metadata::Name("rank 9".into()),
        };
        assert!(trace_events.contains(&name), "a rank outside has a name, too");
        let line = r#"{"ph":"M","name":"process_sort_index","pid":10,"tid":19,"args":{"sort_index":9}}"#;
        assert!(text.contains(line), "{text}");
        assert_eq!(text, self::text("run.json.gz"));
    }

    /// Viewers bind the ends of an arrow to the event before on the thread: that of the end of the message.
    #[test]
    fn arrows_join_the_ends_of_messages() {
        let text = text("run.json");
        let TraceFile { trace_events, .. } = serde_json::from_str(&text).unwrap();
        let (mut last, mut arrows) = (None, BTreeMap::new());
        for event in trace_events {
            match (event, last.take()) {
                (
                    TraceEvent::Complete { name, ts, dur, pid, tid, args: Some(Args::Message(args)), .. },
                    _,
                ) => {
                    assert_eq!(dur, 0.0);
                    last = Some((name, ts, pid, tid, args));
                }
                (TraceEvent::FlowStart { id, ts, pid, tid, .. }, Some((name, at, process, thread, args))) => {
                    assert_eq!((&*name, at, process, thread), ("sent", ts, pid, tid));
                    assert_eq!(arrows.insert(id, (ts, args)).map(|(ts, _)| ts), None);
                }
                (
                    TraceEvent::FlowEnd { id, ts, pid, tid, bp, .. },
                    Some((name, at, process, thread, args)),
                ) => {
                    assert_eq!((&*name, at, process, thread, &*bp), ("arrived", ts, pid, tid, "e"));
                    let (sent, of_start) = arrows.remove(&id).unwrap();
                    assert_eq!(args, of_start);
                    assert_eq!(
                        (pid, ts - sent),
                        (u64::from(args.to) + 1, if args.to == 1 { 2.0 } else { 1.0 })
                    );
                    assert_eq!(args.operation.as_deref(), (args.to == 9).then_some("bcast"));
                }
                (TraceEvent::FlowStart { .. } | TraceEvent::FlowEnd { .. }, None) => {
                    panic!("an arrow of nothing")
                }
                _ => {}
            }
        }
        assert!(arrows.is_empty());
    }

    #[test]
    fn times_keep_their_picoseconds() {
        let write = |picos| serde_json::to_string(&micros(SimTime::from_picos(picos))).unwrap();
        assert_eq!(write(17_121_204_000_499), "17121204.000499");
        assert_eq!(write(999_999_999_999_999), "999999999.999999");
        assert_eq!(write(1), "1e-6");
    }
}
