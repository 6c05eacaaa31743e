//! The clients of a host: their operations, and the transfers of which these consist.

use pdes_core::State;
use serde::{Deserialize, Serialize};

use super::Sent;
use crate::storage::Striping;
use crate::storage::file_request::{BeyondEnd, FileOperation, FileRequest};
use crate::storage::locks::{ClientLocks, Extent, LockId};
use crate::storage::packet::{Client, Content, Request};
use crate::storage::slab::Slab;
use crate::storage::systems::Systems;

/// The logical process of the clients of a host; `T` is the tag of an operation.
#[derive(Debug, Serialize, Deserialize, State)]
pub(super) struct ClientProcess<T> {
    operations: Slab<Operation<T>>,
    #[state(plain)]
    transfers: Slab<Transfer>,
    #[state(plain)]
    locks: ClientLocks,
}

impl<T> Default for ClientProcess<T> {
    fn default() -> Self {
        Self { operations: Slab::default(), transfers: Slab::default(), locks: ClientLocks::default() }
    }
}

#[derive(Debug, Serialize, Deserialize, State)]
struct Operation<T> {
    #[state(plain)]
    request: FileRequest,
    tag: T,
    #[state(plain)]
    shares: Vec<Share>,
    /// Number of shares, or of sizes, that have not come.
    left: u32,
    /// A server has not all that is read.
    is_short: bool,
    /// End of the file, as far as servers have told [B].
    file_end: u64,
}

/// The share of a server in an operation.
#[derive(Debug, Serialize, Deserialize)]
struct Share {
    server: u32,
    /// Begin of the next transfer, and end of the last one, in the part of the file that the server has [B].
    next: u64,
    end: u64,
    under_way: u32,
    /// Lock that it uses.
    lock: Option<LockId>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Transfer {
    operation: u32,
    share: u32,
    bytes: u64,
}

/// Messages that clients send, operations that end, and reads that fail.
#[derive(Debug)]
pub(super) struct ClientEffects<T> {
    pub(super) sent: Vec<Sent>,
    pub(super) ended: Vec<T>,
    pub(super) failed: Vec<(T, BeyondEnd)>,
}

impl<T> Default for ClientEffects<T> {
    fn default() -> Self {
        Self { sent: Vec::new(), ended: Vec::new(), failed: Vec::new() }
    }
}

impl<T: Copy> ClientProcess<T> {
    /// Returns the tags of all operations that have not ended.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.operations.iter().map(|operation| operation.tag)
    }

    /// Returns whether a state may be one of these file systems.
    pub(super) fn fits(&self, systems: &Systems<'_>) -> bool {
        self.operations.iter().all(|operation| {
            let system = operation.request.system;
            system.index() < systems.iter().count()
                && operation.shares.iter().all(|share| systems.of_server(share.server) == Some(system))
        })
    }

    /// Begins an operation.
    pub(super) fn begin(
        &mut self,
        systems: &Systems<'_>,
        request: FileRequest,
        tag: T,
        effects: &mut ClientEffects<T>,
    ) {
        let FileRequest { system: id, client, file, offset, .. } = request;
        let (system, base) = (systems.get(id), systems.base(id));
        let striping = systems.striping(id, file);
        let share =
            |(server, next, end)| Share { server: base + server, next, end, under_way: 0, lock: None };
        let shares = match request.operation {
            FileOperation::Open => Vec::new(),
            FileOperation::Sync => striping.servers_of(file).map(|server| share((server, 0, 1))).collect(),
            FileOperation::Read | FileOperation::ReadExisting | FileOperation::Write => {
                let pieces = striping.pieces(file, offset, offset.saturating_add(request.bytes));
                pieces.map(|piece| share((piece.server, piece.begin, piece.end))).collect()
            }
        };
        let is_open = request.operation == FileOperation::Open && system.metadata.is_some();
        let left = shares.len() as u32;
        if left == 0 && !is_open {
            return effects.ended.push(tag);
        }
        let operation = Operation { request, tag, shares, left, is_short: false, file_end: 0 };
        let number = self.operations.insert(operation);
        if is_open {
            let content = Content::OpenRequest { operation: number };
            effects.sent.push(Sent { client, server: id.get(), content });
        }
        (0..left).for_each(|share| self.start_share(systems, (number, share), effects));
    }

    /// Starts the transfers of a share, or asks for the lock that they need.
    fn start_share(
        &mut self,
        systems: &Systems<'_>,
        (number, share_number): (u32, u32),
        effects: &mut ClientEffects<T>,
    ) {
        let Some(operation) = self.operations.get_mut(number) else { return };
        let FileRequest { system, client, file, operation: kind, .. } = operation.request;
        let (system, share) = (systems.get(system), &mut operation.shares[share_number as usize]);
        if system.has_locks && kind != FileOperation::Sync {
            let is_write = kind == FileOperation::Write;
            let (server, begin, end) = (share.server, share.next, share.end);
            share.lock = self.locks.find((server, file), Extent { begin, end, is_write });
            if share.lock.is_none() {
                let content = Content::LockRequest { operation: number, file, is_write, begin, end };
                return effects.sent.push(Sent { client, server, content });
            }
        }
        self.start_transfers(systems, (number, share_number), effects);
    }

