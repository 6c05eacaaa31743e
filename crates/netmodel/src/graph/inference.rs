//! Inference of a graph from the routes of a platform.

use super::{Channel, GraphError, NodeId};
use crate::{HostId, LinkId, Platform};

/// The ends of links, joined where routes pass from one to the next (union-find). Hosts come first; then the tail and the head of each
/// link.
pub(super) struct Inference<'p> {
    platform: &'p Platform,
    /// An element of the same node with a smaller number, or the element itself if it has the smallest: for a node with a host, the
    /// host.
    parents: Vec<u32>,
    is_crossed: Vec<bool>,
}

impl<'p> Inference<'p> {
    pub(super) fn new(platform: &'p Platform) -> Self {
        let links = platform.links().len();
        let parents = (0..(platform.hosts().len() + 2 * links) as u32).collect();
        Self { platform, parents, is_crossed: vec![false; links] }
    }

    /// Follows all routes; returns the links that they cross, with their ends.
    pub(super) fn channels(mut self) -> Result<Vec<Channel>, GraphError> {
        let hosts = self.platform.hosts().len() as u32;
        let mut route = Vec::new();
        for src in (0..hosts).map(HostId::new) {
            for dst in (0..hosts).map(HostId::new) {
                // Hosts without a route between them exchange no messages.
                if src != dst && self.platform.route(src, dst, &mut route).is_ok() {
                    self.follow(&route, src, dst)?;
                }
            }
        }
        let name = |link: usize| self.platform.links()[link].name.clone();
        let mut numbers: Vec<Option<u32>> = vec![None; self.parents.len()];
        let mut nodes = hosts;
        let mut channels = Vec::new();
        for link in (0..self.is_crossed.len()).filter(|&link| self.is_crossed[link]) {
            let id = LinkId::new(link as u32);
            let [from, to] = [0, 1].map(|end| find(&mut self.parents, hosts + 2 * id.get() + end));
            if from == to {
                return Err(GraphError::Limiter { link: name(link) });
            }
            let [from, to] = [from, to].map(|root| {
                let mut next = || {
                    nodes += 1;
                    nodes - 1
                };
                NodeId(if root < hosts {
                    root
                } else {
                    *numbers[root as usize].get_or_insert_with(&mut next)
                })
            });
            channels.push(Channel { link: id, from, to });
        }
        Ok(channels)
    }

    fn follow(&mut self, route: &[LinkId], src: HostId, dst: HostId) -> Result<(), GraphError> {
        let hosts = self.platform.hosts().len() as u32;
        let mut end = src.get();
        for &link in route {
            self.is_crossed[link.index()] = true;
            let [tail, head] = [0, 1].map(|side| hosts + 2 * link.get() + side);
            self.join(end, tail, (link, src, dst))?;
            end = head;
        }
        let last = route.last().copied().expect("a route crosses a link");
        self.join(end, dst.get(), (last, src, dst))
    }

    fn join(&mut self, one: u32, other: u32, on: (LinkId, HostId, HostId)) -> Result<(), GraphError> {
        let [one, other] = [one, other].map(|element| find(&mut self.parents, element));
        let (least, greatest) = (one.min(other), one.max(other));
        let hosts = self.platform.hosts().len() as u32;
        if least != greatest && greatest < hosts {
            let (link, src, dst) = on;
            let first = hosts + 2 * link.get();
            let [tail, head] = [first, first + 1].map(|end| find(&mut self.parents, end));
            let [src, dst] = [src, dst].map(|host| self.platform.host(host).name.clone());
            let link = self.platform.link(link).name.clone();
            // From the destination back to the source: its tail would be where it has ended before.
            return Err(match head == least || head == greatest {
                true if tail == least || tail == greatest => GraphError::HalfDuplex { link },
                _ => GraphError::SeveralEnds { link, src, dst },
            });
        }
        self.parents[greatest as usize] = least;
        Ok(())
    }
}

fn find(parents: &mut [u32], mut element: u32) -> u32 {
    while parents[element as usize] != element {
        parents[element as usize] = parents[parents[element as usize] as usize];
        element = parents[element as usize];
    }
    element
}
