//! Timelines as Paje traces.
//!
//! The format is "Paje trace file" (1.2.6) as pajeng reads it: a header that defines events by their fields, then
//! events in the order of time. A rank is a container with two types of states, its calls and its wait states, and
//! messages are links between ranks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::Path;

use mpi_model::{ActionKind, Event, WaitState};
use outputs::AtomicFile;
use pdes_core::{Rank, SimTime};

/// Definitions of event types, by number.
const HEADER: &str = "\
%EventDef PajeDefineContainerType 0
%       Alias string
%       Type string
%       Name string
%EndEventDef
%EventDef PajeDefineStateType 1
%       Alias string
%       Type string
%       Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
%       Alias string
%       Type string
%       StartContainerType string
%       EndContainerType string
%       Name string
%EndEventDef
%EventDef PajeDefineEntityValue 3
%       Alias string
%       Type string
%       Name string
%       Color color
%EndEventDef
%EventDef PajeCreateContainer 4
%       Time date
%       Alias string
%       Type string
%       Container string
%       Name string
%EndEventDef
%EventDef PajeDestroyContainer 5
%       Time date
%       Type string
%       Name string
%EndEventDef
%EventDef PajePushState 6
%       Time date
%       Type string
%       Container string
%       Value string
%EndEventDef
%EventDef PajePopState 7
%       Time date
%       Type string
%       Container string
%EndEventDef
%EventDef PajeStartLink 8
%       Time date
%       Type string
%       Container string
%       Value string
%       StartContainer string
%       Key string
%       Bytes int
%       Tag int
%       Communicator int
%EndEventDef
%EventDef PajeEndLink 9
%       Time date
%       Type string
%       Container string
%       Value string
%       EndContainer string
%       Key string
%EndEventDef
0 P 0 Program
0 R P Rank
1 S R State
1 W R Wait
2 L P R R Message
";

/// Writer of a Paje trace.
#[derive(Debug)]
pub(crate) struct PajeWriter {
    file: AtomicFile,
    ranks: Vec<Rank>,
    /// Ends of what has begun: a state and a wait state of each rank, and messages in flight.
    pending_ends: BinaryHeap<Reverse<(SimTime, Ending)>>,
    /// Last time written.
    now: SimTime,
    messages: u64,
}

/// End of a state, a wait state or a message; ends at the same time are written in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Wait(Rank),
    State(Rank),
    Message { key: u64, to: Rank, operation: Option<ActionKind> },
}

impl PajeWriter {
    pub(crate) fn create(path: &Path, ranks: &[Rank]) -> io::Result<Self> {
        let mut file = AtomicFile::create(path)?;
        file.write_all(HEADER.as_bytes())?;
        for kind in ActionKind::ALL {
            writeln!(file, "3 s{} S {} {}", kind as u32, kind.name(), color(kind))?;
            writeln!(file, "3 m{} L {} {}", kind as u32, kind.name(), color(kind))?;
        }
        writeln!(file, "3 m L message \"0.2 0.2 0.2\"")?;
        for state in WaitState::ALL {
            writeln!(file, "3 w{} W {} \"0.9 0.1 0.1\"", state as u32, state.name())?;
        }
        writeln!(file, "4 {} p P 0 program", SimTime::ZERO)?;
        for rank in ranks {
            writeln!(file, "4 {} r{rank} R p rank-{rank}", SimTime::ZERO)?;
        }
        Ok(Self {
            file,
            ranks: ranks.to_vec(),
            pending_ends: BinaryHeap::new(),
            now: SimTime::ZERO,
            messages: 0,
        })
    }

