//! Which hosts are visited in which window.

use std::collections::BTreeMap;

/// Hosts by the window in which they are visited; entries may be outdated.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The window that comes next.
    window: u64,
    /// The windows from there on, each at its number modulo their number.
    days: Vec<Vec<u32>>,
    /// How many entries those have.
    entries: usize,
    /// The windows behind.
    later: BTreeMap<u64, Vec<u32>>,
}

impl Calendar {
    const DAYS: u64 = 1024;

    pub(crate) fn new() -> Self {
        let days = vec![Vec::new(); Self::DAYS as usize];
        Self { window: 1, days, entries: 0, later: BTreeMap::new() }
    }

    #[inline]
    pub(crate) fn enter(&mut self, window: u64, host: u32) {
        if window - self.window < Self::DAYS {
            self.entries += 1;
            self.days[(window % Self::DAYS) as usize].push(host);
        } else {
            self.later.entry(window).or_default().push(host);
        }
    }

    /// Goes behind the next window that has entries; returns it and puts them into an empty list.
    pub(crate) fn turn(&mut self, hosts: &mut Vec<u32>) -> Option<u64> {
        if self.entries == 0 {
            self.window = *self.later.first_key_value()?.0;
        }
        loop {
            let window = self.window;
            self.window += 1;
            std::mem::swap(hosts, &mut self.days[(window % Self::DAYS) as usize]);
            self.entries -= hosts.len();
            // What lay behind the last day when it was entered comes in here.
            if let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() == window) {
                hosts.extend(entry.remove());
            }
            if !hosts.is_empty() {
                return Some(window);
            }
        }
    }
}
