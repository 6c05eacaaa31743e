//! Assignment of links to regions.

use crate::platform::routing::Routing;
use crate::{HostId, LinkId, Platform};

/// Returns the host of each link; its region owns the link. `blocks` has the region of each host.
pub(super) fn link_owners(platform: &Platform, blocks: &[u32]) -> Vec<HostId> {
    let mut owners = Owners { hosts: vec![None; platform.links().len()] };
    for zone in platform.zones() {
        if let Routing::Cluster(topology, wiring) = &zone.routing {
            let first = zone.hosts.start;
            for (cable, host) in (0..).zip(topology.cable_hosts()) {
                owners.set(wiring.up(cable), first + host);
                owners.set(wiring.down(cable), first + host);
            }
            for host in 0..topology.hosts() as u32 {
                wiring.loopback(host).into_iter().for_each(|link| owners.set(link, first + host));
            }
            let mut limiter = Vec::new();
            for (station, host) in (0..).zip((0..topology.hosts() as u32).chain(topology.switch_hosts())) {
                wiring.push_limiter(station, &mut limiter);
                limiter.drain(..).for_each(|link| owners.set(link, first + host));
            }
            wiring.backbone.into_iter().for_each(|link| owners.set(link, first));
        }
    }
    if owners.hosts.contains(&None) {
        owners.follow_routes(platform, blocks);
    }
    owners.hosts.into_iter().map(|host| HostId::new(host.unwrap_or(0))).collect()
}

struct Owners {
    hosts: Vec<Option<u32>>,
}

impl Owners {
    /// Sets the host of a link unless it has one.
    fn set(&mut self, link: LinkId, host: u32) {
        self.hosts[link.index()].get_or_insert(host);
    }

    /// Assigns the links of the routes between the first hosts of the regions and all hosts to the nearer end.
    fn follow_routes(&mut self, platform: &Platform, blocks: &[u32]) {
        let mut first_hosts: Vec<u32> = (0..blocks.len() as u32).collect();
        first_hosts.sort_by_key(|&host| blocks[host as usize]);
        first_hosts.dedup_by_key(|host| blocks[*host as usize]);
        let mut route = Vec::new();
        for host in 0..blocks.len() as u32 {
            for &first in &first_hosts {
                for (src, dst) in [(host, first), (first, host)] {
                    if platform.route(HostId::new(src), HostId::new(dst), &mut route).is_err() {
                        continue;
                    }
                    let half = route.len().div_ceil(2);
                    route[..half].iter().for_each(|&link| self.set(link, src));
                    route[half..].iter().for_each(|&link| self.set(link, dst));
                }
            }
        }
    }
}
