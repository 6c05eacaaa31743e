//! Messages sent at given times.

use netmodel::{HostId, Platform};
use pdes_core::SimTime;

use crate::random::Random;

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: SimTime,
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) size: u64,
}

/// Traffic pattern: destinations and sending times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// To a random host.
    Uniform,
    /// Always to the same host.
    Permutation,
    /// Half of the messages to the first host of a block of 16.
    Incast,
    /// To a random host, all at the same instants.
    Burst,
}

pub(crate) const PATTERNS: [Pattern; 4] =
    [Pattern::Uniform, Pattern::Permutation, Pattern::Incast, Pattern::Burst];

impl Pattern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "random",
            Self::Permutation => "permutation",
            Self::Incast => "incast",
            Self::Burst => "bursts",
        }
    }
}

/// Sizes [B] and their percentages of the messages.
const SIZES: [(u64, u64); 4] = [(1 << 10, 40), (1 << 14, 30), (1 << 17, 20), (1 << 20, 10)];

pub(crate) struct Traffic {
    pub(crate) pattern: Pattern,
    /// Load: traffic of the hosts, as a fraction of their maximum.
    pub(crate) load: f64,
    pub(crate) count: usize,
    /// Maximum rate of a host [B/s].
    pub(crate) rate: f64,
}

impl Random {
    /// Returns a time between two arrivals of a Poisson process.
    fn gap(&mut self, mean: f64) -> f64 {
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -mean * uniform.ln()
    }

    fn size(&mut self) -> u64 {
        let mut draw = self.below(100);
        for (size, count) in SIZES {
            if draw < count {
                return size;
            }
            draw -= count;
        }
        SIZES[0].0
    }
}

impl Traffic {
    /// Draws messages, ordered by sending time.
    pub(crate) fn draw(&self, platform: &Platform) -> Vec<Sent> {
        let hosts = platform.hosts().len() as u64;
        let mean: f64 = SIZES.iter().map(|&(size, count)| (size * count) as f64 / 100.0).sum();
        let gap = mean / (self.load * self.rate * hosts as f64) * 1e12;
        let mut random = Random(7);
        let mut partners: Vec<u64> = (0..hosts).collect();
        for last in (1..hosts).rev() {
            partners.swap(last as usize, random.below(last + 1) as usize);
        }
        let mut at = 0.0;
        let mut messages = Vec::new();
        for number in 0..self.count {
            at += random.gap(gap);
            let src = random.below(hosts);
            let anyone = (src + 1 + random.below(hosts - 1)) % hosts;
            let (time, dst) = match self.pattern {
                Pattern::Uniform => (at, anyone),
                Pattern::Permutation if partners[src as usize] == src => (at, anyone),
                Pattern::Permutation => (at, partners[src as usize]),
                Pattern::Incast if number % 2 == 0 => (at, anyone),
                Pattern::Incast => (at, anyone / 16 * 16),
                Pattern::Burst => ((at / (gap * hosts as f64)).floor() * gap * hosts as f64, anyone),
            };
            if src != dst {
                let [src, dst] = [src, dst].map(|host| HostId::new(host as u32));
                messages.push(Sent { at: SimTime::from_picos(time as u64), src, dst, size: random.size() });
            }
        }
        messages
    }
}
