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
