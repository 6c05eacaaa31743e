//! Runs messages in one region or several, as the engines do.

use netmodel::{HostId, LinkLoads, Message, NetworkModel, Platform, SwitchOperation};
use packets::{PacketArrival, PacketMachine, PacketParameters, PacketRegion};
use pdes_core::{Bytes, SimTime};

/// A message: begin \[ps\], source, destination, bytes.
pub(crate) type Sent = (u64, u32, u32, u64);

/// The part of a host in an operation of switches: begin \[ps\], host, bytes.
pub(crate) type Part = (u64, u32, u64, SwitchOperation);

/// What happened to messages, in their order, and to packets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Instants at which the last bytes left \[ps\].
    pub(crate) left: Vec<u64>,
    /// Instants at which the last bytes arrived \[ps\].
    pub(crate) arrived: Vec<u64>,
    /// All arrivals of packets, in order.
    pub(crate) packets: Vec<PacketArrival>,
    pub(crate) hops: u64,
}

impl Run {
    pub(crate) fn last(&self) -> u64 {
        self.arrived.iter().copied().max().unwrap()
    }
}

/// Makes a message, with its number as the tag.
pub(crate) fn message(tag: u32, (at, src, dst, bytes): Sent) -> Message<u32> {
    let [src, dst] = [src, dst].map(HostId::new);
    Message { order: tag.into(), ..Message::new(SimTime::from_picos(at), src, dst, Bytes::new(bytes), tag) }
}

/// Makes the machine of one region.
pub(crate) fn machine<'p>(platform: &'p Platform, parameters: &PacketParameters) -> PacketMachine<'p> {
    machine_of(platform, parameters, &vec![0; platform.hosts().len()])
}

pub(crate) fn machine_of<'p>(
    platform: &'p Platform,
    parameters: &PacketParameters,
    homes: &[u32],
) -> PacketMachine<'p> {
    let regions = homes.iter().max().unwrap() + 1;
    PacketMachine::new(platform, parameters, (homes, regions)).unwrap()
}

/// The end of a message, and its tag.
pub(crate) type Ended = (&'static str, u32);

/// Advances a region to its next event.
pub(crate) fn step(region: &mut PacketRegion<'_, '_, u32>, ended: &mut Vec<Ended>) {
    let (mut left, mut arrived) = (Vec::new(), Vec::new());
    region.advance(&mut arrived);
    region.take_left(&mut left);
    ended.extend(left.into_iter().map(|tag| ("left", tag)));
    ended.extend(arrived.into_iter().map(|tag| ("arrived", tag)));
}

/// Runs messages on one region.
pub(crate) fn run(platform: &Platform, parameters: &PacketParameters, messages: &[Sent]) -> Run {
    run_in(platform, parameters, &vec![0; platform.hosts().len()], messages)
}

/// Runs messages in regions, span by span.
pub(crate) fn run_in(
    platform: &Platform,
    parameters: &PacketParameters,
    homes: &[u32],
    messages: &[Sent],
) -> Run {
    let machine = machine_of(platform, parameters, homes);
    let regions = machine.make_regions(0..machine.regions());
    run_on(&machine, regions, homes, (messages, &[])).0
}

/// Runs messages in regions; returns the loads of links, too.
pub(crate) fn run_recorded(
    platform: &Platform,
    parameters: &PacketParameters,
    homes: &[u32],
    messages: &[Sent],
) -> (Run, LinkLoads) {
    let machine = machine_of(platform, parameters, homes);
    run_operations(&machine, platform, homes, (messages, &[]))
}

/// Runs messages and operations of switches on a machine in regions; returns the loads of links, too.
pub(crate) fn run_operations(
    machine: &PacketMachine<'_>,
    platform: &Platform,
    homes: &[u32],
    (messages, parts): (&[Sent], &[Part]),
) -> (Run, LinkLoads) {
    let regions = machine.make_regions(0..machine.regions());
    let regions: Vec<_> = regions.into_iter().map(NetworkModel::with_link_loads).collect();
    let (run, mut regions) = run_on(machine, regions, homes, (messages, parts));
    let end = SimTime::from_picos(run.last());
    let totals = regions.iter_mut().flat_map(|region| region.link_totals(end));
    (run, LinkLoads::new(platform, end, totals))
}

/// Runs messages in the idle regions of a machine.
fn run_on<'m, 'p>(
    machine: &'m PacketMachine<'p>,
    regions: Vec<PacketRegion<'m, 'p, u32>>,
    homes: &[u32],
    (messages, parts): (&[Sent], &[Part]),
) -> (Run, Vec<PacketRegion<'m, 'p, u32>>) {
    let mut regions: Vec<_> = regions.into_iter().map(PacketRegion::with_recorded_arrivals).collect();
    for (tag, &sent) in (0..).zip(messages) {
        regions[homes[sent.1 as usize] as usize].send(message(tag, sent)).unwrap();
    }
    for (tag, &(at, host, bytes, operation)) in (messages.len() as u32..).zip(parts) {
        regions[homes[host as usize] as usize].operate(message(tag, (at, host, host, bytes)), operation);
    }
    let all = messages.len() + parts.len();
    let mut run =
        Run { left: vec![u64::MAX; all], arrived: vec![u64::MAX; all], packets: Vec::new(), hops: 0 };
    let span = machine.span().as_picos();
    let mut ended = Vec::new();
    let next = |region: &mut PacketRegion<'_, '_, u32>| {
        region.next_event().into_iter().chain(region.next_boundary()).min()
    };
    while let Some(at) = regions.iter_mut().filter_map(next).min() {
        let begin = at.as_picos() / span * span;
        let end = SimTime::from_picos(begin + span);
        // No region depends on another one: from the last to the first.
        for region in regions.iter_mut().rev() {
            while region.next_event().is_some_and(|at| at < end) {
                step(region, &mut ended);
                let now = region.now().as_picos();
                for (end, tag) in ended.drain(..) {
                    let times = if end == "left" { &mut run.left } else { &mut run.arrived };
                    assert_eq!(times[tag as usize], u64::MAX, "message {tag} has {end} once");
                    times[tag as usize] = now;
                }
            }
            assert!(!region.is_late());
        }
        let mut mail = Vec::new();
        loop {
            regions.iter_mut().for_each(|region| region.take_messages(&mut mail));
            if mail.is_empty() {
                break;
            }
            mail.drain(..).for_each(|(to, message)| regions[to as usize].receive(message));
        }
    }
    for region in &regions {
        assert_eq!(region.unfinished().next(), None);
        run.packets.extend(region.recorded_arrivals());
        run.hops += region.counts().1;
    }
    run.packets.sort_unstable();
    (run, regions)
}
