//! Timelines in the Open Trace Format 2.
//!
//! A rank is a location; its states are regions, and wait states are regions inside them. All messages are on one
//! communicator of all ranks of the trace, in order, whatever communicator they have in the program.
//!
//! Tools expect messages inside the calls that send and receive them. A message that arrives when a call ends is
//! received in that call. A message sent at some time belongs to a call without duration at that time, else to the call
//! that ends then, else to the one that begins.

use std::io;
use std::path::{Path, PathBuf};

use ::otf2::writer::{Archive, Definitions, Otf2Error, Role};
use mpi_model::{ActionKind, Event, WaitState};
use pdes_core::{Bytes, Rank, SimTime};
use tempfile::TempDir;

/// Clock resolution \[ticks/s\].
const RESOLUTION: u64 = 1_000_000_000_000;

/// Writer of an OTF2 trace.
#[derive(Debug)]
pub(crate) struct Otf2Writer {
    archive: Archive,
    /// Temporary directory of the archive until it is complete.
    draft: TempDir,
    directory: PathBuf,
    name: String,
    ranks: Vec<Rank>,
    /// Number of events of each completed rank.
    events: Vec<u64>,
    rank: Option<Rank>,
    pending: PendingEvents,
    /// Open state, and the open wait state inside it.
    state: Option<OpenRegion>,
    wait: Option<OpenRegion>,
    end: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct OpenRegion {
    kind: ActionKind,
    region: u32,
    end: SimTime,
}

/// Events of a rank at one time, collected until they can be ordered.
#[derive(Debug, Default)]
struct PendingEvents {
    at: SimTime,
    received: Vec<(Rank, u32, Bytes)>,
    sent: Vec<(Rank, u32, Bytes)>,
    /// Calls without duration.
    zero_length_calls: Vec<ActionKind>,
    state: Option<OpenRegion>,
    wait: Option<OpenRegion>,
}

impl Otf2Writer {
    pub(crate) fn create(path: &Path, ranks: &[Rank]) -> io::Result<Self> {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new(".")).to_owned();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or("timeline");
        let name = file.strip_suffix(".otf2").unwrap_or(file).to_owned();
        let draft = tempfile::tempdir_in(&directory)?;
        let archive = Archive::create(draft.path(), &name).map_err(to_io_error)?;
        Ok(Self {
            archive,
            draft,
            directory,
            name,
            ranks: ranks.to_vec(),
            events: Vec::new(),
            rank: None,
            pending: PendingEvents::default(),
            state: None,
            wait: None,
            end: SimTime::ZERO,
        })
    }

