//! The records of a trace, by ranks.

use std::path::Path;
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Group, MAX_NANOS, TraceError};

use super::call::{Call, CollectiveFields};
use super::fields::{Fields, excerpt, invalid, parse};
use super::header::Header;
use super::labels::{Labels, is_mpi};
use super::messages::{Assigned, Message, assign};
use super::{LineError, ParaverError};
use crate::error::InputError;
use crate::text::Lines;
use crate::timed::Between;

/// Number of the state of a rank that computes.
const RUNNING: u64 = 1;

/// All that is read of a trace.
pub(super) struct Recording {
    pub(super) labels: Labels,
    pub(super) communicators: Communicators,
    /// The tasks, by ranks.
    pub(super) tasks: Vec<Task>,
}

/// The records of the first thread of a task.
#[derive(Default)]
pub(super) struct Task {
    /// The states, in the order of time; they do not overlap.
    pub(super) states: Vec<State>,
    /// The calls, in the order of time; they do not overlap.
    pub(super) calls: Vec<Call>,
    /// The messages that calls send, and those that they receive, in the order of calls.
    pub(super) sent: Vec<Assigned>,
    pub(super) received: Vec<Assigned>,
    /// End of the calls that had begun before the trace \[ns\]; 0 if there are none.
    pub(super) cut_until: u64,
    /// True if one of them was a collective operation.
    pub(super) begins_in_collective: bool,
    /// True if the last call has not ended; in the end, if the trace ends in it.
    pub(super) is_in_call: bool,
    /// Time of the last event \[ns\].
    now: u64,
}

/// A state of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Begin \[ns\].
    pub(super) begin: u64,
    /// End \[ns\], not before the begin.
    pub(super) end: u64,
    /// What the rank does outside MPI.
    pub(super) between: Between,
    /// Its line.
    pub(super) line: u64,
}

/// The communicators of a trace.
#[derive(Default)]
pub(super) struct Communicators {
    by_id: FxHashMap<u64, usize>,
    pub(super) list: Vec<Communicator>,
}

/// A communicator.
pub(super) struct Communicator {
    /// Its number in the file.
    pub(super) number: u64,
    /// Its identifier in the trace; that of the world if all ranks are members in their order.
    pub(super) id: CommId,
    /// The members in the order of their ranks in it.
    pub(super) group: Arc<Group>,
    pub(super) members: Vec<Rank>,
}

/// Returns the number of tasks in the header.
pub(super) fn count_tasks(path: &Path) -> Result<u32, TraceError> {
    read_header(&mut Lines::open(path)?).map(|header| header.tasks)
}

fn read_header(lines: &mut Lines<'_>) -> Result<Header, TraceError> {
    match lines.next_or_comment()? {
        Some(line) => {
            let (number, header) = (line.number, Header::parse(line.text));
            header.map_err(|kind| LineError { line: number, kind }.locate(lines.file()))
        }
        None => Err(InputError::Empty { file: lines.file().to_path_buf() }.into()),
    }
}

impl Recording {
    /// Reads a trace and its `.pcf`.
    pub(super) fn read(path: &Path, labels: &Path) -> Result<Self, TraceError> {
        let mut lines = Lines::open(path)?;
        let header = read_header(&mut lines)?;
        let labels = Labels::read(labels, path)?;
        let mut reader =
            Reader { header, labels, communicators: Communicators::default(), tasks: Vec::new() };
        reader.tasks.resize_with(header.tasks as usize, Task::default);
        let mut messages = Vec::new();
        while let Some(line) = lines.next()? {
            let number = line.number;
            let read = reader.record(line.text, number, &mut messages);
            read.map_err(|kind| LineError { line: number, kind }.locate(path))?;
        }
        reader.finish(&messages).map_err(|error| error.locate(path))
    }
}

struct Reader {
    header: Header,
    labels: Labels,
    communicators: Communicators,
    tasks: Vec<Task>,
}

impl Reader {
    fn record(&mut self, text: &[u8], line: u64, messages: &mut Vec<Message>) -> Result<(), ParaverError> {
        let mut fields = Fields::new(text);
        match fields.text("kind of the record")? {
            b"1" => self.state(fields, line),
            b"2" => self.events(fields, line),
            b"3" => {
                messages.push(self.message(fields, line)?);
                Ok(())
            }
            b"c" => self.communicator(fields),
            // An intercommunicator: a call on it is an error, as its members are not kept.
            b"i" => Ok(()),
            found => Err(ParaverError::UnknownRecord { found: excerpt(found) }),
        }
    }

