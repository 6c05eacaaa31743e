//! Message matching: posted receives against arrived messages.
//!
//! A message matches the first posted receive that fits, a receive the first unexpected message. Without wildcards each
//! channel has one queue, of posted receives or of unexpected messages, never of both. A host where a receive has a
//! wildcard (any source or any tag) or a message matches any tag has a posted-receive list and an unexpected-message
//! list instead, which are searched.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::memory::zeroed_table;
use super::pool::{Pool, SlotQueue};
use super::{MAX_LISTED, Unmatched};
use crate::schedule::{ANY, Channel, Kind, Tables};

/// Posted receives and unexpected messages of some hosts.
#[derive(Debug)]
pub(crate) struct Matching<'a> {
    tables: Tables<'a>,
    ranks: Range<u32>,
    /// First channel that leads to these hosts.
    first_channel: u32,
    channels: Box<[ChannelQueue]>,
    /// Lists of the hosts with wildcards; empty if no host has any.
    match_lists: Vec<Option<Box<MatchLists>>>,
}

/// Queue of a channel, with the channel's ends.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct ChannelQueue {
    /// Posted receives or unexpected messages.
    queue: SlotQueue,
    source: u32,
    destination: u32,
}

#[derive(Clone, Debug, Default)]
struct MatchLists {
    posted: Vec<u32>,
    unexpected: Vec<u32>,
}

/// Unmatched receives and messages at the end of a simulation.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    pub(crate) receives: u64,
    pub(crate) messages: u64,
    /// The first few of them.
    pub(crate) examples: Vec<Unmatched>,
}

impl<'a> Matching<'a> {
    /// Makes the matching state of some of the ranks.
    pub(crate) fn new(tables: Tables<'a>, ranks: Range<u32>) -> Self {
        let own = |rank| &tables.channels[incoming_channels(&tables, &(rank..rank + 1))];
        let lists = |rank| own(rank).iter().any(Channel::has_wildcard).then(Box::<MatchLists>::default);
        let range = incoming_channels(&tables, &ranks);
        let own = &tables.channels[range.clone()];
        let any = own.iter().any(Channel::has_wildcard);
        let open = if any { ranks.clone().map(lists).collect() } else { Vec::new() };
        let mut channels: Box<[ChannelQueue]> = zeroed_table(own.len());
        for (waiting, channel) in channels.iter_mut().zip(own) {
            (waiting.source, waiting.destination) = (channel.source, channel.destination);
        }
        Self { tables, ranks, first_channel: range.start as u32, channels, match_lists: open }
    }

    /// Returns the index of a channel's queue; out of range for channels to other hosts.
    #[inline]
    fn local_index(&self, channel: u32) -> usize {
        channel.wrapping_sub(self.first_channel) as usize
    }

    /// Returns the source of a channel to these hosts; it is that of all sends in the channel.
    #[inline]
    pub(crate) fn source(&self, channel: u32) -> u32 {
        self.channels[self.local_index(channel)].source
    }

    /// Returns the destination of any channel.
    #[inline]
    pub(crate) fn destination(&self, channel: u32) -> u32 {
        match self.channels.get(self.local_index(channel)) {
            Some(waiting) => waiting.destination,
            None => self.tables.channels[channel as usize].destination,
        }
    }

    /// Removes and returns the posted receive that matches a message of a channel, if there is one.
    #[inline]
    pub(crate) fn take_posted(&mut self, pool: &mut Pool, host: u32, channel: u32) -> Option<u32> {
        self.take_match(pool, host, channel, Kind::Receive)
    }

    /// Removes and returns the unexpected message that matches a receive of a channel, if there is one.
    #[inline]
    pub(crate) fn take_unexpected(&mut self, pool: &mut Pool, host: u32, channel: u32) -> Option<u32> {
        self.take_match(pool, host, channel, Kind::Send)
    }

