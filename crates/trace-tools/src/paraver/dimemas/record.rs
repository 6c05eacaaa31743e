//! Lines of a trace of Dimemas.

use pdes_core::{Bytes, Rank};
use trace_mmap::{MAX_RANKS, Tag};

use super::super::ParaverError;
use super::super::call::CollectiveFields;
use super::super::fields::{Fields, excerpt, invalid, parse};
use super::super::labels::{LabelId, Labels, is_mpi};
use super::{COLLECTIVES, MAGIC, OPERATIONS};

/// Longest computation \[ns\].
const MAX_NANOS: f64 = 1e18;

/// A line after the header.
pub(super) enum Line {
    Communicator {
        id: u64,
        members: Vec<Rank>,
    },
    Record(Record),
    /// Offsets, or a definition that no record needs.
    Other,
}

/// A record of a thread.
pub(super) struct Record {
    pub(super) rank: Rank,
    thread: u64,
    pub(super) content: Content,
}

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Nothing,
    Computation {
        nanos: f64,
    },
    GpuComputation,
    Message {
        message: Message,
        kind: MessageKind,
        /// True if the peer is another thread of the same task.
        is_inside: bool,
    },
    Collective(CollectiveRecord),
    /// Begin of a call of MPI.
    Begin {
        event: u64,
        value: u64,
    },
    /// End of a call of MPI, of this type.
    End {
        event: u64,
    },
    OtherEvent,
}

/// The envelope and the size of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// `None` is any task.
    pub(super) peer: Option<Rank>,
    pub(super) bytes: Bytes,
    /// `None` is any tag.
    pub(super) tag: Option<Tag>,
    pub(super) communicator: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Send { is_synchronous: bool, is_immediate: bool },
    Recv,
    Irecv,
    Wait,
}

/// A call of a collective operation, or the wait for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectiveRecord {
    /// Number of the operation, nonblocking or not.
    operation: u64,
    pub(super) communicator: u64,
    /// A flag, or the task of the root.
    root: u64,
    sent: u64,
    received: u64,
    pub(super) kind: CollectiveKindOfCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectiveKindOfCall {
    Blocking,
    /// With the task of the root.
    BlockingWithRoot,
    Nonblocking,
    Wait,
}

impl CollectiveRecord {
    /// Returns the operation, and what the call of a rank says of it.
    pub(super) fn label(
        &self,
        labels: &Labels,
        rank: Rank,
    ) -> Result<(LabelId, CollectiveFields), ParaverError> {
        let number = self.operation % COLLECTIVES.len() as u64;
        let is_reduce = COLLECTIVES[number as usize] == "Reduce";
        let is_root = if is_reduce && self.kind != CollectiveKindOfCall::Blocking {
            self.root == u64::from(rank.get())
        } else {
            self.root != 0
        };
        let fields = CollectiveFields {
            sent: self.sent,
            received: self.received,
            is_root,
            communicator: Some(self.communicator),
        };
        Ok((labels.find(OPERATIONS, number)?, fields))
    }
}

impl Record {
    /// Returns what is not in the program of the rank; `None` if the record is.
    pub(super) fn left_out(&self) -> Option<&'static str> {
        match self.content {
            _ if self.thread > 0 => {
                Some("records of threads other than the first one of their task are left out")
            }
            Content::GpuComputation => Some("computations of GPUs are left out"),
            Content::Message { is_inside: true, .. } => {
                Some("messages between threads of a task are left out")
            }
            Content::OtherEvent => Some("events other than calls of MPI are left out"),
            _ => None,
        }
    }
}

/// Reads the header, which tells the number of tasks.
pub(super) fn tasks(line: &[u8]) -> Result<u32, ParaverError> {
    let found = || ParaverError::DimemasHeader { found: excerpt(line) };
    let rest = line.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(b"\"")).ok_or_else(found)?;
    let end = memchr::memchr(b'"', rest).ok_or_else(found)?;
    let mut fields = Fields::new(rest[end..].strip_prefix(b"\":").ok_or_else(found)?);
    fields.text("offsets")?;
    let tasks = fields.text("tasks")?;
    let digits = tasks.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = parse(&tasks[..digits]).filter(|number| (1..=u64::from(MAX_RANKS)).contains(number));
    let is_listed = tasks.get(digits) == Some(&b'(');
    number.filter(|_| is_listed).map(|number| number as u32).ok_or_else(found)
}

/// Reads a line after the header.
pub(super) fn read(line: &[u8], tasks: u32) -> Result<Line, ParaverError> {
    let mut fields = Fields::new(line);
    let kind = fields.text("kind of the record")?;
    if kind == b"d" {
        return definition(fields, tasks);
    }
    if kind == b"s" {
        return Ok(Line::Other);
    }
    let task = number(&mut fields, "task", 0, i64::from(tasks) - 1)?;
    let thread = number(&mut fields, "thread", 0, i64::MAX)? as u64;
    let rank = Rank::new(task as u32);
    let content = match kind {
        b"0" => Content::Nothing,
        b"1" => Content::Computation { nanos: nanos(fields.text("time")?)? },
        b"2" | b"3" => message(fields, kind == b"2", rank, tasks)?,
        b"10" => Content::Collective(collective(fields)?),
        b"11" => Content::GpuComputation,
        b"20" => event(fields)?,
        found => return Err(ParaverError::UnknownDimemasRecord { found: excerpt(found) }),
    };
    Ok(Line::Record(Record { rank, thread, content }))
}

