//! Descriptions of calls, for messages.

use crate::layout::{ANY, Operation, OperationKind};
use crate::memory::Memory;

/// Largest number of requests that are listed.
const MOST_LISTED: usize = 8;

/// Describes the arguments of an operation.
pub(crate) fn operation(operation: &Operation, memory: &Memory, rank: u32) -> String {
    let &Operation { communicator, peer, tag, source, source_tag, bytes, source_bytes, count, .. } =
        operation;
    let on = format!("on communicator {communicator}");
    let any = |number: i32, name: &str| {
        if number == ANY { format!("any {name}") } else { format!("{name} {number}") }
    };
    let from = || format!("from {}, {}", any(source, "rank"), any(source_tag, "tag"));
    match OperationKind::from_number(operation.kind) {
        Some(OperationKind::Send | OperationKind::Isend) => {
            format!(" to rank {peer}, tag {tag}, {bytes} B {on}")
        }
        Some(OperationKind::Recv | OperationKind::Irecv) => format!(" {}, {source_bytes} B {on}", from()),
        Some(OperationKind::SendRecv) => format!(" to rank {peer}, tag {tag}, {bytes} B, {} {on}", from()),
        Some(OperationKind::Probe | OperationKind::Iprobe) => format!(" {} {on}", from()),
        Some(OperationKind::Collective) => format!(" {on}"),
        Some(OperationKind::Waitall | OperationKind::Waitany | OperationKind::Waitsome) => {
            let listed = memory
                .list(rank, count.min(MOST_LISTED as u64))
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>();
            let more = if count > MOST_LISTED as u64 { ", ..." } else { "" };
            format!(" for request(s) {}{more}", listed.join(", "))
        }
        _ => String::new(),
    }
}

/// Returns the file and the offset of an address of a process.
pub(crate) fn place(process: i32, address: u64) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let [begin, end] = [begin, end].map(|number| u64::from_str_radix(number, 16).ok());
        let (begin, end) = (begin?, end?);
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        let file = fields.nth(2)?;
        (begin..end).contains(&address).then(|| format!("{file}+{:#x}", address - begin + offset))
    })
}
