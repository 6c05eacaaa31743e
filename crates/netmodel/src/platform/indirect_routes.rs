//! Ways over third hosts, which shun loaded links.

use crate::{HostId, LinkId, Platform, RouteError};

impl Platform {
    /// Returns whether messages between the hosts that are farthest from each other have ways over a third group or switch, or, in a torus,
    /// over another host. The platform has to be one such cluster, without backbone and limiters.
    pub fn has_indirect_routes(&self) -> bool {
        let last = HostId::new((self.hosts().len() as u32).saturating_sub(1));
        self.third_host(HostId::new(0), last, 0).is_some()
    }

    /// Returns a host over whose switch a message between two hosts may go, one of several by a number; `None` if there is none.
    pub(crate) fn third_host(&self, src: HostId, dst: HostId, number: u64) -> Option<HostId> {
        let (topology, wiring) = self.whole_cluster()?;
        if wiring.backbone.is_some() || wiring.limiter.is_some() {
            return None;
        }
        topology.third_host(src.get(), dst.get(), number).map(HostId::new)
    }

    /// Writes the links from one host over the switch of another one to a third one into `out`: what leads to that host and back from it
    /// is left out. Costs twice as much as [`Platform::route`].
    ///
    /// # Errors
    /// As [`Platform::route`].
    pub(crate) fn route_over(
        &self,
        (src, via, dst): (HostId, HostId, HostId),
        out: &mut Vec<LinkId>,
    ) -> Result<(), RouteError> {
        let mut behind = Vec::new();
        self.route(via, dst, &mut behind)?;
        self.route(src, via, out)?;
        let cable = |link: LinkId| self.whole_cluster().and_then(|(_, wiring)| wiring.cable_of(link));
        let mut behind = behind.into_iter().peekable();
        while let (Some(&last), Some(&next)) = (out.last(), behind.peek())
            && cable(last).is_some_and(|last| cable(next) == Some(last))
        {
            out.pop();
            behind.next();
        }
        out.extend(behind);
        Ok(())
    }
}