    /// Writes an event. Events come by rank, and messages at both of their ends.
    pub(crate) fn write(&mut self, event: &Event, is_receipt: bool) -> io::Result<()> {
        let (rank, at, end) = match *event {
            Event::State { rank, begin, end, .. } | Event::Wait { rank, begin, end, .. } => {
                (rank, begin, end)
            }
            Event::Message { to, arrived, .. } if is_receipt => (to, arrived, arrived),
            Event::Message { from, sent, .. } => (from, sent, sent),
        };
        self.advance_to(rank, at).map_err(to_io_error)?;
        self.end = self.end.max(end);
        match *event {
            Event::State { kind, begin, end, .. } if begin == end => {
                self.pending.zero_length_calls.push(kind)
            }
            Event::State { kind, end, .. } => {
                self.pending.state = Some(OpenRegion { kind, region: region(kind), end });
            }
            Event::Wait { kind, state, end, .. } => {
                self.pending.wait = Some(OpenRegion { kind, region: region_of_wait(state), end });
            }
            Event::Message { from, bytes, tag, .. } if is_receipt => {
                self.pending.received.push((from, tag, bytes));
            }
            Event::Message { to, bytes, tag, .. } => self.pending.sent.push((to, tag, bytes)),
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.finish_rank().map_err(to_io_error)?;
        let mut definitions = self.archive.into_definitions().map_err(to_io_error)?;
        define(&mut definitions, &self.ranks, &self.events, self.end).map_err(to_io_error)?;
        definitions.close().map_err(to_io_error)?;
        replace(self.draft.path(), &self.directory, &self.name)
    }

    /// Advances to a time on a rank: writes all events before it.
    fn advance_to(&mut self, rank: Rank, at: SimTime) -> Result<(), Otf2Error> {
        if self.rank != Some(rank) {
            self.finish_rank()?;
            self.archive.begin_location(rank.get().into())?;
            self.rank = Some(rank);
            self.pending.at = at;
        }
        if self.pending.at != at {
            self.write_pending()?;
            self.pending.at = at;
        }
        Ok(())
    }

    fn finish_rank(&mut self) -> Result<(), Otf2Error> {
        if self.rank.take().is_some() {
            self.write_pending()?;
            self.leave(SimTime::MAX)?;
            self.events.push(self.archive.end_location()?);
        }
        Ok(())
    }

    /// Writes the events of the current time, ordered so that regions nest and messages lie inside calls.
    fn write_pending(&mut self) -> Result<(), Otf2Error> {
        let PendingEvents { at, received, mut sent, zero_length_calls, state, wait } =
            std::mem::take(&mut self.pending);
        let ticks = at.as_picos();
        // Order: leave regions that ended before, receive, send in the call that ends now, leave it, then begin new
        // regions.
        self.leave(SimTime::from_picos(ticks.saturating_sub(1)))?;
        for (from, tag, bytes) in received {
            self.archive.receive(ticks, self.member(from), tag, bytes.get())?;
        }
        let sender = zero_length_calls.iter().rposition(|&kind| may_send(kind));
        let ends_here = self.state.is_some_and(|open| open.end == at && may_send(open.kind));
        if sender.is_none() && (ends_here || state.is_none()) {
            self.send(ticks, &mut sent)?;
        }
        self.leave(at)?;
        for (index, kind) in zero_length_calls.into_iter().enumerate() {
            self.archive.enter(ticks, region(kind))?;
            if sender == Some(index) {
                self.send(ticks, &mut sent)?;
            }
            self.archive.leave(ticks, region(kind))?;
        }
        if let Some(open) = state {
            self.archive.enter(ticks, open.region)?;
            self.state = state;
        }
        self.send(ticks, &mut sent)?;
        if let Some(open) = wait {
            self.archive.enter(ticks, open.region)?;
            self.wait = wait;
        }
        Ok(())
    }

    fn send(&mut self, ticks: u64, sent: &mut Vec<(Rank, u32, Bytes)>) -> Result<(), Otf2Error> {
        for (to, tag, bytes) in sent.drain(..) {
            let to = self.member(to);
            self.archive.send(ticks, to, tag, bytes.get())?;
        }
        Ok(())
    }

    /// Leaves regions that have ended by a time, the inner one first.
    fn leave(&mut self, by: SimTime) -> Result<(), Otf2Error> {
        for open in [&mut self.wait, &mut self.state] {
            if let Some(OpenRegion { region, end, .. }) = *open
                && end <= by
            {
                self.archive.leave(end.as_picos(), region)?;
                *open = None;
            }
        }
        Ok(())
    }

    /// Returns the number of a rank in the communicator.
    fn member(&self, rank: Rank) -> u32 {
        self.ranks.binary_search(&rank).expect("all ranks of a timeline are known") as u32
    }
}

fn to_io_error(error: Otf2Error) -> io::Error {
    io::Error::other(error)
}

fn region(kind: ActionKind) -> u32 {
    kind as u32
}

fn region_of_wait(state: WaitState) -> u32 {
    ActionKind::ALL.len() as u32 + state as u32
}

/// Returns true if a call may send messages.
fn may_send(kind: ActionKind) -> bool {
    use ActionKind::{Copy, Finalize, Isend, Marker, Send, SendRecv, Start};
    matches!(kind, Send | Isend | SendRecv | Start)
        || (kind >= ActionKind::Barrier && !matches!(kind, Copy | Marker | Finalize))
}

fn role(kind: ActionKind) -> Role {
    match kind {
        ActionKind::Compute | ActionKind::Copy | ActionKind::Sleep | ActionKind::Marker => Role::User,
        ActionKind::Finalize => Role::Call,
        ActionKind::Barrier => Role::Barrier,
        kind if kind < ActionKind::Barrier => Role::PointToPoint,
        _ => Role::Collective,
    }
}

fn define(
    definitions: &mut Definitions,
    ranks: &[Rank],
    events: &[u64],
    end: SimTime,
) -> Result<(), Otf2Error> {
    definitions.clock(RESOLUTION, end.as_picos().saturating_add(1))?;
    let machine = definitions.string("simulated machine")?;
    definitions.machine(machine)?;
    for kind in ActionKind::ALL {
        let name = definitions.string(kind.name())?;
        definitions.region(region(kind), name, role(kind))?;
    }
    for state in WaitState::ALL {
        let name = definitions.string(state.name())?;
        definitions.region(region_of_wait(state), name, Role::Artificial)?;
    }
    for ((process, &rank), &events) in (0..).zip(ranks).zip(events) {
        let name = definitions.string(&format!("rank {rank}"))?;
        definitions.location(rank.get().into(), process, name, events)?;
    }
    let name = definitions.string("MPI_COMM_WORLD")?;
    let locations: Vec<u64> = ranks.iter().map(|rank| rank.get().into()).collect();
    definitions.communicator(name, &locations)
}

/// Moves an archive to another directory and replaces one of that name there; returns its size \[B\].
fn replace(from: &Path, to: &Path, name: &str) -> io::Result<u64> {
    let (anchor, definitions) = (format!("{name}.otf2"), format!("{name}.def"));
    if to.join(&anchor).exists() {
        remove(to, name, &anchor)?;
    }
    let events = std::fs::read_dir(from.join(name))?.map(|entry| entry?.metadata());
    let mut bytes = events.map(|file| file.map(|file| file.len())).sum::<io::Result<u64>>()?;
    // The anchor file comes last: until then readers find no archive.
    for part in [name, &definitions, &anchor] {
        if part != name {
            bytes += std::fs::metadata(from.join(part))?.len();
        }
        std::fs::rename(from.join(part), to.join(part))?;
    }
    Ok(bytes)
}

/// Removes an archive, but no other files in its directory.
fn remove(directory: &Path, name: &str, anchor: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(directory.join(name))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "evt" || extension == "def") {
            std::fs::remove_file(path)?;
        }
    }
    std::fs::remove_dir(directory.join(name))?;
    std::fs::remove_file(directory.join(format!("{name}.def")))?;
    std::fs::remove_file(directory.join(anchor))
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::sample;

    /// Compares the output of `otf2-print`: kind, location, time \[us\], and the region or the other end.
    #[test]
    fn otf2_print_reads_what_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.otf2");
        let first = sample::write(Format::Otf2, &path);
        assert_eq!(sample::write(Format::Otf2, &path), first, "in the index of the one before");
        let mut names: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["run", "run.def", "run.otf2"]);
        let print =
            |arguments: &[&str]| std::process::Command::new("otf2-print").args(arguments).arg(&path).output();
        let Ok(output) = print(&["-Werror"]) else {
            return sample::skip("otf2-print");
        };
        let (text, told) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && told.is_empty(), "{told}");
        let events: Vec<String> = text.lines().filter_map(event).collect();
        let of = |location: &str| {
            let is_of = |event: &&String| event.split(' ').nth(1) == Some(location);
            events.iter().filter(is_of).cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            of("0"),
            [
                "ENTER 0 0 compute",
                "LEAVE 0 5 compute",
                "ENTER 0 5 send",
                "MPI_SEND 0 5 1",
                "LEAVE 0 5 send",
                "ENTER 0 5 finalize",
                "LEAVE 0 5 finalize"
            ]
        );
        assert_eq!(
            of("1"),
            [
                "ENTER 1 0 compute",
                "LEAVE 1 1 compute",
                "ENTER 1 1 recv",
                "ENTER 1 1 late_sender",
                "LEAVE 1 5 late_sender",
                "MPI_RECV 1 7 0",
                "LEAVE 1 7 recv",
                "ENTER 1 7 bcast",
                "MPI_SEND 1 7 2",
                "LEAVE 1 8 bcast"
            ]
        );
        assert_eq!(of("9"), ["MPI_RECV 9 8 1"]);
        let definitions = print(&["--show-global-defs", "-Werror"]).unwrap();
        let text = String::from_utf8(definitions.stdout).unwrap();
        assert!(definitions.status.success());
        for words in ["rank 9", "MPI_COMM_WORLD", "COLL_OTHER", "late_sender", "1000000000000"] {
            assert!(text.contains(words), "{words:?} in:\n{text}");
        }
    }

    /// Parses a line such as `MPI_SEND  0  5000000  Receiver: 1 ("rank 1" <1>), Communicator: ..`.
    fn event(line: &str) -> Option<String> {
        let mut words = line.split_whitespace();
        let (kind, location, time) = (words.next()?, words.next()?, words.next()?.parse::<u64>().ok()?);
        let rest = line.split_once(':')?.1.trim();
        let what = match kind {
            "ENTER" | "LEAVE" => rest.split('"').nth(1)?,
            _ => rest.split_whitespace().next()?,
        };
        Some(format!("{kind} {location} {} {what}", time / 1_000_000))
    }
}