    /// Writes an event. Events come in the order of time.
    pub(crate) fn write(&mut self, event: &Event) -> io::Result<()> {
        match *event {
            Event::State { rank, kind, begin, end, .. } => {
                self.advance_to(begin)?;
                writeln!(self.file, "6 {begin} S r{rank} s{}", kind as u32)?;
                self.pending_ends.push(Reverse((end, Ending::State(rank))));
            }
            Event::Wait { rank, state, begin, end, .. } => {
                self.advance_to(begin)?;
                writeln!(self.file, "6 {begin} W r{rank} w{}", state as u32)?;
                self.pending_ends.push(Reverse((end, Ending::Wait(rank))));
            }
            Event::Message { from, to, sent, arrived, bytes, tag, communicator, operation } => {
                self.advance_to(sent)?;
                let key = self.messages;
                self.messages += 1;
                let (value, bytes) = (value(operation), bytes.get());
                writeln!(self.file, "8 {sent} L p {value} r{from} {key} {bytes} {tag} {communicator}")?;
                self.pending_ends.push(Reverse((arrived, Ending::Message { key, to, operation })));
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.advance_to(SimTime::MAX)?;
        let now = self.now;
        for rank in &self.ranks {
            writeln!(self.file, "5 {now} R r{rank}")?;
        }
        writeln!(self.file, "5 {now} P p")?;
        self.file.commit()
    }

    /// Writes all ends up to a time.
    fn advance_to(&mut self, at: SimTime) -> io::Result<()> {
        while let Some(&Reverse((end, ending))) = self.pending_ends.peek()
            && end <= at
        {
            self.pending_ends.pop();
            self.now = end;
            match ending {
                Ending::Wait(rank) => writeln!(self.file, "7 {end} W r{rank}")?,
                Ending::State(rank) => writeln!(self.file, "7 {end} S r{rank}")?,
                Ending::Message { key, to, operation } => {
                    writeln!(self.file, "9 {end} L p {} r{to} {key}", value(operation))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the link value of a message.
fn value(operation: Option<ActionKind>) -> String {
    operation.map_or_else(|| "m".to_owned(), |kind| format!("m{}", kind as u32))
}

/// Returns the color of a call: computation is green, waiting for requests yellow, other point-to-point calls blue, the
/// rest violet.
fn color(kind: ActionKind) -> &'static str {
    use ActionKind::{Compute, Marker, Sleep, Wait, Waitall, Waitany, Waitsome};
    match kind {
        Compute => "\"0.2 0.7 0.3\"",
        Sleep | Marker => "\"0.8 0.8 0.8\"",
        Wait | Waitall | Waitany | Waitsome => "\"0.9 0.7 0.1\"",
        kind if kind < ActionKind::Barrier => "\"0.2 0.4 0.9\"",
        _ => "\"0.6 0.2 0.7\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample;

    #[test]
    fn lines_are_in_the_order_of_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.trace");
        let summary = sample::write(Format::Paje, &path);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(summary.bytes, text.len() as u64);
        let body = text.split("2 L P R R Message\n").nth(1).unwrap();
        let lines: Vec<&str> = body.lines().filter(|line| !line.starts_with('3')).collect();
        let kind = |kind: ActionKind| kind as u32;
        use ActionKind::{Bcast, Compute, Finalize, Recv, Send};
        let expected = [
            "4 0.000000000000 p P 0 program".to_owned(),
            "4 0.000000000000 r0 R p rank-0".to_owned(),
            "4 0.000000000000 r1 R p rank-1".to_owned(),
            "4 0.000000000000 r9 R p rank-9".to_owned(),
            format!("6 0.000000000000 S r0 s{}", kind(Compute)),
            format!("6 0.000000000000 S r1 s{}", kind(Compute)),
            "7 0.000001000000 S r1".to_owned(),
            format!("6 0.000001000000 S r1 s{}", kind(Recv)),
            "6 0.000001000000 W r1 w0".to_owned(),
            "7 0.000005000000 W r1".to_owned(),
            "7 0.000005000000 S r0".to_owned(),
            format!("6 0.000005000000 S r0 s{}", kind(Send)),
            "7 0.000005000000 S r0".to_owned(),
            format!("6 0.000005000000 S r0 s{}", kind(Finalize)),
            "7 0.000005000000 S r0".to_owned(),
            "8 0.000005000000 L p m r0 0 984 7 0".to_owned(),
            "7 0.000007000000 S r1".to_owned(),
            "9 0.000007000000 L p m r1 0".to_owned(),
            format!("6 0.000007000000 S r1 s{}", kind(Bcast)),
            format!("8 0.000007000000 L p m{} r1 1 984 7 0", kind(Bcast)),
            "7 0.000008000000 S r1".to_owned(),
            format!("9 0.000008000000 L p m{} r9 1", kind(Bcast)),
            "5 0.000008000000 R r0".to_owned(),
            "5 0.000008000000 R r1".to_owned(),
            "5 0.000008000000 R r9".to_owned(),
            "5 0.000008000000 P p".to_owned(),
        ];
        assert_eq!(lines, expected);
    }

    /// Debian's pajeng has `pj_dump`, which refuses what is no Paje trace; earlier ones have `pj_validate` for that.
    #[test]
    fn pajeng_reads_the_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.trace");
        sample::write(Format::Paje, &path);
        if let Ok(output) = std::process::Command::new("pj_validate").arg(&path).output() {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let Ok(output) = std::process::Command::new("pj_dump").arg(&path).output() else {
            return sample::skip("pj_dump");
        };
        let (found, told) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && told.is_empty(), "{told}");
        let lines: Vec<&str> = found.lines().collect();
        for expected in [
            "Container, program, Rank, 0, 8e-06, 8e-06, rank-1",
            "State, rank-1, State, 0.000001, 0.000007, 0.000006, 0.000000, recv",
            "State, rank-1, Wait, 0.000001, 0.000005, 0.000004, 0.000000, late_sender",
            "State, rank-0, State, 0.000005, 0.000005, 0.000000, 0.000000, send",
            "Link, program, Message, 0.000005, 0.000007, 0.000002, message, rank-0, rank-1, 0",
            "Link, program, Message, 0.000007, 0.000008, 0.000001, bcast, rank-1, rank-9, 1",
        ] {
            assert!(lines.contains(&expected), "{expected:?} in:\n{found}");
        }
    }
}
