//! Connecting what ranks send to what others receive.

use std::collections::BTreeMap;

use pdes_core::Rank;

use crate::action::Action;
use crate::channel::{InIdx, Incoming, OutIdx, PortId, Tag};
use crate::draft::Linkable;
use crate::trace::RankTrace;
use crate::warning::Unreceived;

/// A rank with a receive for which no message is sent.
#[derive(Debug)]
pub(crate) struct Shortage {
    pub(crate) rank: Rank,
    arriving: Arriving,
}

/// A receive for which no message is sent.
#[derive(Debug)]
pub(crate) struct Excess {
    /// `None` for all sources together, where some receive is from any.
    pub(crate) src: Option<Rank>,
    pub(crate) tag: Option<Tag>,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
}

/// Resolves the ports of all outgoing channels, and compares how many messages are sent and received. Costs as much as
/// there are channels.
///
/// # Errors
/// The lowest rank with a receive without a message.
pub(crate) fn link(ranks: &mut [Linkable]) -> Result<Option<Unreceived>, Shortage> {
    let mut senders: Vec<Vec<(Rank, OutIdx)>> = vec![Vec::new(); ranks.len()];
    for (sender, linkable) in ranks.iter().enumerate() {
        for (out, outgoing) in linkable.trace.outgoing.iter().enumerate() {
            senders[outgoing.peer.index()].push((Rank::new(sender as u32), OutIdx::new(out as u32)));
        }
    }
    for (receiver, channels) in senders.iter().enumerate() {
        let rank = Rank::new(receiver as u32);
        let arriving = resolve(ranks, rank, channels);
        if arriving.excess(&ranks[receiver]).is_some() {
            return Err(Shortage { rank, arriving });
        }
    }
    Ok(unreceived(ranks))
}

/// Says where messages come from that a rank receives.
pub(crate) fn origin(src: Option<Rank>, tag: Option<Tag>) -> String {
    match (src, tag) {
        (None, _) => "from all ranks, any or named,".to_owned(),
        (Some(src), None) => format!("from rank {src} with any tag"),
        (Some(src), Some(tag)) => format!("from rank {src} with tag {tag}"),
    }
}

/// Messages sent to one receiver.
#[derive(Debug)]
struct Arriving {
    all: u64,
    by_port: Vec<u64>,
    /// Those that carry the tag of the incoming channel.
    by_channel: Vec<u64>,
}

/// Sets the ports of the channels to one receiver.
fn resolve(ranks: &mut [Linkable], receiver: Rank, channels: &[(Rank, OutIdx)]) -> Arriving {
    let trace = &ranks[receiver.index()].trace;
    let (by_port, by_channel) = (vec![0; trace.ports as usize], vec![0; trace.incoming.len()]);
    let mut arriving = Arriving { all: 0, by_port, by_channel };
    let incoming: BTreeMap<(Rank, Option<Tag>), (usize, PortId)> = (trace.incoming.iter().enumerate())
        .map(|(index, incoming)| ((incoming.peer, incoming.tag), (index, incoming.port)))
        .collect();
    for &(sender, out) in channels {
        let from = &mut ranks[sender.index()];
        let (outgoing, sends) = (&mut from.trace.outgoing[out.index()], from.sends[out.index()]);
        add(&mut arriving.all, sends);
        let exact = incoming.get(&(sender, Some(outgoing.tag)));
        if let Some((index, _)) = exact {
            add(&mut arriving.by_channel[*index], sends);
        }
        outgoing.port = exact.or_else(|| incoming.get(&(sender, None))).map(|(_, port)| *port);
        if let Some(port) = outgoing.port {
            add(&mut arriving.by_port[port.index()], sends);
        }
    }
    arriving
}

impl Arriving {
    /// Finds the first channel with more receives than messages. Receives from any source take messages of every
    /// channel, so that they only lack some where there are fewer messages than receives in all.
    fn excess(&self, linkable: &Linkable) -> Option<Excess> {
        let by_port = receives_by_port(linkable);
        let channels = linkable.trace.incoming.iter().zip(linkable.receives.iter().zip(&self.by_channel));
        let of_a_channel =
            channels.into_iter().find_map(|(&Incoming { peer, tag, port }, (&receives, &sends))| {
                let src = Some(peer);
                if tag.is_some() && receives > sends {
                    return Some(Excess { src, tag, sends, receives });
                }
                let (sends, receives) = (self.by_port[port.index()], by_port[port.index()]);
                (receives > sends).then_some(Excess { src, tag, sends, receives })
            });
        of_a_channel.or_else(|| self.excess_in_all(linkable))
    }

