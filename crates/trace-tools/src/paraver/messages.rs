//! Messages, and the calls to which they belong.

use pdes_core::{Bytes, Rank};
use trace_mmap::Tag;

use super::call::Function;
use super::labels::Labels;
use super::recording::Task;
use super::{LineError, ParaverError};

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
    /// When the receive is complete \[ns\].
    pub(super) arrival: u64,
}

/// Gives each message to a call of its sender and of its receiver.
pub(super) fn assign(messages: &[Message], tasks: &mut [Task], labels: &Labels) -> Result<(), LineError> {
    let calls = |is_wanted: fn(Function) -> bool| -> Vec<Vec<usize>> {
        let wanted = |task: &Task| {
            let calls = (0..).zip(&task.calls).filter(|(_, call)| is_wanted(labels.function(call.label)));
            calls.map(|(index, _)| index).collect()
        };
        tasks.iter().map(wanted).collect()
    };
    let (sending, receiving) = (calls(Function::sends), calls(Function::receives));
    for message in messages {
        let &Message { from, sent, to, received, arrival, bytes, tag, line } = message;
        let (tag, bytes) = (Tag::new(tag), Bytes::new(bytes));
        let find = |task: &Task, calls: &[usize], time, rank, verb| {
            let after = calls.partition_point(|&call| task.calls[call].begin <= time);
            let last = after.checked_sub(1).map(|place| calls[place]);
            last.filter(|&call| time <= task.calls[call].end)
                .ok_or_else(|| ParaverError::MessageOutsideCall { rank, verb, time }.at(line))
        };
        let call = find(&tasks[from.index()], &sending[from.index()], sent, from, "sends")?;
        tasks[from.index()].sent.push(Assigned { call, peer: to, tag, bytes, arrival });
        let call = find(&tasks[to.index()], &receiving[to.index()], received, to, "receives")?;
        tasks[to.index()].received.push(Assigned { call, peer: from, tag, bytes, arrival });
    }
    for task in tasks {
        // Stable: the messages of one call stay in the order of the file.
        task.sent.sort_by_key(|message| message.call);
        task.received.sort_by_key(|message| message.call);
    }
    Ok(())
}
