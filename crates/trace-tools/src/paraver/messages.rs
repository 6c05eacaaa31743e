//! Messages, and the calls to which they belong.

use pdes_core::{Bytes, Rank};
use trace_mmap::Tag;

use super::labels::Labels;
use super::recording::Task;
use super::{LineError, ParaverError};
use crate::timed::Function;

/// A message of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The sender.
    pub(super) from: Rank,
    /// Logical time of the send \[ns\].
    pub(super) sent: u64,
    /// The receiver.
    pub(super) to: Rank,
    /// Logical time of the receive \[ns\]: when it is called or posted.
    pub(super) received: u64,
    /// Physical time of the receive \[ns\]: when it is complete.
    pub(super) arrival: u64,
    /// Size \[B\].
    pub(super) bytes: u64,
    /// The tag, not negative.
    pub(super) tag: i32,
    /// Its line.
    pub(super) line: u64,
}

/// A message of a call, on one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assigned {
    /// Index of the call.
    pub(super) call: usize,
    /// The rank on the other side.
    pub(super) peer: Rank,
    /// The tag.
    pub(super) tag: Tag,
    /// Size.
    pub(super) bytes: Bytes,
    /// Time at which the receive is complete \[ns\].
    pub(super) arrival: u64,
}

/// Gives each message to a call of its sender and of its receiver.
pub(super) fn assign(messages: &[Message], tasks: &mut [Task], labels: &Labels) -> Result<(), LineError> {
    let sending: Vec<Calls> = tasks.iter().map(|task| Calls::new(task, labels, Function::sends)).collect();
    let receiving: Vec<Calls> =
        tasks.iter().map(|task| Calls::new(task, labels, Function::receives)).collect();
    for message in messages {
        let &Message { from, sent, to, received, arrival, bytes, tag, line } = message;
        let (tag, bytes) = (Tag::new(tag), Bytes::new(bytes));
        let sides = [(from, "sends", sent, &sending), (to, "receives", received, &receiving)];
        let calls = sides.map(|(rank, verb, time, calls)| match calls[rank.index()].at(time, arrival) {
            // The message of a call that began before the trace belongs to no call of it.
            None if time <= tasks[rank.index()].cut_until => Ok(None),
            None => Err(ParaverError::MessageOutsideCall { rank, verb, time }.at(line)),
            call => Ok(call),
        });
        let [send, receive] = calls;
        let (Some(send), Some(receive)) = (send?, receive?) else { continue };
        tasks[from.index()].sent.push(Assigned { call: send, peer: to, tag, bytes, arrival });
        tasks[to.index()].received.push(Assigned { call: receive, peer: from, tag, bytes, arrival });
    }
    for task in tasks {
        // Stable: the messages of one call stay in the order of the file.
        task.sent.sort_by_key(|message| message.call);
        task.received.sort_by_key(|message| message.call);
    }
    Ok(())
}

/// The calls of a rank to which messages in one direction may belong, in the order of time.
struct Calls(Vec<CallTime>);

#[derive(Clone, Copy)]
struct CallTime {
    /// Index of the call.
    call: usize,
    /// Begin and end \[ns\].
    begin: u64,
    end: u64,
    /// True if the call posts a receive, whose logical time is its end.
    is_posted: bool,
}

impl Calls {
    fn new(task: &Task, labels: &Labels, is_wanted: fn(Function) -> bool) -> Self {
        let times = task.calls.iter().enumerate().filter_map(|(index, call)| {
            let function = labels.function(call.label);
            let is_posted = function == Function::Irecv;
            is_wanted(function).then_some(CallTime {
                call: index,
                begin: call.begin,
                end: call.end,
                is_posted,
            })
        });
        Self(times.collect())
    }

    /// Finds the call of a message by its logical time; `arrival` is when its receive is complete.
    fn at(&self, time: u64, arrival: u64) -> Option<usize> {
        let after = self.0.partition_point(|call| call.begin <= time);
        let last = self.0[..after].last().filter(|call| time <= call.end)?;
        let before = self.0[..after - 1].last().filter(|call| call.is_posted && call.end == time);
        match before {
            // Two calls meet at this time: a blocking one ends when its message is complete.
            Some(before) if last.begin == time && (last.is_posted || last.end != arrival) => {
                Some(before.call)
            }
            _ => Some(last.call),
        }
    }
}