    /// Reads `1:cpu:application:task:thread:begin:end:state`.
    fn state(&mut self, mut fields: Fields<'_>, line: u64) -> Result<(), ParaverError> {
        let (rank, thread) = self.thread(&mut fields)?;
        let (begin, end) = (self.time(&mut fields, "begin")?, self.time(&mut fields, "end")?);
        let is_running = fields.number("state")? == RUNNING;
        let between = if is_running { Between::Computation } else { Between::Idleness };
        fields.finish()?;
        if end < begin {
            return Err(ParaverError::Backwards { what: "state", begin, end });
        }
        if thread != 1 {
            return Ok(());
        }
        let states = &mut self.tasks[rank.index()].states;
        let before = states.last().map_or(0, |state| state.end);
        if begin < before {
            return Err(ParaverError::Order { rank, what: "a state", time: begin, before });
        }
        states.push(State { begin, end, between, line });
        Ok(())
    }

    /// Reads `2:cpu:application:task:thread:time:type:value...`.
    fn events(&mut self, mut fields: Fields<'_>, line: u64) -> Result<(), ParaverError> {
        let (rank, thread) = self.thread(&mut fields)?;
        let time = self.time(&mut fields, "time")?;
        let mut collective = CollectiveFields::default();
        let task = &mut self.tasks[rank.index()];
        if thread == 1 {
            let before = std::mem::replace(&mut task.now, time);
            if time < before {
                return Err(ParaverError::Order { rank, what: "an event", time, before });
            }
        }
        while !fields.is_at_end() {
            match fields.number("type of an event")? {
                event if is_mpi(event) && thread != 1 => return Err(ParaverError::Thread { rank, thread }),
                event if is_mpi(event) => {
                    let value = fields.number(VALUE)?;
                    task.mpi_event(rank, (event, value), (time, self.header.end), line, &self.labels)?;
                }
                50_100_001 => collective.sent = fields.number(VALUE)?,
                50_100_002 => collective.received = fields.number(VALUE)?,
                50_100_003 => collective.is_root = fields.number(VALUE)? != 0,
                // 0 at the end of a call, or at the ends of a cut.
                50_100_004 => {
                    collective.communicator = Some(fields.number(VALUE)?).filter(|number| *number > 0);
                }
                _ => fields.skip_number(VALUE)?,
            }
        }
        if thread == 1 && collective.communicator.is_some() && task.is_in_call {
            task.calls.last_mut().expect("a call has begun").collective = collective;
        }
        Ok(())
    }

    /// Reads `3:` and twice `cpu:application:task:thread:logical time:physical time`, then `size:tag`.
    fn message(&self, mut fields: Fields<'_>, line: u64) -> Result<Message, ParaverError> {
        let mut side = || -> Result<_, ParaverError> {
            let (rank, thread) = self.thread(&mut fields)?;
            if thread != 1 {
                return Err(ParaverError::Thread { rank, thread });
            }
            let logical = self.time(&mut fields, "logical time")?;
            Ok((rank, logical, self.time(&mut fields, "physical time")?))
        };
        let ((from, sent, _), (to, received, arrival)) = (side()?, side()?);
        let bytes = fields.number("size")?;
        let found = fields.text("tag")?;
        let tag = parse(found).and_then(|tag| i32::try_from(tag).ok());
        let tag = tag.ok_or_else(|| invalid("tag", found, "a whole number below 2^31"))?;
        fields.finish()?;
        Ok(Message { from, sent, to, received, arrival, bytes, tag, line })
    }

    /// Reads `c:application:number:size:task...`.
    fn communicator(&mut self, mut fields: Fields<'_>) -> Result<(), ParaverError> {
        fields.index("application", 1)?;
        let tasks = u64::from(self.header.tasks);
        let number = fields.index("number of the communicator", u32::MAX.into())?;
        let len = fields.index("size of the communicator", tasks)?;
        let member = |_| fields.index("member", tasks).map(|task| Rank::new(task as u32 - 1));
        let members = (0..len).map(member).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        self.communicators.add(number, members, self.header.tasks)
    }

