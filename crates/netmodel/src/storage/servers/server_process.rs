//! An I/O server as a logical process: its queue, the transfers that it knows, the sizes of its parts of files, and its locks.

use pdes_core::{SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::Sent;
use crate::storage::file_sizes::PartSizes;
use crate::storage::locks::{Extent, LockEffect, LockRequest, ServerLocks};
use crate::storage::packet::{Client, Content, Request};
use crate::storage::server::{Effect, Server, TransferId};
use crate::storage::slab::Slab;
use crate::storage::{Access, Direction, FileSystem};

/// The logical process of an I/O server.
#[derive(Debug)]
pub(super) struct ServerProcess {
    pub(super) server: Server,
    transfers: Slab<ServerTransfer>,
    pub(super) sizes: PartSizes,
    locks: ServerLocks,
}

/// A transfer, as the server knows it from its request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ServerTransfer {
    client: Client,
    /// Number of the transfer at the client.
    number: u32,
    access: Access,
    /// The server has a part of what is read, or nothing.
    is_short: bool,
}

/// Effects of a message or an event at a server.
#[derive(Debug, Default)]
pub(super) struct ServerEffects {
    pub(super) sent: Vec<Sent>,
    /// Accesses that begin on its device, with their numbers.
    pub(super) accesses: Vec<(Access, u32)>,
    of_queue: Vec<Effect>,
    of_locks: Vec<LockEffect>,
}

/// A server: its number, its file system, and whether reads end at the end of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerContext<'a> {
    pub(super) number: u32,
    pub(super) system: &'a FileSystem,
    pub(super) checks_sizes: bool,
}

impl ServerProcess {
    pub(super) fn new(server: Server) -> Self {
        let (transfers, sizes, locks) = (Slab::default(), PartSizes::default(), ServerLocks::default());
        Self { server, transfers, sizes, locks }
    }

    /// Takes a message of a client.
    pub(super) fn take(
        &mut self,
        context: ServerContext<'_>,
        now: SimTime,
        (client, content): (Client, Content),
        effects: &mut ServerEffects,
    ) {
        match content {
            Content::Request { transfer, file, request, begin, end } => {
                let direction = if request == Request::Write { Direction::Write } else { Direction::Read };
                let access = Access { file, direction, offset: begin, bytes: end.saturating_sub(begin) };
                let transfer = ServerTransfer { client, number: transfer, access, is_short: false };
                self.requested(context, now, (transfer, request), effects);
            }
            Content::Data { at_server, .. } => {
                let Some(ServerTransfer { access, .. }) = self.transfers.get(at_server).copied() else {
                    return;
                };
                self.server.written(context.system, now, (at_server, access), &mut effects.of_queue);
            }
            Content::LockRequest { operation, file, is_write, begin, end } => {
                let request = LockRequest { client, extent: Extent { begin, end, is_write }, operation };
                self.locks.request(file, request, &mut effects.of_locks);
            }
            Content::GiveUp { lock } => self.locks.given_up(lock, &mut effects.of_locks),
            Content::SizeRequest { operation, file } => {
                let size = self.sizes.of(file).unwrap_or(Some(0));
                context.send(client, Content::SizeReply { operation, size }, effects);
            }
            _ => {}
        }
        self.apply(context, effects);
    }

    /// Takes the request of a transfer.
    fn requested(
        &mut self,
        context: ServerContext<'_>,
        now: SimTime,
        (transfer, request): (ServerTransfer, Request),
        effects: &mut ServerEffects,
    ) {
        let Access { file, offset, bytes, .. } = transfer.access;
        let (system, queue) = (context.system, &mut effects.of_queue);
        let (size, is_cut) = match request {
            Request::Write => {
                self.sizes.write(file, transfer.access.end());
                let id = self.transfers.insert(transfer);
                return self.server.write_requested(system, (id, bytes), queue);
            }
            Request::Sync => {
                let access = Access { bytes: 0, ..transfer.access };
                let id = self.transfers.insert(ServerTransfer { access, ..transfer });
                return self.server.sync_requested((id, file), queue);
            }
            Request::Read => (self.sizes.read(file), context.checks_sizes),
            Request::ReadExisting => (Some(self.sizes.of(file).flatten().unwrap_or(0)), true),
        };
        let end = size.filter(|_| is_cut);
        let existing = end.map_or(bytes, |end| bytes.min(end.saturating_sub(offset)));
        let access = Access { bytes: existing, ..transfer.access };
        let id = self.transfers.insert(ServerTransfer { access, is_short: existing < bytes, ..transfer });
        match existing {
            0 => queue.push(Effect::Done(id)),
            _ => self.server.read_requested(system, now, (id, access), size, queue),
        }
    }

    /// Takes the end of an access on the device.
    pub(super) fn access_ended(
        &mut self,
        context: ServerContext<'_>,
        now: SimTime,
        running: u32,
        effects: &mut ServerEffects,
    ) {
        self.server.access_ended(context.system, now, running, &mut effects.of_queue);
        self.apply(context, effects);
    }

    /// Carries out what queue and locks have caused.
    fn apply(&mut self, context: ServerContext<'_>, effects: &mut ServerEffects) {
        for effect in std::mem::take(&mut effects.of_queue) {
            match effect {
                Effect::Access { access, running } => effects.accesses.push((access, running)),
                Effect::Granted(id) => {
                    let Some(ServerTransfer { client, number, .. }) = self.transfers.get(id).copied() else {
                        continue;
                    };
                    context.send(client, Content::Grant { transfer: number, at_server: id }, effects);
                }
                Effect::Done(id) => self.reply(context, id, effects),
            }
        }
        for effect in std::mem::take(&mut effects.of_locks) {
            let (client, content) = match effect {
                LockEffect::Grant { client, operation, lock, extent: Extent { begin, end, is_write } } => {
                    (client, Content::LockGrant { operation, lock, is_write, begin, end })
                }
                LockEffect::CallBack { client, file, lock } => (client, Content::CallBack { file, lock }),
            };
            context.send(client, content, effects);
        }
    }

    fn reply(&mut self, context: ServerContext<'_>, id: TransferId, effects: &mut ServerEffects) {
        let Some(ServerTransfer { client, number, access, is_short }) = self.transfers.remove(id) else {
            return;
        };
        let Access { direction, bytes, .. } = access;
        let has_data = direction == Direction::Read && bytes > 0;
        let bytes = if has_data { bytes } else { context.system.request.get() };
        context.send(client, Content::Reply { transfer: number, bytes, is_short }, effects);
    }
}

impl State for ServerProcess {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { server, transfers, sizes, locks } = self;
        if visitor.is_observing() {
            server.settle(visitor.now());
        }
        server.visit(visitor);
        visitor.plain(transfers);
        visitor.plain(sizes);
        visitor.plain(locks);
    }
}

impl ServerContext<'_> {
    fn send(self, client: Client, content: Content, effects: &mut ServerEffects) {
        effects.sent.push(Sent { client, server: self.number, content });
    }
}
