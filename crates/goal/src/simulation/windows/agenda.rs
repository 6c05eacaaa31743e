//! Which hosts are visited on which day.

use std::ops::Range;

/// The next visits of hosts, by their days; a host has one at most.
pub(super) trait Agenda: Send {
    /// Makes that of some hosts, without visits.
    fn new(hosts: &Range<u32>) -> Self;

    /// Returns the logarithm of the length of a day \[ps\], where a window may last so long \[ps\]: no longer than that.
    fn day(flight: u64) -> u32;

    /// Plans the visit of a host.
    fn enter(&mut self, day: u64, host: u32);

    /// Takes the visit of a host away, unless outdated visits are told by their day.
    fn remove(&mut self, host: u32);

    /// Returns the next day with a visit.
    fn next(&self) -> Option<u64>;

    /// Returns the host of the next visit, where hosts are visited one by one. Its next visit takes the place of that one.
    fn one(&self) -> Option<u32>;

    /// Takes visits of the next day away, one at least, and adds their hosts to a list.
    fn turn(&mut self, day: u64, hosts: &mut Vec<u32>);
}