    /// Reads `cpu:application:task:thread`.
    fn thread(&self, fields: &mut Fields<'_>) -> Result<(Rank, u64), ParaverError> {
        fields.number("processor")?;
        fields.index("application", 1)?;
        let task = fields.index("task", self.header.tasks.into())?;
        Ok((Rank::new(task as u32 - 1), fields.index("thread", u32::MAX.into())?))
    }

    /// Reads a time \[ns\].
    fn time(&self, fields: &mut Fields<'_>, field: &'static str) -> Result<u64, ParaverError> {
        const EXPECTED: &str = "a whole number of up to 999999999999999 ns";
        let found = fields.text(field)?;
        let nanos = parse(found).and_then(|time| time.checked_mul(self.header.unit));
        nanos.filter(|nanos| *nanos <= MAX_NANOS).ok_or_else(|| invalid(field, found, EXPECTED))
    }

    fn finish(self, messages: &[Message]) -> Result<Recording, LineError> {
        let Self { header, labels, communicators, mut tasks } = self;
        for task in &mut tasks {
            // A trace that was cut may end in a call.
            let end = task.end().max(task.now);
            if let Some(call) = task.calls.last_mut() {
                call.end = if task.is_in_call { end } else { call.end };
                task.is_in_call |= call.end >= header.end;
            }
        }
        assign(messages, &mut tasks, &labels)?;
        Ok(Recording { labels, communicators, tasks })
    }
}

/// Name of the value of an event.
const VALUE: &str = "value of an event";

/// Type of the events of collective calls.
const COLLECTIVE: u64 = 50_000_002;

impl Task {
    /// Begins or ends a call, in a trace that ends at `end`.
    fn mpi_event(
        &mut self,
        rank: Rank,
        (event, value): (u64, u64),
        (time, end): (u64, u64),
        line: u64,
        labels: &Labels,
    ) -> Result<(), ParaverError> {
        let open = self.calls.last_mut().filter(|_| self.is_in_call);
        match (value, open) {
            (0, Some(call)) if call.event == event => {
                call.end = time;
                self.is_in_call = false;
            }
            // Paraver cuts with such an end of each type of event at both ends; and a call may have begun before.
            (0, None) => {
                let has_begun = self.states.first().is_some_and(|first| first.begin < time);
                if has_begun && self.calls.is_empty() && time < end {
                    self.cut_until = time;
                    self.begins_in_collective |= event == COLLECTIVE;
                }
            }
            (0, Some(_)) => {}
            (_, None) => {
                let (label, collective) = (labels.find(event, value)?, CollectiveFields::default());
                self.calls.push(Call { label, event, begin: time, end: time, line, collective });
                self.is_in_call = true;
            }
            (_, Some(outer)) => {
                let name = labels.name(labels.find(event, value)?).to_owned();
                let (outer, line) = (labels.name(outer.label).to_owned(), outer.line);
                return Err(ParaverError::NestedCall { rank, name, outer, line });
            }
        }
        Ok(())
    }

    /// Returns the end of the last state or call \[ns\].
    pub(super) fn end(&self) -> u64 {
        let state = self.states.last().map_or(0, |state| state.end);
        state.max(self.calls.last().map_or(0, |call| call.end))
    }
}

impl Communicators {
    pub(super) fn add(&mut self, number: u64, members: Vec<Rank>, tasks: u32) -> Result<(), ParaverError> {
        let twice = |field, found| ParaverError::Twice { field, found };
        let group =
            Group::new(members.iter().copied()).map_err(|rank| twice("task", u64::from(rank.get()) + 1))?;
        let is_world = members.iter().copied().eq((0..tasks).map(Rank::new));
        let id = if is_world { CommId::WORLD } else { CommId::new(number as u32) };
        if self.by_id.insert(number, self.list.len()).is_some() {
            return Err(twice("communicator", number));
        }
        self.list.push(Communicator { number, id, group: Arc::new(group), members });
        Ok(())
    }

    /// Finds the index of a communicator by its number in the file.
    pub(super) fn find(&self, number: u64) -> Option<usize> {
        self.by_id.get(&number).copied()
    }
}
