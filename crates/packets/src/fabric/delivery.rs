//! Packets at their destinations, and what comes from other regions.

use netmodel::{HostId, RouteError};

use super::{Answer, Fabric, FabricMessage, PacketArrival, Report, ReportKind};
use crate::machine::Ways;
use crate::packet::{MessageKey, Packet};

/// What has arrived of a message.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Partial {
    pub(super) packets: u32,
    /// Number of all packets, once the last one is there.
    pub(super) all: Option<u32>,
    /// Latest arrival so far.
    pub(super) latest: u64,
}

impl Fabric<'_, '_> {
    /// Takes in a packet whose last byte reaches its destination, a host, at an instant.
    pub(super) fn deliver(&mut self, host: HostId, packet: &Packet, at: u64) {
        let is_of_operation = packet.message.communicator().is_some();
        let message =
            if is_of_operation { MessageKey { src: host, ..packet.message } } else { packet.message };
        self.counts.packets += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push(PacketArrival { at, message, number: packet.number() });
        }
        if is_of_operation {
            // Nobody answers it, and packets of a tree do not overtake each other.
            if packet.is_last() {
                self.reports.push(Report { at, message, kind: ReportKind::Arrived });
            }
            return;
        }
        if self.pacing.is_some() {
            self.reports.push(Report { at, message, kind: ReportKind::Received });
        } else if packet.is_acknowledged() {
            self.answer(message, Answer { at, is_marked: packet.is_marked(), entropy: packet.entropy() });
        }
        if packet.is_last() && (packet.number() == 0 || self.machine.parameters.routing.keeps_order()) {
            self.reports.push(Report { at, message, kind: ReportKind::Arrived });
        } else if !self.machine.parameters.routing.keeps_order() {
            let partial = self.partial.entry(message).or_default();
            partial.packets += 1;
            partial.latest = partial.latest.max(at);
            if packet.is_last() {
                partial.all = Some(packet.number() + 1);
            }
            if partial.all == Some(partial.packets) {
                let at = partial.latest;
                self.partial.remove(&message);
                self.reports.push(Report { at, message, kind: ReportKind::Arrived });
            }
        }
    }

    /// Sends an acknowledgement or a credit to the sender of a message, at the instant of the answer.
    pub(super) fn answer(&mut self, message: MessageKey, answer: Answer) {
        let region = self.machine.home(message.src);
        if region == self.region {
            self.acknowledge(message, answer);
        } else {
            self.outgoing.push((region, FabricMessage::Acknowledgement { message, answer }));
        }
    }

    /// Receives what another region sent.
    ///
    /// # Errors
    /// If there is no route for a packet, which its sender has found.
    pub(crate) fn receive(&mut self, message: FabricMessage) -> Result<(), RouteError> {
        match message {
            FabricMessage::Acknowledgement { message, answer } => self.acknowledge(message, answer),
            FabricMessage::Credit { port, channel, back, bytes } => {
                let mut buffers = self.buffers.take().expect("all regions have credits");
                self.add_credit(&mut buffers, port - self.first_port, channel, (back, bytes));
                self.buffers = Some(buffers);
            }
            FabricMessage::Packet { input, mut packet, tail } => {
                let node = self.machine.input_nodes[input as usize];
                let (place, ring) = (node - self.first_node, input - self.first_input);
                let host = self.machine.host(node);
                if let Some(host) = host.filter(|&host| self.ends_at(host, packet.message, packet.path)) {
                    self.deliver(host, &packet, tail);
                    return Ok(());
                }
                let MessageKey { src, dst, .. } = packet.message;
                if let Ways::Routes = self.machine.ways
                    && packet.message.communicator().is_none()
                {
                    packet.path += self.routes.pair(self.machine, self.first_port, (src, dst))?.path;
                }
                if self.push(place, ring, &packet, (packet.at, packet.path)) {
                    self.set_arrival(place, packet.at);
                }
            }
        }
        Ok(())
    }
}
