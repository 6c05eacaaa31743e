//! Links that have failed or are slow.

use netmodel::{HostId, LinkId, NetworkGraph, Platform};

use crate::parameters::DegradedLink;
use crate::{PacketError, PacketParameters};

/// Longest time of a packet on a degraded link \[s\]: sums of a few thousand stay in the range of the clock.
const LONGEST_PACKET: f64 = 3600.0;

/// Returns what is left of the bandwidth of each link, from 0 to 1.
pub(super) fn rates(
    platform: &Platform,
    graph: &NetworkGraph,
    parameters: &PacketParameters,
) -> Result<Vec<f64>, PacketError> {
    let mut rates = vec![1.0; platform.links().len()];
    let mut is_degraded = vec![false; rates.len()];
    for DegradedLink { link, rate } in &parameters.degraded {
        if !(0.0..=1.0).contains(rate) {
            return Err(PacketError::BadRate { link: link.clone(), found: rate.to_string() });
        }
        let is_named = |name: &str| {
            name.strip_prefix(link.as_str()).is_some_and(|end| matches!(end, "" | "_UP" | "_DOWN"))
        };
        let named: Vec<LinkId> = graph
            .channels()
            .iter()
            .map(|channel| channel.link)
            .filter(|&id| is_named(&platform.link(id).name))
            .collect();
        if named.is_empty() {
            return Err(PacketError::UnknownLink { link: link.clone() });
        }
        let bytes = f64::from(parameters.packet_bytes) + f64::from(parameters.header_bytes);
        let seconds = |id: &LinkId| bytes / (platform.link(*id).bandwidth * rate);
        if *rate > 0.0 && named.iter().any(|id| seconds(id) > LONGEST_PACKET) {
            return Err(PacketError::SlowLink { link: link.clone(), found: format!("{rate:e}") });
        }
        for id in named {
            if is_degraded[id.index()] {
                return Err(PacketError::RepeatedLink { link: platform.link(id).name.clone() });
            }
            is_degraded[id.index()] = true;
            rates[id.index()] = *rate;
        }
    }
    if !parameters.routing.avoids_links()
        && let Some(failed) = rates.iter().position(|&rate| rate == 0.0)
    {
        let link = platform.link(LinkId::new(failed as u32)).name.clone();
        return Err(PacketError::UnavoidableLink { link, routing: parameters.routing.name().to_owned() });
    }
    if rates.contains(&0.0) {
        check_hosts(platform, graph, &rates)?;
    }
    Ok(rates)
}

/// Checks that a link from each host and one to it work.
fn check_hosts(platform: &Platform, graph: &NetworkGraph, rates: &[f64]) -> Result<(), PacketError> {
    for host in (0..graph.hosts()).map(HostId::new) {
        for channels in [graph.outputs(host.into()), graph.inputs(host.into())] {
            let mut links = channels.iter().map(|&channel| graph.channel(channel).link);
            let first = links.clone().next();
            if let Some(first) = first
                && links.all(|link| rates[link.index()] == 0.0)
            {
                let host = platform.host(host).name.clone();
                return Err(PacketError::CutOff { host, link: platform.link(first).name.clone() });
            }
        }
    }
    Ok(())
}
