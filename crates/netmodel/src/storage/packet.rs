//! Messages between clients and I/O servers.

use pdes_core::{Bytes, LpId};
use serde::{Deserialize, Serialize};

use super::locks::LockId;
use super::server::TransferId;
use crate::HostId;

/// A logical process that accesses files, and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Client {
    /// The process.
    pub lp: LpId,
    /// Its host, to which locks belong.
    pub host: HostId,
}

/// A message that the caller has to send now over its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    /// Host that sends it.
    pub from: HostId,
    /// Host that receives it.
    pub to: HostId,
    /// Its size.
    pub bytes: Bytes,
    /// Its place among the messages that a rank sends at one instant.
    pub order: u64,
    /// Client that sends it, or is to get it.
    pub client: Client,
    /// Content, which [`FileServers::arrived`](super::FileServers::arrived) takes on its arrival.
    pub packet: Packet,
}

/// Content of a message between a client and a server: both sides know of each other by such messages alone.
///
/// Messages that arrive at one instant are taken in the order of their clients and contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Packet {
    pub(super) content: Content,
    /// The message goes to the forwarder of its client first.
    pub(super) is_forwarded: bool,
    /// Number of the server; for the metadata server, of its file system.
    pub(super) server: u32,
}

/// Content of a message. Numbers of transfers and operations are those of the client's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Content {
    /// To the server: an access to a part of a file.
    Request { transfer: u32, file: u32, request: Request, begin: u64, end: u64 },
    /// To the client: the server has room for the data of a write, which it knows by a number of its own.
    Grant { transfer: u32, at_server: TransferId },
    /// To the server: the data of a write.
    Data { at_server: TransferId, bytes: u64 },
    /// To the client: a transfer is complete; of a short read, what exists. The size of the message.
    Reply { transfer: u32, bytes: u64, is_short: bool },
    /// To the metadata server: an open.
    OpenRequest { operation: u32 },
    /// To the client: the file is open.
    OpenReply { operation: u32 },
    /// To the server: an operation needs a lock.
    LockRequest { operation: u32, file: u32, is_write: bool, begin: u64, end: u64 },
    /// To the client: it has a lock.
    LockGrant { operation: u32, lock: LockId, is_write: bool, begin: u64, end: u64 },
    /// To the client: it is to give a lock up.
    CallBack { file: u32, lock: LockId },
    /// To the server: the client has no lock any more.
    GiveUp { lock: LockId },
    /// To the server: a part of a read does not exist; the end of the file is wanted.
    SizeRequest { operation: u32, file: u32 },
    /// To the client: the size of the part of the file that the server has; `None` if it is not known.
    SizeReply { operation: u32, size: Option<u64> },
}

/// Request of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Request {
    Read,
    ReadExisting,
    Write,
    Sync,
}

impl Content {
    /// Returns whether the message goes to a server.
    pub(super) fn is_to_server(self) -> bool {
        match self {
            Self::Request { .. }
            | Self::Data { .. }
            | Self::OpenRequest { .. }
            | Self::LockRequest { .. }
            | Self::GiveUp { .. }
            | Self::SizeRequest { .. } => true,
            Self::Grant { .. }
            | Self::Reply { .. }
            | Self::OpenReply { .. }
            | Self::LockGrant { .. }
            | Self::CallBack { .. }
            | Self::SizeReply { .. } => false,
        }
    }
}

const REQUESTS: [Request; 4] = [Request::Read, Request::ReadExisting, Request::Write, Request::Sync];

