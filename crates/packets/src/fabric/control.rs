//! Windows and rates of messages that are being sent, which change by marks of long queues.

use pdes_core::StateVisitor;
use serde::{Deserialize, Serialize};

use super::picos;
use crate::Congestion;
use crate::packet::visit_picos;

/// Control of a message by marks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Control {
    /// With `dctcp`.
    Window(Window),
    /// With `dcqcn`; `None` until the first notification.
    Rate(Option<Rate>),
}

impl Control {
    /// Makes the control of a message of which so many packets may be on their way.
    pub(super) fn new(congestion: Congestion, limit: u32) -> Option<Self> {
        match congestion {
            Congestion::Dctcp => Some(Self::Window(Window::new(limit))),
            Congestion::Dcqcn => Some(Self::Rate(None)),
            Congestion::None | Congestion::ReceiverCredits => None,
        }
    }

    /// Takes in an acknowledgement that came at an instant; returns the number of packets that may be on their way, which was `limit`.
    pub(super) fn acknowledge(&mut self, at: u64, is_marked: bool, limit: u32) -> u32 {
        match self {
            Self::Window(window) => window.acknowledge(is_marked),
            Self::Rate(rate) => {
                if is_marked {
                    *rate = Some(rate.map_or_else(|| Rate::notified(at), |rate| rate.notify(at)));
                }
                limit
            }
        }
    }

    /// Takes in that a packet of so many bytes began to leave at an instant, which takes `time` at the rate of its port.
    pub(super) fn count_sent(&mut self, at: u64, bytes: u32, time: u64) {
        if let Self::Rate(Some(rate)) = self {
            rate.count_sent(at, bytes, time);
        }
    }

    /// Returns the instant until which the message pauses, if that is after this one.
    pub(super) fn pause(&self, at: u64) -> Option<u64> {
        match self {
            Self::Rate(Some(Rate { next, .. })) => Some(*next).filter(|&next| next > at),
            Self::Rate(None) | Self::Window(_) => None,
        }
    }

    pub(super) fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        match self {
            Self::Window(window) => window.visit(visitor),
            Self::Rate(rate) => {
                visitor.compare(&rate.is_some());
                rate.iter_mut().for_each(|rate| rate.visit(visitor));
            }
        }
    }
}

/// A window of packets that changes by marks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Window {
    packets: f64,
    most: f64,
    /// Average share of packets that are marked.
    share: f64,
    /// Acknowledgements since the last change, and those of marked packets.
    returned: u32,
    marked: u32,
}

impl Window {
    /// Weight of the last window in the average share.
    const GAIN: f64 = 1.0 / 16.0;

    /// Makes a window of so many packets, which is also its largest.
    fn new(packets: u32) -> Self {
        let packets = packets.into();
        Self { packets, most: packets, share: 1.0, returned: 0, marked: 0 }
    }

    /// Takes in an acknowledgement; returns the number of packets that may be on their way.
    fn acknowledge(&mut self, is_marked: bool) -> u32 {
        let Self { packets, most, share, returned, marked } = self;
        *returned += 1;
        *marked += u32::from(is_marked);
        if f64::from(*returned) >= *packets {
            *share += Self::GAIN * (f64::from(*marked) / f64::from(*returned) - *share);
            let next = if *marked > 0 { *packets * (1.0 - *share / 2.0) } else { *packets + 1.0 };
            *packets = next.clamp(1.0, *most);
            (*returned, *marked) = (0, 0);
        }
        *packets as u32
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { packets, most, share, returned, marked } = self;
        [packets, most, share].into_iter().for_each(|part| visitor.plain(part));
        [returned, marked].into_iter().for_each(|part| visitor.plain(part));
    }
}

/// The reaction point of DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015), without hyper increase.
/// Rates are shares of that of the port. What timers do is done when the message next has to do with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Rate {
    current: f64,
    target: f64,
    /// Estimate of the congestion, `alpha`.
    estimate: f64,
    /// Instant of the last notification \[ps\].
    notified: u64,
    /// Instants from which on the timers of the estimate and of the rate run \[ps\].
    estimated: u64,
    raised: u64,
    /// Bytes sent since the byte counter was last full.
    bytes: u64,
    /// How often the timer of the rate and the byte counter have run out since the last notification.
    timer_steps: u32,
    byte_steps: u32,
    /// Instant from which on the next packet may leave \[ps\].
    next: u64,
}

impl Rate {
    /// Least time between two notifications, to which other marks add nothing \[ps\].
    const NOTIFICATION_INTERVAL: u64 = 50_000_000;
    /// Time after which the estimate decays, and the rate rises, without a notification \[ps\].
    const TIMER: u64 = 55_000_000;
    /// Bytes after which the rate rises.
    const BYTE_COUNTER: u64 = 10_000_000;
    /// Weight of a notification in the estimate.
    const GAIN: f64 = 1.0 / 256.0;
    /// Steps of fast recovery.
    const RECOVERY_STEPS: u32 = 5;
    /// Additive increase, and least rate: 40 Mb/s of 40 Gb/s.
    const INCREASE: f64 = 0.001;