    fn excess_in_all(&self, linkable: &Linkable) -> Option<Excess> {
        let (sends, receives) = (self.all, all_receives(linkable));
        let is_short = linkable.receives_from_any > 0 && receives > sends;
        is_short.then_some(Excess { src: None, tag: None, sends, receives })
    }
}

impl Shortage {
    /// Describes the first channel with more receives than messages, by the order of first use.
    ///
    /// # Panics
    /// Where the rank is another one.
    pub(crate) fn channel(&self, linkable: &Linkable) -> Excess {
        self.arriving.excess(linkable).expect("the channels of the rank were short of messages")
    }

    /// Finds the first receive without a message among the actions of the rank, and its index.
    pub(crate) fn first_action(&self, linkable: &Linkable) -> Option<(u64, Excess)> {
        let trace = &linkable.trace;
        let receives_by_port = receives_by_port(linkable);
        let Arriving { all, by_port: sent_by_port, by_channel: sent_by_channel } = &self.arriving;
        let mut excess_in_all = self.arriving.excess_in_all(linkable);
        let mut before = 0;
        let mut by_port = vec![0; sent_by_port.len()];
        let mut by_channel = vec![0; sent_by_channel.len()];
        for (action, channel) in (0..).zip(trace.cursor().map(|action| received(trace, action))) {
            let Some(channel) = channel else { continue };
            if before == *all
                && let Some(excess) = excess_in_all.take()
            {
                return Some((action, excess));
            }
            before += 1;
            let Received::From(channel) = channel else { continue };
            let channel = channel.index();
            let Incoming { peer, tag, port } = trace.incoming[channel];
            let (src, port) = (Some(peer), port.index());
            by_port[port] += 1;
            by_channel[channel] += 1;
            if tag.is_some() && by_channel[channel] > sent_by_channel[channel] {
                let (sends, receives) = (sent_by_channel[channel], linkable.receives[channel]);
                return Some((action, Excess { src, tag, sends, receives }));
            }
            if by_port[port] > sent_by_port[port] {
                let (sends, receives) = (sent_by_port[port], receives_by_port[port]);
                return Some((action, Excess { src, tag, sends, receives }));
            }
        }
        None
    }
}

/// Where an action receives from.
enum Received {
    From(InIdx),
    FromAny,
}

/// Returns where an action receives from, if it does.
fn received(trace: &RankTrace, action: Action) -> Option<Received> {
    match action {
        Action::Recv { from, .. } | Action::Irecv { from, .. } => Some(Received::From(from)),
        Action::RecvAny { .. } | Action::IrecvAny { .. } => Some(Received::FromAny),
        Action::SendRecv(id) => trace.send_recv(id).from.map(Received::From),
        _ => None,
    }
}

/// Counts the messages that nobody receives. Those that receives from any source take are those of the first channels that
/// have some left: which ones they are depends on time, how many does not.
fn unreceived(ranks: &[Linkable]) -> Option<Unreceived> {
    let mut receives: Vec<Vec<u64>> = ranks.iter().map(receives_by_port).collect();
    let mut from_any: Vec<u64> = ranks.iter().map(|linkable| linkable.receives_from_any).collect();
    let mut unreceived: Option<Unreceived> = None;
    for (rank, linkable) in (0..).map(Rank::new).zip(ranks) {
        for (outgoing, sends) in linkable.trace.outgoing.iter().zip(&linkable.sends) {
            let received = outgoing.port.map_or(0, |port| {
                let left = &mut receives[outgoing.peer.index()][port.index()];
                let received = (*left).min(*sends);
                *left -= received;
                received
            });
            let left = &mut from_any[outgoing.peer.index()];
            let taken = (*left).min(*sends - received);
            *left -= taken;
            let received = received + taken;
            if received < *sends {
                let first = Unreceived { messages: 0, rank, peer: outgoing.peer, tag: outgoing.tag };
                add(&mut unreceived.get_or_insert(first).messages, sends - received);
            }
        }
    }
    unreceived
}

fn all_receives(linkable: &Linkable) -> u64 {
    let mut all = linkable.receives_from_any;
    linkable.receives.iter().for_each(|receives| add(&mut all, *receives));
    all
}

fn receives_by_port(linkable: &Linkable) -> Vec<u64> {
    let mut by_port = vec![0; linkable.trace.ports as usize];
    for (incoming, receives) in linkable.trace.incoming.iter().zip(&linkable.receives) {
        add(&mut by_port[incoming.port.index()], *receives);
    }
    by_port
}

/// Adds without leaving 64 bits: a sum that large is reported the same as one beyond it.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
