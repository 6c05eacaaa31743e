//! The file systems of a machine, as their clients and servers know them: nothing of this changes during a run.

use std::collections::BTreeMap;

use super::packet::{Client, Content, Packet};
use super::{FileSystem, Striping};
use crate::{FileSystemId, HostId};

/// File systems, with the numbers of their servers among all.
#[derive(Debug)]
pub(super) struct Systems<'a> {
    systems: &'a [FileSystem],
    /// Number of the first server of each file system.
    bases: Vec<u32>,
    /// Striping of the files that hints stripe, by file system and number.
    striped: BTreeMap<(FileSystemId, u32), Striping>,
}

impl<'a> Systems<'a> {
    pub(super) fn new(systems: &'a [FileSystem], striped: BTreeMap<(FileSystemId, u32), Striping>) -> Self {
        let base = |base: &mut u32, system: &FileSystem| Some(replace_add(base, system.servers.len() as u32));
        Self { systems, bases: systems.iter().scan(0, base).collect(), striped }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FileSystemId, &'a FileSystem)> {
        (0..).map(FileSystemId::new).zip(self.systems)
    }

    pub(super) fn get(&self, id: FileSystemId) -> &'a FileSystem {
        &self.systems[id.index()]
    }

    /// Returns the number of the first server of a file system.
    pub(super) fn base(&self, id: FileSystemId) -> u32 {
        self.bases[id.index()]
    }

    /// Returns the file system of a server; `None` if there is no such server.
    pub(super) fn of_server(&self, server: u32) -> Option<FileSystemId> {
        let number = self.bases.partition_point(|base| *base <= server).checked_sub(1)?;
        let servers = self.systems[number].servers.len() as u32;
        (server - self.bases[number] < servers).then(|| FileSystemId::new(number as u32))
    }

    /// Returns the host of a server; `None` if there is no such server.
    pub(super) fn host(&self, server: u32) -> Option<HostId> {
        let system = self.of_server(server)?;
        Some(self.get(system).servers[(server - self.base(system)) as usize])
    }

    /// Returns the striping of a file.
    pub(super) fn striping(&self, system: FileSystemId, file: u32) -> Striping {
        self.striped.get(&(system, file)).copied().unwrap_or(self.get(system).striping)
    }

    /// Returns the file system of a packet; `None` if there is no such server.
    pub(super) fn of_packet(&self, packet: &Packet) -> Option<FileSystemId> {
        match packet.content {
            Content::OpenRequest { .. } | Content::OpenReply { .. } => {
                ((packet.server as usize) < self.systems.len()).then(|| FileSystemId::new(packet.server))
            }
            _ => self.of_server(packet.server),
        }
    }

    /// Returns both ends of a packet, the sender first; `None` if there is no such server.
    pub(super) fn ends(&self, client: Client, packet: &Packet) -> Option<(HostId, HostId)> {
        let server = match packet.content {
            Content::OpenRequest { .. } | Content::OpenReply { .. } => {
                self.get(self.of_packet(packet)?).metadata?.0
            }
            _ => self.host(packet.server)?,
        };
        Some(if packet.content.is_to_server() { (client.host, server) } else { (server, client.host) })
    }

    /// Returns the forwarder of a client, if it has one.
    pub(super) fn forwarder(&self, system: FileSystemId, client: Client) -> Option<HostId> {
        let forwarders = &self.get(system).forwarders;
        forwarders.get(client.host.index() % forwarders.len().max(1)).copied()
    }
}

/// Adds to a number, and returns what it was.
fn replace_add(number: &mut u32, more: u32) -> u32 {
    std::mem::replace(number, *number + more)
}
