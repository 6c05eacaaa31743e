//! Components that lie in several subnetworks, which are moved to one.

use parking_lot::MutexGuard;
use pdes_core::SimTime;

use super::{FlowNetwork, RoutedTag, WindowMachine};
use crate::LinkId;

/// A subnetwork while parts of components are moved.
type Subnetwork<'a, 'p, T> = MutexGuard<'a, FlowNetwork<'p, RoutedTag<T>>>;

impl<'p, T: Copy> WindowMachine<'p, T> {
    /// Moves the parts of each component of the window that begins now to the target of the component.
    pub(super) fn gather(&self, now: SimTime) {
        let links: Vec<LinkId> = self
            .begins
            .iter()
            .flat_map(|flows| flows.lock().iter().flat_map(|flow| flow.links.to_vec()).collect::<Vec<_>>())
            .collect();
        let mut subnetworks: Vec<_> =
            self.subnetworks.iter().map(|subnetwork| subnetwork.network.lock()).collect();
        let mut is_complete = false;
        while !is_complete {
            is_complete = true;
            for &link in &links {
                let (subnetwork, target) = (self.components.subnetwork(link), self.components.target(link));
                if let (Some(subnetwork), Some(target)) = (subnetwork, target)
                    && subnetwork != target
                {
                    is_complete &= self.relocate(now, link, (subnetwork, target), &mut subnetworks);
                }
            }
        }
    }

    /// Moves the component under way that a link belongs to; returns false if that joined components with two targets.
    fn relocate(
        &self,
        now: SimTime,
        link: LinkId,
        (subnetwork, target): (u32, u32),
        subnetworks: &mut [Subnetwork<'_, 'p, T>],
    ) -> bool {
        let [from, to] = subnetworks
            .get_disjoint_mut([subnetwork as usize, target as usize])
            .expect("these are two of the subnetworks");
        let mut has_one_target = true;
        for other in from.move_component(now, link, to) {
            self.components.set_subnetwork(other, target);
            // Without a target no flow of this window begins on it.
            if let Some(known) = self.components.target(other) {
                has_one_target &= known == target;
                self.components.join(link, other);
                self.components.set_target(link, target);
            }
        }
        self.subnetworks[subnetwork as usize].update(from);
        self.subnetworks[target as usize].update(to);
        has_one_target
    }
}