/// Reads `1:communicator:size:task...`; other definitions have other numbers.
fn definition(mut fields: Fields<'_>, tasks: u32) -> Result<Line, ParaverError> {
    if fields.number("kind of the definition")? != 1 {
        return Ok(Line::Other);
    }
    let id = number(&mut fields, "communicator", 0, u32::MAX.into())? as u64;
    let size = number(&mut fields, "size of the communicator", 1, tasks.into())?;
    let member =
        |_| number(&mut fields, "member", 0, i64::from(tasks) - 1).map(|task| Rank::new(task as u32));
    let members = (0..size).map(member).collect::<Result<_, _>>()?;
    fields.finish()?;
    Ok(Line::Communicator { id, members })
}

/// Reads a time in seconds \[ns\], exactly.
fn nanos(text: &[u8]) -> Result<f64, ParaverError> {
    let is_decimal = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let nanos = std::str::from_utf8(text).ok().filter(|_| is_decimal);
    let nanos = nanos.and_then(|text| format!("{text}e9").parse().ok());
    nanos
        .filter(|nanos| *nanos <= MAX_NANOS)
        .ok_or_else(|| invalid("time", text, "a decimal number of up to a billion seconds"))
}

/// Reads a whole number of a range.
fn number(
    fields: &mut Fields<'_>,
    field: &'static str,
    least: i64,
    largest: i64,
) -> Result<i64, ParaverError> {
    let found = fields.text(field)?;
    let (negative, digits) = match found.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, found),
    };
    let number = parse(digits).and_then(|number| i64::try_from(number).ok());
    let number = number.map(|number| if negative { -number } else { number });
    number.filter(|number| (least..=largest).contains(number)).ok_or_else(|| {
        invalid(field, found, "a whole number that may be there, such as a task of the header")
    })
}

/// Reads `peer:(thread:)bytes:tag:communicator:kind`.
fn message(mut fields: Fields<'_>, is_send: bool, rank: Rank, tasks: u32) -> Result<Content, ParaverError> {
    let least = if is_send { 0 } else { -1 };
    let peer = number(&mut fields, "peer", least, i64::from(tasks) - 1)?;
    let mut rest = Vec::with_capacity(5);
    while !fields.is_at_end() && rest.len() < 5 {
        rest.push(number(&mut fields, "field of a message", i64::MIN, i64::MAX)?);
    }
    fields.finish()?;
    let (thread, [bytes, tag, communicator, kind]) = match rest[..] {
        [thread, bytes, tag, communicator, kind] => (thread, [bytes, tag, communicator, kind]),
        [bytes, tag, communicator, kind] => (-1, [bytes, tag, communicator, kind]),
        _ => return Err(ParaverError::MissingField { field: "mode or kind of the message" }),
    };
    let out_of_range = |field, found: i64| invalid(field, found.to_string().as_bytes(), "a number in range");
    let bytes = u64::try_from(bytes).map_err(|_| out_of_range("size", bytes))?;
    let communicator = u64::try_from(communicator).map_err(|_| out_of_range("communicator", communicator))?;
    let tag = match tag {
        -1 if !is_send => None,
        tag => Some(Tag::new(
            i32::try_from(tag).ok().filter(|tag| *tag >= 0).ok_or_else(|| out_of_range("tag", tag))?,
        )),
    };
    let kind = match (is_send, kind) {
        (true, mode @ 0..=3) => {
            MessageKind::Send { is_synchronous: mode & 1 != 0, is_immediate: mode & 2 != 0 }
        }
        (false, 0) => MessageKind::Recv,
        (false, 1) => MessageKind::Irecv,
        (false, 2) => MessageKind::Wait,
        (_, found) => return Err(out_of_range("mode or kind", found)),
    };
    let message = Message {
        peer: u32::try_from(peer).ok().map(Rank::new),
        bytes: Bytes::new(bytes),
        tag,
        communicator,
    };
    Ok(Content::Message { message, kind, is_inside: message.peer == Some(rank) && thread > 0 })
}

/// Reads `operation:communicator:root:thread:sent:received(:kind)`.
fn collective(mut fields: Fields<'_>) -> Result<CollectiveRecord, ParaverError> {
    let operation = number(&mut fields, "operation", 0, 2 * COLLECTIVES.len() as i64 - 1)? as u64;
    let communicator = number(&mut fields, "communicator", 0, u32::MAX.into())? as u64;
    let root = number(&mut fields, "root", 0, u32::MAX.into())? as u64;
    fields.skip_number("thread of the root")?;
    let sent = number(&mut fields, "bytes sent", 0, i64::MAX)? as u64;
    let received = number(&mut fields, "bytes received", 0, i64::MAX)? as u64;
    let kind = if fields.is_at_end() { 1 } else { number(&mut fields, "kind", 0, 3)? };
    fields.finish()?;
    let kind = match kind {
        2 => CollectiveKindOfCall::Wait,
        0 => CollectiveKindOfCall::Nonblocking,
        _ if operation >= COLLECTIVES.len() as u64 => CollectiveKindOfCall::Nonblocking,
        3 => CollectiveKindOfCall::BlockingWithRoot,
        _ => CollectiveKindOfCall::Blocking,
    };
    Ok(CollectiveRecord { operation, communicator, root, sent, received, kind })
}

/// Reads `type:value`.
fn event(mut fields: Fields<'_>) -> Result<Content, ParaverError> {
    let event = fields.number("type of the event")?;
    let text = fields.text("value of the event")?;
    fields.finish()?;
    // Arguments of collective operations, which their records have too.
    if (50_100_001..=50_100_004).contains(&event) {
        return Ok(Content::Nothing);
    }
    if !is_mpi(event) {
        return Ok(Content::OtherEvent);
    }
    let value = parse(text).ok_or_else(|| invalid("value of the event", text, "the number of a call"))?;
    Ok(if value == 0 { Content::End { event } } else { Content::Begin { event, value } })
}