    /// Makes the rate of a message that has left at that of its port, and is notified for the first time.
    fn notified(at: u64) -> Self {
        Self {
            current: 1.0,
            target: 1.0,
            estimate: 1.0,
            notified: 0,
            estimated: at,
            raised: at,
            bytes: 0,
            timer_steps: 0,
            byte_steps: 0,
            next: 0,
        }
        .cut(at)
    }

    /// Takes in that a packet was marked, of which the sender learns at an instant.
    fn notify(mut self, at: u64) -> Self {
        if at.saturating_sub(self.notified) < Self::NOTIFICATION_INTERVAL {
            return self;
        }
        self.run_timers(at);
        self.cut(at)
    }

    fn cut(self, at: u64) -> Self {
        let Self { current, estimate, next, .. } = self;
        Self {
            current: (current * (1.0 - estimate / 2.0)).max(Self::INCREASE),
            target: current,
            estimate: (1.0 - Self::GAIN) * estimate + Self::GAIN,
            notified: at,
            estimated: at,
            raised: at,
            bytes: 0,
            timer_steps: 0,
            byte_steps: 0,
            next,
        }
    }

    /// Does what timers do until an instant.
    fn run_timers(&mut self, at: u64) {
        while self.estimated + Self::TIMER <= at {
            self.estimated += Self::TIMER;
            self.estimate *= 1.0 - Self::GAIN;
        }
        while self.raised + Self::TIMER <= at {
            self.raised += Self::TIMER;
            self.timer_steps += 1;
            self.raise();
        }
    }

    /// Raises the rate halfway to its target, which rises, too, after fast recovery.
    fn raise(&mut self) {
        if self.timer_steps.max(self.byte_steps) > Self::RECOVERY_STEPS {
            self.target = (self.target + Self::INCREASE).min(1.0);
        }
        self.current = f64::midpoint(self.current, self.target);
    }

    fn count_sent(&mut self, at: u64, bytes: u32, time: u64) {
        self.run_timers(at);
        self.next = at.saturating_add(picos(time as f64 / self.current));
        self.bytes += u64::from(bytes);
        while self.bytes >= Self::BYTE_COUNTER {
            self.bytes -= Self::BYTE_COUNTER;
            self.byte_steps += 1;
            self.raise();
        }
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            current,
            target,
            estimate,
            notified,
            estimated,
            raised,
            bytes,
            timer_steps,
            byte_steps,
            next,
        } = self;
        [current, target, estimate].into_iter().for_each(|part| visitor.plain(part));
        [notified, estimated, raised, next].into_iter().for_each(|at| visit_picos(at, visitor));
        visitor.plain(bytes);
        [timer_steps, byte_steps].into_iter().for_each(|part| visitor.plain(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = Rate::TIMER;

    /// A first notification halves the rate; each step halves what is missing of the target, which rises from the sixth step on.
    #[test]
    fn rates_follow_the_published_rules() {
        let mut rate = Rate::notified(1000);
        assert_eq!((rate.current, rate.target, rate.estimate), (0.5, 1.0, 1.0));
        assert_eq!(rate.notify(1000 + Rate::NOTIFICATION_INTERVAL - 1).current, 0.5, "one in 50 us counts");
        rate.run_timers(1000 + 2 * STEP);
        assert_eq!((rate.current, rate.target), (0.875, 1.0));
        let weight = 1.0 - Rate::GAIN;
        assert_eq!(rate.estimate, weight * weight);
        let mut rate = rate.notify(1000 + 2 * STEP);
        assert_eq!(rate.current, 0.875 * (1.0 - weight * weight / 2.0));
        assert_eq!(rate.target, 0.875);
        let missing = 0.875 - rate.current;
        rate.run_timers(1000 + 7 * STEP);
        assert!((rate.current - (0.875 - missing / 32.0)).abs() < 1e-15);
        rate.run_timers(1000 + 8 * STEP);
        assert_eq!(rate.target, 0.875 + Rate::INCREASE);
        rate.run_timers(1000 + 1000 * STEP);
        assert_eq!(rate.target, 1.0);
    }

    /// The byte counter raises the rate as the timer does, and the pause after a packet is that of the rate before.
    #[test]
    fn bytes_raise_rates_and_rates_set_pauses() {
        let mut rate = Rate::notified(0);
        rate.count_sent(100, 1000, 7);
        assert_eq!((rate.next, rate.current), (114, 0.5));
        rate.count_sent(200, Rate::BYTE_COUNTER as u32, 9);
        assert_eq!((rate.next, rate.current, rate.byte_steps), (218, 0.75, 1));
        assert_eq!(rate.bytes, 1000);
        assert_eq!(Control::Rate(Some(rate)).pause(217), Some(218));
        assert_eq!(Control::Rate(Some(rate)).pause(218), None);
    }
}
