//! Virtual channels of the links that a packet crosses.

use netmodel::{Layout, LinkId, NetworkShape, SwitchShape};

use super::{PacketMachine, Ways};
use crate::PacketError;
use crate::parameters::Queues;

/// Largest number of virtual channels of a link.
pub(crate) const MAX_CHANNELS: u32 = 64;

/// How packets change from one virtual channel to another, so that buffers cannot wait for each other in a circle.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    /// Virtual channels of a link.
    pub(crate) count: u32,
    rule: ChannelRule,
}

/// Rules by which packets change channels (Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor Interconnection Networks",
/// 1987). The link to a destination needs no channel of its own, since hosts take in what comes.
#[derive(Clone, Debug)]
enum ChannelRule {
    /// Never: ways go up levels and down, or through dimensions in one order.
    Stay,
    /// After the cable that closes a ring, until the ring is left. By link: its ring, and whether it closes it.
    Dateline(Box<[(u32, bool)]>),
    /// After each cable between groups. By link: whether it is one.
    Groups(Box<[bool]>),
    /// After each link, those from hosts that forward nothing apart.
    Hops {
        /// Hosts forward.
        hosts_forward: bool,
    },
    /// As the routing does, which keeps the channel in these bits of the path of a packet.
    Path {
        /// The bits.
        mask: u32,
    },
}

impl Channels {
    /// Those of links without virtual channels.
    pub(super) const NONE: Self = Self { count: 1, rule: ChannelRule::Stay };

    /// Finds the channels that a routing needs, or returns an error if there are too few.
    pub(super) fn new(machine: &PacketMachine<'_>) -> Result<Self, PacketError> {
        let parameters = &machine.parameters;
        if parameters.queues == Queues::Fifo {
            return Ok(Self::NONE);
        }
        let (needed, rule) = Self::needed(machine);
        let count = parameters.virtual_channels.unwrap_or(needed);
        let routing = || parameters.routing.name().to_owned();
        if needed > MAX_CHANNELS {
            return Err(PacketError::ManyChannels { routing: routing(), found: needed, most: MAX_CHANNELS });
        }
        if count < needed {
            return Err(PacketError::FewChannels { routing: routing(), needed, found: count });
        }
        if count > MAX_CHANNELS {
            return Err(PacketError::BadChannels { found: count, most: MAX_CHANNELS });
        }
        Ok(Self { count, rule })
    }

    /// Returns the number of channels that a routing needs, and the rule by which packets use them.
    fn needed(machine: &PacketMachine<'_>) -> (u32, ChannelRule) {
        if let Ways::Detours(table) = &machine.ways {
            return (table.channels(), ChannelRule::Path { mask: table.channel_mask() });
        }
        let layout = Layout::of_bare(machine.platform);
        let is_static = matches!(machine.ways, Ways::Routes);
        // Around a failed link, and where they are given, ways may go down and up again.
        let is_irregular = machine.parameters.degraded.iter().any(|degraded| degraded.rate == 0.0)
            || machine.parameters.has_table()
            || !machine.given_routes.is_empty();
        match layout.as_ref().map(|layout| &layout.shape).filter(|_| !is_irregular) {
            Some(NetworkShape::Star { .. } | NetworkShape::FatTree { .. }) => (1, ChannelRule::Stay),
            // The routes of a HyperX take its dimensions in turn.
            Some(NetworkShape::Switches(SwitchShape::HyperX { .. })) if is_static => (1, ChannelRule::Stay),
            Some(NetworkShape::Switches(shape)) if shape.has_levels() => (1, ChannelRule::Stay),
            Some(NetworkShape::Torus { dims }) if is_static => {
                let mut rings = vec![(0, false); machine.platform.links().len()];
                let cables = layout.iter().filter_map(Layout::cables).flatten();
                for (cable, ends) in (0..).zip(cables) {
                    let ring = cable % dims.len() as u32;
                    let closes = ends.upper < ends.lower;
                    [ends.up, ends.down].into_iter().for_each(|link| rings[link.index()] = (ring, closes));
                }
                let channels = if dims.iter().all(|&size| size <= 2) { 1 } else { 2 };
                (channels, ChannelRule::Dateline(rings.into()))
            }
            Some(NetworkShape::Dragonfly(shape)) if is_static => {
                let routers = u64::from(shape.chassis * shape.blades);
                let mut is_between = vec![false; machine.platform.links().len()];
                let hosts = machine.homes.len() as u64;
                for ends in layout.iter().filter_map(Layout::cables).flatten() {
                    let group = |station: u64| station.checked_sub(hosts).map(|router| router / routers);
                    if let (Some(lower), Some(upper)) = (group(ends.lower), group(ends.upper)) {
                        [ends.up, ends.down]
                            .into_iter()
                            .for_each(|link| is_between[link.index()] = lower != upper);
                    }
                }
                (if shape.groups > 1 { 2 } else { 1 }, ChannelRule::Groups(is_between.into()))
            }
            _ => {
                let hosts_forward = machine.hosts_forward();
                let links = machine.longest_way();
                (
                    links.saturating_sub(if hosts_forward { 0 } else { 2 }).max(1),
                    ChannelRule::Hops { hosts_forward },
                )
            }
        }
    }

    /// Appends the channels of the links of a route.
    pub(crate) fn of_route(&self, links: &[LinkId], channels: &mut Vec<u8>) {
        let mut channel = 0;
        for (place, link) in links.iter().enumerate() {
            let before = place.checked_sub(1).map(|place| links[place]);
            channel = match (&self.rule, before) {
                (_, None) | (ChannelRule::Stay | ChannelRule::Path { .. }, _) => 0,
                (ChannelRule::Dateline(rings), Some(before)) => {
                    let ((ring, closes), (next, _)) = (rings[before.index()], rings[link.index()]);
                    if ring == next { channel + u8::from(closes) } else { 0 }
                }
                (ChannelRule::Groups(is_between), Some(before)) => {
                    channel + u8::from(is_between[before.index()])
                }
                (ChannelRule::Hops { .. }, _) => self.of_path(place as u32 + 1) as u8,
            };
            channels.push(channel);
        }
    }

    /// Returns the channel of the last link of a path, which is the number of links behind a packet, or what the routing makes of it.
    #[inline]
    pub(crate) fn of_path(&self, path: u32) -> u32 {
        match self.rule {
            ChannelRule::Hops { hosts_forward } => {
                path.saturating_sub(if hosts_forward { 1 } else { 2 }).min(self.count - 1)
            }
            ChannelRule::Path { mask } => path & mask,
            _ => 0,
        }
    }
}
