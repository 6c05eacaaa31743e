//! Saving of the state of the flow model, for checkpoints.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::FlowNetwork;
use crate::network_model::read_state;
use crate::{ForeignState, HostId, MaxMin};

impl<T: Copy> FlowNetwork<'_, T> {
    /// Encodes the state between two events. Routes are saved by their ends, in the order of their numbers.
    pub(super) fn to_bytes(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        let Self { sharing, progress, active, begun, pending, events, cpus, now, recorder, .. } = self;
        let routes: Vec<(HostId, HostId)> = self.routes.all_ends().collect();
        let state = (routes, sharing, progress, active, begun, pending, events, cpus, now, recorder);
        postcard::to_stdvec(&state).expect("the state is encoded in memory")
    }

    /// Restores a state into an idle network.
    ///
    /// # Errors
    /// If it is not one of this platform.
    pub(super) fn restore_bytes(&mut self, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        let (ends, sharing, progress, active, begun, pending, events, cpus, now, recorder) =
            read_state(state)?;
        let ends: Vec<(HostId, HostId)> = ends;
        // Links get their numbers again in the order of the routes.
        let mut links = MaxMin::default();
        for (number, &(src, dst)) in ends.iter().enumerate() {
            let hosts = self.routes.platform().hosts().len();
            let is_known = src.index() < hosts && dst.index() < hosts;
            let route = is_known.then(|| self.routes.find(src, dst, &mut links).ok()).flatten();
            if route != Some(number as u32) {
                return Err(ForeignState);
            }
        }
        (self.sharing, self.progress, self.active, self.begun) = (sharing, progress, active, begun);
        (self.pending, self.events, self.cpus, self.now) = (pending, events, cpus, now);
        (self.recorder, self.upcoming) = (recorder, None);
        if links.links() == self.sharing.links() { Ok(()) } else { Err(ForeignState) }
    }
}
