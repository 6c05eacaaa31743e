//! Descriptions of calls, for messages.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::layout::{ANY, Operation, OperationKind};
use crate::memory::Memory;

/// Largest number of requests that are listed.
const MOST_LISTED: usize = 8;

/// The operation of a rank in progress, and those that have posted its requests.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) operation: Option<Operation>,
    requests: BTreeMap<u32, Operation>,
}

impl Progress {
    /// Notes the next operation of a rank.
    pub(crate) fn begin(&mut self, operation: Operation) {
        self.operation = Some(operation);
        let posts = matches!(
            OperationKind::from_number(operation.kind),
            Some(
                OperationKind::Isend
                    | OperationKind::Irecv
                    | OperationKind::SendInit
                    | OperationKind::RecvInit
                    | OperationKind::Collective
            )
        );
        if posts && operation.request != crate::layout::NONE {
            self.requests.insert(operation.request, operation);
        }
    }

    /// Describes the call in progress.
    pub(crate) fn describe(&self, memory: &Memory, rank: u32, places: &Places) -> Option<String> {
        // The begin of a rank is no call that its program makes between others.
        let operation = self.operation.filter(|operation| !operation.name().is_empty())?;
        let mut text = call(&operation, places);
        let waits = matches!(
            OperationKind::from_number(operation.kind),
            Some(
                OperationKind::Waitall
                    | OperationKind::Waitany
                    | OperationKind::Waitsome
                    | OperationKind::Testall
                    | OperationKind::Testany
                    | OperationKind::Testsome
            )
        );
        if waits {
            let listed = memory.list(rank, operation.count.min(MOST_LISTED as u64));
            let of = |request: &u32| match self.requests.get(request) {
                Some(posted) => format!("request {request} of {}", call(posted, places)),
                None => format!("request {request}"),
            };
            let requests = listed.iter().map(of).collect::<Vec<_>>().join("; ");
            let more = if operation.count > MOST_LISTED as u64 { "; ..." } else { "" };
            text += &format!(", for {requests}{more}");
        }
        Some(text)
    }
}

/// Describes the call of an operation: its name, its arguments, and the place in the program.
pub(crate) fn call(operation: &Operation, places: &Places) -> String {
    format!("{}{}{}", operation.name(), arguments(operation), places.called_from(operation.site))
}

fn arguments(operation: &Operation) -> String {
    let &Operation { communicator, peer, tag, source, source_tag, bytes, source_bytes, .. } = operation;
    let on = format!("on communicator {communicator}");
    let any = |number: i32, name: &str| {
        if number == ANY { format!("any {name}") } else { format!("{name} {number}") }
    };
    let from = || format!("from {}, {}", any(source, "rank"), any(source_tag, "tag"));
    match OperationKind::from_number(operation.kind) {
        Some(OperationKind::Send | OperationKind::Isend | OperationKind::SendInit) => {
            format!(" to rank {peer}, tag {tag}, {bytes} B {on}")
        }
        Some(OperationKind::Recv | OperationKind::Irecv | OperationKind::RecvInit) => {
            format!(" {}, {source_bytes} B {on}", from())
        }
        Some(OperationKind::SendRecv) => format!(" to rank {peer}, tag {tag}, {bytes} B, {} {on}", from()),
        Some(OperationKind::Probe | OperationKind::Iprobe) => format!(" {} {on}", from()),
        Some(OperationKind::Collective | OperationKind::Window) => format!(" {on}"),
        _ => String::new(),
    }
}

/// The places of addresses of the program: files and offsets. All ranks are forked by one process, so that they are those of each rank.
#[derive(Debug, Default)]
pub(crate) struct Places(OnceLock<String>);

impl Places {
    /// Learns the places from the first rank that makes a call, while it is there.
    pub(crate) fn learn(&self, process: i32) {
        if self.0.get().is_none() {
            let maps = std::fs::read_to_string(format!("/proc/{process}/maps"));
            maps.into_iter().for_each(|maps| drop(self.0.set(maps)));
        }
    }

    /// Returns `, called from FILE+OFFSET`; nothing for an address of no file, or of one that was loaded later.
    pub(crate) fn called_from(&self, address: u64) -> String {
        let place = self.0.get().and_then(|maps| maps.lines().find_map(|line| place(line, address)));
        place.map_or_else(String::new, |place| format!(", called from {place}"))
    }
}

/// Returns the file and the offset of an address, if it is in the range of a line of `/proc/PID/maps`.
fn place(line: &str, address: u64) -> Option<String> {
    let mut fields = line.split_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let [begin, end] = [begin, end].map(|number| u64::from_str_radix(number, 16).ok());
    let (begin, end) = (begin?, end?);
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    let file = fields.nth(2)?;
    (begin..end).contains(&address).then(|| format!("{file}+{:#x}", address - begin + offset))
}
