//! Matching: which receive takes which message.
//!
//! A message takes the first posted receive that fits, a receive the first arrived message. Where nothing is left open
//! that is a queue per channel, of receives or of messages, never of both. At a host where a receive leaves source or tag
//! open, or a message matches any tag, two lists are searched instead.

use bytemuck::{Pod, Zeroable};

use super::Unmatched;
use super::memory::table;
use super::pool::{List, Pool};
use super::program::Program;
use crate::schedule::{ANY, Channel, Kind, Tables};

/// What waits at the hosts for its counterpart.
#[derive(Debug)]
pub(crate) struct Matching {
    channels: Box<[Waiting]>,
    /// The lists of the hosts that have some, by their rank; none at all where no host has some.
    open: Vec<Option<Box<Lists>>>,
}

/// What waits in a channel, and where that leads.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Waiting {
    /// Receives or messages.
    list: List,
    source: u32,
    destination: u32,
}

#[derive(Clone, Debug, Default)]
struct Lists {
    receives: Vec<u32>,
    messages: Vec<u32>,
}

impl Matching {
    pub(crate) fn new(tables: &Tables<'_>) -> Self {
        let own = |rank: u32| {
            let rank = rank as usize;
            &tables.channels[tables.first_channel[rank] as usize..tables.first_channel[rank + 1] as usize]
        };
        let lists = |rank| own(rank).iter().any(Channel::is_open).then(Box::<Lists>::default);
        let any = tables.channels.iter().any(Channel::is_open);
        let open = if any { (0..tables.ranks()).map(lists).collect() } else { Vec::new() };
        let mut channels: Box<[Waiting]> = table(tables.channels.len());
        for (waiting, channel) in channels.iter_mut().zip(tables.channels) {
            (waiting.source, waiting.destination) = (channel.source, channel.destination);
        }
        Self { channels, open }
    }

    /// Returns the rank from which the messages of a channel come; it is that of all sends in a channel.
    #[inline]
    pub(crate) fn source(&self, channel: u32) -> u32 {
        self.channels[channel as usize].source
    }

    /// Returns the rank to which the messages of a channel go.
    #[inline]
    pub(crate) fn destination(&self, channel: u32) -> u32 {
        self.channels[channel as usize].destination
    }

    /// The same, unless it is that of a computation, which has none.
    #[inline]
    pub(crate) fn leads_to(&self, channel: u32) -> Option<u32> {
        self.channels.get(channel as usize).map(|waiting| waiting.destination)
    }

    /// Returns the receive that takes a message, or lets the message wait.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        program: &Program<'_>,
        pool: &mut Pool,
        host: u32,
        message: u32,
    ) -> Option<u32> {
        self.meet(program, pool, host, message, Kind::Receive)
    }

    /// Returns the message that a receive takes, or lets the receive wait.
    #[inline]
    pub(crate) fn post(
        &mut self,
        program: &Program<'_>,
        pool: &mut Pool,
        host: u32,
        receive: u32,
    ) -> Option<u32> {
        self.meet(program, pool, host, receive, Kind::Send)
    }

    #[inline]
    fn meet(
        &mut self,
        program: &Program<'_>,
        pool: &mut Pool,
        host: u32,
        slot: u32,
        other: Kind,
    ) -> Option<u32> {
        if self.open.get(host as usize).is_some_and(Option::is_some) {
            return self.search(program, pool, host, slot, other);
        }
        let waiting = &mut self.channels[pool[slot].channel as usize].list;
        if waiting.first().is_some_and(|first| pool[first].sort.kind() == other as u8) {
            return waiting.pop(pool);
        }
        waiting.push(slot, pool);
        None
    }

    #[cold]
    fn search(
        &mut self,
        program: &Program<'_>,
        pool: &Pool,
        host: u32,
        slot: u32,
        other: Kind,
    ) -> Option<u32> {
        let channel = |slot: u32| program.tables.channels[pool[slot].channel as usize];
        let lists = self.open.get_mut(host as usize)?.as_mut()?;
        let (theirs, ours) = match other {
            Kind::Receive => (&mut lists.receives, &mut lists.messages),
            _ => (&mut lists.messages, &mut lists.receives),
        };
        match theirs.iter().position(|&candidate| channel(candidate).matches(&channel(slot))) {
            Some(at) => Some(theirs.remove(at)),
            None => {
                ours.push(slot);
                None
            }
        }
    }

    /// Returns how many receives and messages wait, and the first ones.
    pub(crate) fn left(&self, program: &Program<'_>, pool: &Pool, most: usize) -> (u64, u64, Vec<Unmatched>) {
        let (mut receives, mut messages, mut left) = (0, 0, Vec::new());
        let mut count = |slot: u32| {
            let node = pool[slot].node;
            let is_message = program.tables.nodes[node as usize].kind() == Kind::Send;
            *(if is_message { &mut messages } else { &mut receives }) += 1;
            if left.len() < most {
                left.push(unmatched(&program.tables, node, is_message));
            }
        };
        for waiting in self.channels.iter() {
            waiting.list.iter(pool).for_each(&mut count);
        }
        for lists in self.open.iter().flatten() {
            lists.receives.iter().chain(&lists.messages).copied().for_each(&mut count);
        }
        (receives, messages, left)
    }
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
