//! Connecting what ranks send to what others receive.

use std::collections::BTreeMap;

use pdes_core::Rank;

use crate::action::Action;
use crate::channel::{InIdx, Incoming, OutIdx, PortId, Tag};
use crate::draft::Linkable;
use crate::trace::RankTrace;
use crate::warning::Unreceived;

/// A receive for which no message is sent.
pub(crate) struct Excess {
    pub(crate) rank: Rank,
    /// Index of the receive among the actions of the rank.
    pub(crate) action: u64,
    pub(crate) src: Rank,
    pub(crate) tag: Option<Tag>,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
}

/// Resolves the ports of all outgoing channels, and compares how many messages are sent and received.
///
/// # Errors
/// The first receive without a message of the lowest rank that has one.
pub(crate) fn link(mut ranks: Vec<Linkable>) -> Result<(Vec<RankTrace>, Option<Unreceived>), Excess> {
    let mut senders: Vec<Vec<(Rank, OutIdx)>> = vec![Vec::new(); ranks.len()];
    for (sender, linkable) in ranks.iter().enumerate() {
        for (out, outgoing) in linkable.trace.outgoing.iter().enumerate() {
            senders[outgoing.peer.index()].push((Rank::new(sender as u32), OutIdx::new(out as u32)));
        }
    }
    for (receiver, channels) in senders.iter().enumerate() {
        let receiver = Rank::new(receiver as u32);
        let arriving = resolve(&mut ranks, receiver, channels);
        if let Some(excess) = arriving.excess(receiver, &ranks[receiver.index()]) {
            return Err(excess);
        }
    }
    let unreceived = unreceived(&ranks);
    Ok((ranks.into_iter().map(|linkable| linkable.trace).collect(), unreceived))
}

/// Messages sent to one receiver.
struct Arriving {
    by_port: Vec<u64>,
    /// Those that carry the tag of the incoming channel.
    by_channel: Vec<u64>,
}

/// Sets the ports of the channels to one receiver.
fn resolve(ranks: &mut [Linkable], receiver: Rank, channels: &[(Rank, OutIdx)]) -> Arriving {
    let trace = &ranks[receiver.index()].trace;
    let mut arriving =
        Arriving { by_port: vec![0; trace.ports as usize], by_channel: vec![0; trace.incoming.len()] };
    let incoming: BTreeMap<(Rank, Option<Tag>), (usize, PortId)> = (trace.incoming.iter().enumerate())
        .map(|(index, incoming)| ((incoming.peer, incoming.tag), (index, incoming.port)))
        .collect();
    for &(sender, out) in channels {
        let from = &mut ranks[sender.index()];
        let (outgoing, sends) = (&mut from.trace.outgoing[out.index()], from.sends[out.index()]);
        let exact = incoming.get(&(sender, Some(outgoing.tag)));
        if let Some((index, _)) = exact {
            arriving.by_channel[*index] += sends;
        }
        outgoing.port = exact.or_else(|| incoming.get(&(sender, None))).map(|(_, port)| *port);
        if let Some(port) = outgoing.port {
            arriving.by_port[port.index()] += sends;
        }
    }
    arriving
}

impl Arriving {
    /// Finds the first receive for which no message is sent.
    fn excess(&self, rank: Rank, linkable: &Linkable) -> Option<Excess> {
        let trace = &linkable.trace;
        let by_port = receives_by_port(linkable);
        let is_port_short = by_port.iter().zip(&self.by_port).any(|(receives, sends)| receives > sends);
        let mut channels = trace.incoming.iter().zip(linkable.receives.iter().zip(&self.by_channel));
        let is_tag_short =
            channels.any(|(channel, (receives, sends))| channel.tag.is_some() && receives > sends);
        if is_port_short || is_tag_short { self.find_excess(rank, linkable, &by_port) } else { None }
    }

    #[cold]
    fn find_excess(&self, rank: Rank, linkable: &Linkable, receives_by_port: &[u64]) -> Option<Excess> {
        let trace = &linkable.trace;
        let mut by_port = vec![0; self.by_port.len()];
        let mut by_channel = vec![0; self.by_channel.len()];
        for (action, channel) in (0..).zip(trace.cursor().map(|action| received(trace, action))) {
            let Some(channel) = channel.map(InIdx::index) else { continue };
            let Incoming { peer: src, tag, port } = trace.incoming[channel];
            let port = port.index();
            by_port[port] += 1;
            by_channel[channel] += 1;
            if tag.is_some() && by_channel[channel] > self.by_channel[channel] {
                let (sends, receives) = (self.by_channel[channel], linkable.receives[channel]);
                return Some(Excess { rank, action, src, tag, sends, receives });
            }
            if by_port[port] > self.by_port[port] {
                let (sends, receives) = (self.by_port[port], receives_by_port[port]);
                return Some(Excess { rank, action, src, tag, sends, receives });
            }
        }
        None
    }
}

/// Returns the channel from which an action receives.
fn received(trace: &RankTrace, action: Action) -> Option<InIdx> {
    match action {
        Action::Recv { from, .. } | Action::Irecv { from, .. } => Some(from),
        Action::SendRecv(id) => trace.send_recv(id).from,
        _ => None,
    }
}

/// Counts the messages that nobody receives.
fn unreceived(ranks: &[Linkable]) -> Option<Unreceived> {
    let mut receives: Vec<Vec<u64>> = ranks.iter().map(receives_by_port).collect();
    let mut unreceived: Option<Unreceived> = None;
    for (rank, linkable) in (0..).map(Rank::new).zip(ranks) {
        for (outgoing, sends) in linkable.trace.outgoing.iter().zip(&linkable.sends) {
            let received = outgoing.port.map_or(0, |port| {
                let left = &mut receives[outgoing.peer.index()][port.index()];
                let received = (*left).min(*sends);
                *left -= received;
                received
            });
            if received < *sends {
                let first = Unreceived { messages: 0, rank, peer: outgoing.peer, tag: outgoing.tag };
                unreceived.get_or_insert(first).messages += sends - received;
            }
        }
    }
    unreceived
}

fn receives_by_port(linkable: &Linkable) -> Vec<u64> {
    let mut by_port = vec![0; linkable.trace.ports as usize];
    for (incoming, receives) in linkable.trace.incoming.iter().zip(&linkable.receives) {
        by_port[incoming.port.index()] += receives;
    }
    by_port
}
