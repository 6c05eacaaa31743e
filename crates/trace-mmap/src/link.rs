//! Linking: resolves the port at which each outgoing channel arrives, and checks that every receive has a message.

mod communicators;

pub use communicators::CommunicatorConflict;

use std::collections::BTreeMap;

use pdes_core::Rank;

use crate::builder::LinkableRank;
use crate::call::Source;
use crate::channel::{Arrival, Incoming, OutIdx, PortId, Tag};
use crate::communicator::CommId;
use crate::trace::RankTrace;
use crate::transfer::{Transfer, transfers};
use crate::warning::Unreceived;

/// The ranks of a trace do not fit together.
#[derive(Debug)]
pub(crate) enum LinkError {
    Unmatched(UnmatchedRank),
    Communicators(CommunicatorConflict),
}

/// A rank with an unmatched receive.
#[derive(Debug)]
pub(crate) struct UnmatchedRank {
    pub(crate) rank: Rank,
    arriving: ArrivingMessages,
}

/// An unmatched receive, and the counts of its channel.
#[derive(Debug)]
pub(crate) struct UnmatchedReceive {
    /// The source; `None` for all sources together, if there are wildcard receives.
    pub(crate) src: Option<Rank>,
    pub(crate) tag: Option<Tag>,
    pub(crate) communicator: CommId,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
}

/// Links all ranks: compares their communicators, resolves the arrival of every outgoing channel, and compares the numbers of
/// messages sent and received. Returns the messages that are never received. Cost: the number of channels, times a logarithm, and
/// of members of communicators.
///
/// # Errors
/// A communicator about which ranks disagree; the lowest rank with an unmatched receive.
pub(crate) fn link(ranks: &mut [LinkableRank]) -> Result<Option<Unreceived>, LinkError> {
    communicators::check_communicators(ranks).map_err(LinkError::Communicators)?;
    let mut senders: Vec<Vec<(Rank, OutIdx)>> = vec![Vec::new(); ranks.len()];
    for (sender, linkable) in ranks.iter().enumerate() {
        for (out, outgoing) in linkable.trace.outgoing.iter().enumerate() {
            senders[outgoing.peer.index()].push((Rank::new(sender as u32), OutIdx::new(out as u32)));
        }
    }
    let mut ports: Vec<Vec<Option<PortId>>> =
        ranks.iter().map(|linkable| vec![None; linkable.trace.outgoing.len()]).collect();
    for (receiver, channels) in senders.iter().enumerate() {
        let rank = Rank::new(receiver as u32);
        let arriving = resolve_arrivals(ranks, rank, channels, &mut ports);
        if arriving.unmatched_receive(&ranks[receiver]).is_some() {
            return Err(LinkError::Unmatched(UnmatchedRank { rank, arriving }));
        }
    }
    Ok(count_unreceived(ranks, &ports))
}

/// Says that more messages are received from a source than sent; `counts` are those received and those sent.
pub(crate) fn describe_shortage(
    counts: [u64; 2],
    src: Option<Rank>,
    tag: Option<Tag>,
    communicator: CommId,
) -> String {
    let [receives, sends] = counts;
    let plural = if receives == 1 { "" } else { "s" };
    let sent = match sends {
        0 => "none is sent".to_owned(),
        1 => "only 1 is sent".to_owned(),
        _ => format!("only {sends} are sent"),
    };
    let on = match communicator {
        CommId::WORLD => String::new(),
        id => format!(" on communicator {id}"),
    };
    let source = match (src, tag) {
        (None, _) => "all ranks, any or named,".to_owned(),
        (Some(src), None) => format!("rank {src} with any tag{on}"),
        (Some(src), Some(tag)) => format!("rank {src} with tag {tag}{on}"),
    };
    format!("receives {receives} message{plural} from {source} but {sent}")
}

/// Numbers of messages sent to one receiver.
#[derive(Debug)]
struct ArrivingMessages {
    all: u64,
    by_port: Vec<u64>,
    /// Messages with exactly the tag of each incoming channel.
    by_channel: Vec<u64>,
}

/// Resolves the arrival of all channels to one receiver, and counts their messages.
fn resolve_arrivals(
    ranks: &mut [LinkableRank],
    receiver: Rank,
    channels: &[(Rank, OutIdx)],
    ports: &mut [Vec<Option<PortId>>],
) -> ArrivingMessages {
    let trace = &ranks[receiver.index()].trace;
    let (by_port, by_channel) = (vec![0; trace.ports as usize], vec![0; trace.incoming.len()]);
    let mut arriving = ArrivingMessages { all: 0, by_port, by_channel };
    let matches_by_time = trace.has_timing_dependent_matching;
    let incoming: BTreeMap<(Rank, Option<Tag>, CommId), (usize, PortId)> =
        (trace.incoming.iter().enumerate())
            .map(|(index, incoming)| {
                let id = trace.communicators[incoming.communicator.index()].id;
                ((incoming.peer, incoming.tag, id), (index, incoming.port))
            })
            .collect();
    for &(sender, out) in channels {
        let from = &mut ranks[sender.index()];
        let (outgoing, sends) = (&mut from.trace.outgoing[out.index()], from.sends[out.index()]);
        let id = from.trace.communicators[outgoing.communicator.index()].id;
        add(&mut arriving.all, sends);
        let exact = incoming.get(&(sender, Some(outgoing.tag), id));
        if let Some((index, _)) = exact {
            add(&mut arriving.by_channel[*index], sends);
        }
        let port = exact.or_else(|| incoming.get(&(sender, None, id))).map(|(_, port)| *port);
        if let Some(port) = port {
            add(&mut arriving.by_port[port.index()], sends);
        }
        outgoing.set_arrival(match port {
            _ if matches_by_time => Arrival::AnySource,
            Some(port) => Arrival::Port(port),
            None => Arrival::Unmatched,
        });
        ports[sender.index()][out.index()] = port;
    }
    arriving
}

