//! The state of regions and pockets between two windows, which may recur.

use pdes_core::{SimDuration, SimTime, StateWriter};

use super::{StartingFlow, WindowRegion};
use crate::flow::pending::MessageOrder;
use crate::{HostId, NetworkModel};

impl<T: Copy> WindowRegion<'_, '_, T> {
    /// Counts windows from an instant at which no window is in progress.
    pub fn count_windows_from(&mut self, origin: SimTime) {
        self.origin = origin;
    }

    /// Writes everything on which the future of the region and of the pocket of its number depends, at the begin of a window;
    /// `write_tag` writes a tag. All regions together tell where the parts of the network are.
    pub fn write_state(&self, state: &mut StateWriter, mut write_tag: impl FnMut(T, &mut StateWriter)) {
        self.local.write_state(state, &mut write_tag);
        let mut starting: Vec<&StartingFlow<T>> = self.starting.iter().collect();
        // Stable: what has no order of its own stays in the order in which it was sent.
        starting.sort_by_key(|flow| (flow.begin, MessageOrder::of(&flow.message)));
        state.value(&starting.len());
        for StartingFlow { begin, message, .. } in starting {
            state.time(*begin);
            MessageOrder::of(message).write_state(state);
            let ends: [HostId; 2] = [message.src, message.dst];
            state.value(&(ends, message.size));
            write_tag(message.tag.tag, state);
        }
        let arriving = &self.arrivals[self.arrived..];
        state.value(&arriving.len());
        for &(at, tag) in arriving {
            state.time(at);
            write_tag(tag, state);
        }
        let pocket = self.machine.pockets[self.index as usize].network.lock();
        pocket.write_state(state, |routed, state| write_tag(routed.tag, state));
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    pub fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.local.watch_period(now, period, repetitions);
        let pocket = &self.machine.pockets[self.index as usize];
        pocket.network.lock().watch_period(now, period, repetitions);
    }

    /// Repeats the interval that was [announced](Self::watch_period) last and ends now, as
    /// [`NetworkModel::repeat_period`] does.
    pub fn repeat_period(&mut self, now: SimTime, time: SimDuration, mut shift_tag: impl FnMut(&mut T)) {
        self.local.repeat_period(now, time, &mut shift_tag);
        let pocket = &self.machine.pockets[self.index as usize];
        let mut network = pocket.network.lock();
        network.repeat_period(now, time, |routed| shift_tag(&mut routed.tag));
        pocket.update(&mut network);
        for StartingFlow { begin, message, .. } in &mut self.starting {
            *begin = begin.saturating_add(time);
            message.at = message.at.saturating_add(time);
            shift_tag(&mut message.tag.tag);
        }
        self.first_begin = self.first_begin.map(|begin| begin.saturating_add(time));
        for (at, tag) in &mut self.arrivals {
            *at = at.saturating_add(time);
            shift_tag(tag);
        }
        self.now = self.now.saturating_add(time);
    }
}