    #[inline]
    fn has_lists(&self, host: u32) -> bool {
        self.match_lists.get((host - self.ranks.start) as usize).is_some_and(Option::is_some)
    }

    #[inline]
    fn take_match(&mut self, pool: &mut Pool, host: u32, channel: u32, kind: Kind) -> Option<u32> {
        if self.has_lists(host) {
            return self.search(pool, host, channel, kind);
        }
        let place = self.local_index(channel);
        let waiting = &mut self.channels[place].queue;
        let is_there = waiting.first().is_some_and(|first| pool[first].attributes.kind() == kind as u8);
        if is_there { waiting.pop(pool) } else { None }
    }

    /// Adds a receive to the posted ones, or a message to the unexpected ones.
    #[inline]
    pub(crate) fn enqueue(&mut self, pool: &mut Pool, host: u32, slot: u32) {
        if self.has_lists(host) {
            return self.push_to_list(pool, host, slot);
        }
        let place = self.local_index(pool[slot].channel);
        self.channels[place].queue.push(slot, pool);
    }

    #[cold]
    fn search(&mut self, pool: &Pool, host: u32, channel: u32, kind: Kind) -> Option<u32> {
        let channels = self.tables.channels;
        let list = self.list_mut(host, kind)?;
        let matches = |candidate: &u32| {
            channels[pool[*candidate].channel as usize].matches(&channels[channel as usize])
        };
        list.iter().position(matches).map(|at| list.remove(at))
    }

    #[cold]
    fn push_to_list(&mut self, pool: &Pool, host: u32, slot: u32) {
        let kind =
            if pool[slot].attributes.kind() == Kind::Receive as u8 { Kind::Receive } else { Kind::Send };
        if let Some(list) = self.list_mut(host, kind) {
            list.push(slot);
        }
    }

    /// Returns the posted receives or the unexpected messages of a host with lists.
    fn list_mut(&mut self, host: u32, kind: Kind) -> Option<&mut Vec<u32>> {
        let lists = self.match_lists.get_mut((host - self.ranks.start) as usize)?.as_mut()?;
        Some(if kind == Kind::Receive { &mut lists.posted } else { &mut lists.unexpected })
    }

    /// Adds the unmatched receives and messages to `left`, host after host.
    pub(crate) fn add_unmatched(&self, pool: &Pool, left: &mut Leftovers) {
        let mut add = |slot: u32| {
            let node = pool[slot].node;
            let is_message = self.tables.nodes[node as usize].kind() == Kind::Send;
            *(if is_message { &mut left.messages } else { &mut left.receives }) += 1;
            if left.examples.len() < MAX_LISTED {
                left.examples.push(unmatched(&self.tables, node, is_message));
            }
        };
        for rank in self.ranks.clone() {
            let own = incoming_channels(&self.tables, &(rank..rank + 1));
            for channel in own {
                self.channels[self.local_index(channel as u32)].queue.iter(pool).for_each(&mut add);
            }
            if let Some(Some(lists)) = self.match_lists.get((rank - self.ranks.start) as usize) {
                lists.posted.iter().chain(&lists.unexpected).copied().for_each(&mut add);
            }
        }
    }
}

/// Returns the channels that lead to some ranks.
fn incoming_channels(tables: &Tables<'_>, ranks: &Range<u32>) -> Range<usize> {
    tables.first_channel[ranks.start as usize] as usize..tables.first_channel[ranks.end as usize] as usize
}

fn unmatched(tables: &Tables<'_>, node: u32, is_message: bool) -> Unmatched {
    let channel = tables.channels[tables.nodes[node as usize].channel as usize];
    let known = |number| (number != ANY).then_some(number);
    let owner = if is_message { channel.source } else { channel.destination };
    Unmatched {
        is_message,
        rank: channel.destination,
        source: known(channel.source),
        tag: known(channel.tag),
        operation: node - tables.first_node[owner as usize] as u32,
    }
}