impl ArrivingMessages {
    /// Finds the first channel with more receives than messages. Wildcard receives match messages of every channel, so that they
    /// are unmatched only if there are fewer messages than receives in total.
    fn unmatched_receive(&self, linkable: &LinkableRank) -> Option<UnmatchedReceive> {
        let by_port = receives_by_port(linkable);
        let channels = linkable.trace.incoming.iter().zip(linkable.receives.iter().zip(&self.by_channel));
        let of_a_channel = channels.into_iter().find_map(|(incoming, (&receives, &sends))| {
            if incoming.tag.is_some() && receives > sends {
                return Some(UnmatchedReceive::new(&linkable.trace, incoming, sends, receives));
            }
            let port = incoming.port.index();
            let (sends, receives) = (self.by_port[port], by_port[port]);
            (receives > sends).then(|| UnmatchedReceive::new(&linkable.trace, incoming, sends, receives))
        });
        of_a_channel.or_else(|| self.unmatched_in_total(linkable))
    }

    fn unmatched_in_total(&self, linkable: &LinkableRank) -> Option<UnmatchedReceive> {
        let (sends, receives) = (self.all, all_receives(linkable));
        let is_short = linkable.receives_from_any > 0 && receives > sends;
        is_short.then_some(UnmatchedReceive {
            src: None,
            tag: None,
            communicator: CommId::WORLD,
            sends,
            receives,
        })
    }
}

impl UnmatchedReceive {
    fn new(trace: &RankTrace, incoming: &Incoming, sends: u64, receives: u64) -> Self {
        let communicator = trace.communicators[incoming.communicator.index()].id;
        Self { src: Some(incoming.peer), tag: incoming.tag, communicator, sends, receives }
    }
}

impl UnmatchedRank {
    /// Describes the first channel with more receives than messages, in the order of first use.
    ///
    /// # Panics
    /// If `linkable` is another rank.
    pub(crate) fn first_channel(&self, linkable: &LinkableRank) -> UnmatchedReceive {
        self.arriving.unmatched_receive(linkable).expect("the channels of the rank were short of messages")
    }

    /// Finds the first unmatched receive of the rank; returns the index of its action.
    pub(crate) fn first_action(&self, linkable: &LinkableRank) -> Option<(u64, UnmatchedReceive)> {
        let trace = &linkable.trace;
        let receives_by_port = receives_by_port(linkable);
        let ArrivingMessages { all, by_port: sent_by_port, by_channel: sent_by_channel } = &self.arriving;
        let mut excess_in_all = self.arriving.unmatched_in_total(linkable);
        let mut by_port = vec![0; sent_by_port.len()];
        let mut by_channel = vec![0; sent_by_channel.len()];
        for (before, (action, source)) in (0..).zip(receives(trace)) {
            if before == *all
                && let Some(excess) = excess_in_all.take()
            {
                return Some((action, excess));
            }
            let Source::Rank(channel) = source else { continue };
            let channel = channel.index();
            let incoming = &trace.incoming[channel];
            let port = incoming.port.index();
            by_port[port] += 1;
            by_channel[channel] += 1;
            if incoming.tag.is_some() && by_channel[channel] > sent_by_channel[channel] {
                let (sends, receives) = (sent_by_channel[channel], linkable.receives[channel]);
                return Some((action, UnmatchedReceive::new(trace, incoming, sends, receives)));
            }
            if by_port[port] > sent_by_port[port] {
                let (sends, receives) = (sent_by_port[port], receives_by_port[port]);
                return Some((action, UnmatchedReceive::new(trace, incoming, sends, receives)));
            }
        }
        None
    }
}

/// Yields the receives of a rank, even if cancelled later, each with the index of its action.
fn receives(trace: &RankTrace) -> impl Iterator<Item = (u64, Source)> + '_ {
    transfers(trace).filter_map(|(index, transfer)| match transfer {
        Transfer::Receive(source, _) if source != Source::ProcNull => Some((index, source)),
        _ => None,
    })
}

/// Counts the messages that are never received. Wildcard receives are assumed to match the first channels with messages left: which
/// messages they match depends on time, but their number does not.
fn count_unreceived(ranks: &[LinkableRank], ports: &[Vec<Option<PortId>>]) -> Option<Unreceived> {
    let mut receives: Vec<Vec<u64>> = ranks.iter().map(receives_by_port).collect();
    let mut from_any: Vec<u64> = ranks.iter().map(|linkable| linkable.receives_from_any).collect();
    let mut unreceived: Option<Unreceived> = None;
    for ((rank, linkable), ports) in (0..).map(Rank::new).zip(ranks).zip(ports) {
        for ((outgoing, sends), port) in linkable.trace.outgoing.iter().zip(&linkable.sends).zip(ports) {
            let received = port.map_or(0, |port| {
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

fn all_receives(linkable: &LinkableRank) -> u64 {
    let mut all = linkable.receives_from_any;
    linkable.receives.iter().for_each(|receives| add(&mut all, *receives));
    all
}

fn receives_by_port(linkable: &LinkableRank) -> Vec<u64> {
    let mut by_port = vec![0; linkable.trace.ports as usize];
    for (incoming, receives) in linkable.trace.incoming.iter().zip(&linkable.receives) {
        add(&mut by_port[incoming.port.index()], *receives);
    }
    by_port
}

/// Adds, saturating at 64 bits.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