impl Packet {
    /// Returns the packet as four words: its kind, flags and server; two numbers; two positions or amounts.
    pub fn to_words(self) -> [u64; 4] {
        let (kind, flag, numbers, begin, end) = match self.content {
            Content::Request { transfer, file, request, begin, end } => {
                (request as u8, false, (transfer, file), begin, end)
            }
            Content::Grant { transfer, at_server } => (4, false, (transfer, at_server), 0, 0),
            Content::Data { at_server, bytes } => (5, false, (at_server, 0), bytes, 0),
            Content::Reply { transfer, bytes, is_short } => (6, is_short, (transfer, 0), bytes, 0),
            Content::OpenRequest { operation } => (7, false, (operation, 0), 0, 0),
            Content::OpenReply { operation } => (8, false, (operation, 0), 0, 0),
            Content::LockRequest { operation, file, is_write, begin, end } => {
                (9, is_write, (operation, file), begin, end)
            }
            Content::LockGrant { operation, lock, is_write, begin, end } => {
                (10, is_write, (operation, lock), begin, end)
            }
            Content::CallBack { file, lock } => (11, false, (file, lock), 0, 0),
            Content::GiveUp { lock } => (12, false, (lock, 0), 0, 0),
            Content::SizeRequest { operation, file } => (13, false, (operation, file), 0, 0),
            Content::SizeReply { operation, size } => {
                (14, size.is_some(), (operation, 0), size.unwrap_or(0), 0)
            }
        };
        let flags = u64::from(flag) << 8 | u64::from(self.is_forwarded) << 9;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [u64::from(kind) | flags | u64::from(self.server) << 32, pair(numbers.0, numbers.1), begin, end]
    }

    /// Returns the packet of some words; `None` if they are not those of one.
    pub fn from_words([head, numbers, begin, end]: [u64; 4]) -> Option<Self> {
        let (kind, flag, is_forwarded) = (head as u8, head >> 8 & 1 == 1, head >> 9 & 1 == 1);
        let (one, other) = (numbers as u32, (numbers >> 32) as u32);
        let content = match kind {
            0..4 => {
                let request = REQUESTS[usize::from(kind)];
                Content::Request { transfer: one, file: other, request, begin, end }
            }
            4 => Content::Grant { transfer: one, at_server: other },
            5 => Content::Data { at_server: one, bytes: begin },
            6 => Content::Reply { transfer: one, bytes: begin, is_short: flag },
            7 => Content::OpenRequest { operation: one },
            8 => Content::OpenReply { operation: one },
            9 => Content::LockRequest { operation: one, file: other, is_write: flag, begin, end },
            10 => Content::LockGrant { operation: one, lock: other, is_write: flag, begin, end },
            11 => Content::CallBack { file: one, lock: other },
            12 => Content::GiveUp { lock: one },
            13 => Content::SizeRequest { operation: one, file: other },
            14 => Content::SizeReply { operation: one, size: flag.then_some(begin) },
            _ => return None,
        };
        Some(Self { content, is_forwarded, server: (head >> 32) as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_survive_a_round_trip() {
        let (one, other, begin, end) = (7, u32::MAX, 1 << 40, u64::MAX);
        let requests =
            REQUESTS.map(|request| Content::Request { transfer: one, file: other, request, begin, end });
        let others = [
            Content::Grant { transfer: one, at_server: other },
            Content::Data { at_server: other, bytes: begin },
            Content::Reply { transfer: one, bytes: end, is_short: true },
            Content::OpenRequest { operation: one },
            Content::OpenReply { operation: one },
            Content::LockRequest { operation: one, file: other, is_write: true, begin, end },
            Content::LockGrant { operation: one, lock: other, is_write: false, begin, end },
            Content::CallBack { file: one, lock: other },
            Content::GiveUp { lock: other },
            Content::SizeRequest { operation: one, file: other },
            Content::SizeReply { operation: one, size: Some(end) },
            Content::SizeReply { operation: one, size: None },
        ];
        for content in requests.into_iter().chain(others) {
            for is_forwarded in [false, true] {
                let packet = Packet { content, is_forwarded, server: u32::MAX - 1 };
                assert_eq!(Packet::from_words(packet.to_words()), Some(packet));
            }
        }
        assert_eq!(Packet::from_words([15, 0, 0, 0]), None);
    }
}
