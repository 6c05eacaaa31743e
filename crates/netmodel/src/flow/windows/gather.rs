//! Components that lie in several pockets, which are moved to one.

use parking_lot::MutexGuard;
use pdes_core::SimTime;

use super::{FlowNetwork, RoutedTag, WindowMachine};
use crate::LinkId;

/// A pocket while parts of components are moved.
type Pocket<'a, 'p, T> = MutexGuard<'a, FlowNetwork<'p, RoutedTag<T>>>;

impl<'p, T: Copy> WindowMachine<'p, T> {
    /// Moves the parts of each component of the window that begins now to the target of the component.
    pub(super) fn gather(&self, now: SimTime) {
        let links: Vec<LinkId> = self
            .begins
            .iter()
            .flat_map(|flows| flows.lock().iter().flat_map(|flow| flow.links.to_vec()).collect::<Vec<_>>())
            .collect();
        let mut pockets: Vec<_> = self.pockets.iter().map(|pocket| pocket.network.lock()).collect();
        let mut is_complete = false;
        while !is_complete {
            is_complete = true;
            for &link in &links {
                let (pocket, target) = (self.components.pocket(link), self.components.target(link));
                if let (Some(pocket), Some(target)) = (pocket, target)
                    && pocket != target
                {
                    is_complete &= self.relocate(now, link, (pocket, target), &mut pockets);
                }
            }
        }
    }

    /// Moves the component under way that a link belongs to; returns false if that joined components with two targets.
    fn relocate(
        &self,
        now: SimTime,
        link: LinkId,
        (pocket, target): (u32, u32),
        pockets: &mut [Pocket<'_, 'p, T>],
    ) -> bool {
        let [from, to] = pockets
            .get_disjoint_mut([pocket as usize, target as usize])
            .expect("these are two of the pockets");
        let mut has_one_target = true;
        for other in from.move_component(now, link, to) {
            self.components.set_pocket(other, target);
            // Without a target no flow of this window begins on it.
            if let Some(known) = self.components.target(other) {
                has_one_target &= known == target;
                self.components.join(link, other);
                self.components.set_target(link, target);
            }
        }
        self.pockets[pocket as usize].update(from);
        self.pockets[target as usize].update(to);
        has_one_target
    }
}