    /// Starts transfers of a share while it may have more of them under way.
    fn start_transfers(
        &mut self,
        systems: &Systems<'_>,
        (number, share_number): (u32, u32),
        effects: &mut ClientEffects<T>,
    ) {
        let Self { operations, transfers, .. } = self;
        let Some(operation) = operations.get_mut(number) else { return };
        let FileRequest { system, client, file, operation: kind, .. } = operation.request;
        let Some(request) = request(kind) else { return };
        let (system, share) = (systems.get(system), &mut operation.shares[share_number as usize]);
        while share.next < share.end && share.under_way < system.transfers {
            let begin = share.next;
            let bytes = system.transfer_bytes.min(share.end - begin);
            share.next += bytes;
            share.under_way += 1;
            let transfer = transfers.insert(Transfer { operation: number, share: share_number, bytes });
            let content = Content::Request { transfer, file, request, begin, end: begin + bytes };
            effects.sent.push(Sent { client, server: share.server, content });
        }
    }

    /// Takes a message of a server.
    pub(super) fn take(
        &mut self,
        systems: &Systems<'_>,
        (client, server): (Client, u32),
        content: Content,
        effects: &mut ClientEffects<T>,
    ) {
        match content {
            Content::Grant { transfer, at_server } => {
                let Some(Transfer { bytes, .. }) = self.transfers.get(transfer).copied() else { return };
                let content = Content::Data { at_server, bytes };
                effects.sent.push(Sent { client, server, content });
            }
            Content::Reply { transfer, is_short, .. } => self.complete(systems, transfer, is_short, effects),
            Content::OpenReply { operation } => self.end(operation, effects),
            Content::LockGrant { operation: number, lock, is_write, begin, end } => {
                let Some(operation) = self.operations.get_mut(number) else { return };
                let place = (server, operation.request.file);
                self.locks.granted(place, lock, Extent { begin, end, is_write });
                let Some(share) = operation.shares.iter().position(|share| share.server == server) else {
                    return;
                };
                operation.shares[share].lock = Some(lock);
                self.start_transfers(systems, (number, share as u32), effects);
            }
            Content::CallBack { file, lock } if self.locks.called_back((server, file), lock) => {
                effects.sent.push(Sent { client, server, content: Content::GiveUp { lock } });
            }
            Content::SizeReply { operation, size } => {
                self.take_size(systems, (operation, server), size, effects);
            }
            _ => {}
        }
    }

    /// Completes a transfer.
    fn complete(
        &mut self,
        systems: &Systems<'_>,
        transfer: u32,
        is_short: bool,
        effects: &mut ClientEffects<T>,
    ) {
        let Some(Transfer { operation: number, share: share_number, .. }) = self.transfers.remove(transfer)
        else {
            return;
        };
        let Some(operation) = self.operations.get_mut(number) else { return };
        operation.is_short |= is_short;
        let FileRequest { client, file, .. } = operation.request;
        let Some(share) = operation.shares.get_mut(share_number as usize) else { return };
        share.under_way = share.under_way.saturating_sub(1);
        if share.next < share.end {
            return self.start_transfers(systems, (number, share_number), effects);
        }
        if share.under_way > 0 {
            return;
        }
        let server = share.server;
        if let Some(lock) = share.lock.take()
            && self.locks.end_use((server, file), lock)
        {
            effects.sent.push(Sent { client, server, content: Content::GiveUp { lock } });
        }
        operation.left = operation.left.saturating_sub(1);
        if operation.left == 0 {
            match operation.is_short && operation.request.operation == FileOperation::Read {
                true => self.ask_sizes(systems, number, effects),
                false => self.end(number, effects),
            }
        }
    }

    /// Asks all servers of a file for the sizes of their parts: what is missing may be a hole.
    fn ask_sizes(&mut self, systems: &Systems<'_>, number: u32, effects: &mut ClientEffects<T>) {
        let Some(operation) = self.operations.get_mut(number) else { return };
        let FileRequest { system, client, file, .. } = operation.request;
        let base = systems.base(system);
        for server in systems.striping(system, file).servers_of(file) {
            operation.left += 1;
            let content = Content::SizeRequest { operation: number, file };
            effects.sent.push(Sent { client, server: base + server, content });
        }
    }

    fn take_size(
        &mut self,
        systems: &Systems<'_>,
        (number, server): (u32, u32),
        size: Option<u64>,
        effects: &mut ClientEffects<T>,
    ) {
        let Some(operation) = self.operations.get_mut(number) else { return };
        let request = operation.request;
        let striping: Striping = systems.striping(request.system, request.file);
        let local = server.saturating_sub(systems.base(request.system));
        let end = size.map_or(u64::MAX, |size| striping.end_of_part(request.file, local, size));
        operation.file_end = operation.file_end.max(end);
        operation.left = operation.left.saturating_sub(1);
        if operation.left > 0 {
            return;
        }
        let size = operation.file_end;
        if request.offset.saturating_add(request.bytes) <= size {
            return self.end(number, effects);
        }
        let failed = self.operations.remove(number);
        effects.failed.extend(failed.map(|operation| (operation.tag, BeyondEnd { request, size })));
    }

    fn end(&mut self, number: u32, effects: &mut ClientEffects<T>) {
        effects.ended.extend(self.operations.remove(number).map(|operation| operation.tag));
    }
}

/// Returns the request of an operation; `None` for an open, which has no transfers.
fn request(operation: FileOperation) -> Option<Request> {
    match operation {
        FileOperation::Read => Some(Request::Read),
        FileOperation::ReadExisting => Some(Request::ReadExisting),
        FileOperation::Write => Some(Request::Write),
        FileOperation::Sync => Some(Request::Sync),
        FileOperation::Open => None,
    }
}
