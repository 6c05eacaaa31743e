//! Messages and computations over time, against times derived by hand.

use netmodel::{FlowNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset};
use pdes_core::{Bytes, SimTime};
use proptest::prelude::*;

/// Eight hosts of two cores of 1 Gflop/s, on links of 1 MB/s (a byte per microsecond) and 10 us.
fn platform() -> Platform {
    let text = "[topology]\nkind = \"cluster\"\nhosts = 8\nspeed = \"1Gf\"\ncores = 2\nbandwidth = \"1MBps\"\nlatency = \"10us\"\n";
    Platform::from_toml(text, "test.toml").unwrap()
}

fn raw() -> NetworkParameters {
    NetworkParameters::preset(Preset::Raw)
}

fn host(number: u32) -> HostId {
    HostId::new(number)
}

fn micros(count: u64) -> SimTime {
    SimTime::from_picos(count * 1_000_000)
}

/// Runs to the end and returns when each tag is done, in microseconds.
fn finish(mut network: FlowNetwork<'_, usize>, tags: usize) -> Vec<f64> {
    let mut ends = vec![f64::NAN; tags];
    let mut done = Vec::new();
    while network.next_event().is_some() {
        network.advance(&mut done);
        done.drain(..).for_each(|tag| ends[tag] = network.now().as_picos() as f64 / 1e6);
    }
    ends
}

#[test]
fn an_incast_of_n_takes_n_times_as_long() {
    let platform = platform();
    for senders in 1..=7 {
        let mut network = FlowNetwork::new(&platform, &raw());
        for sender in 0..senders {
            network
                .send(Message::new(
                    SimTime::ZERO,
                    host(sender + 1),
                    host(0),
                    Bytes::new(1000),
                    sender as usize,
                ))
                .unwrap();
        }
        // Two links of 10 us, then 1000 bytes at 1 / n bytes per microsecond.
        let expected = vec![20.0 + 1000.0 * f64::from(senders); senders as usize];
        assert_eq!(finish(network, senders as usize), expected);
    }
}

/// The second message begins when the first has sent 480 of its 1000 bytes: both go on at half the speed, until the
/// first has sent its other 520 after 1040 us.
#[test]
fn a_message_slows_down_while_another_is_there() {
    let platform = platform();
    let mut network = FlowNetwork::new(&platform, &raw());
    network.send(Message::new(SimTime::ZERO, host(0), host(1), Bytes::new(1000), 0)).unwrap();
    network.send(Message::new(micros(480), host(0), host(2), Bytes::new(1000), 1)).unwrap();
    assert_eq!(finish(network, 2), [20.0 + 480.0 + 1040.0, 20.0 + 480.0 + 1040.0 + 480.0]);
}

/// Three computations of 1 Mflop on two cores: two thirds of a core each for 1500 us.
#[test]
fn computations_share_the_cores_of_a_host() {
    let platform = platform();
    let mut network = FlowNetwork::new(&platform, &raw());
    (0..3).for_each(|tag| network.compute(SimTime::ZERO, host(0), 1e6, tag));
    network.compute(SimTime::ZERO, host(1), 1e6, 3);
    assert_eq!(finish(network, 4), [1500.0, 1500.0, 1500.0, 1000.0]);
}

/// Two computations end 0.4 ns apart. With a precision of 1 ns the later one ends with the earlier one.
#[test]
fn events_within_the_precision_happen_together() {
    let platform = platform();
    for (precision_s, expected) in [(0.0, [1.0, 1.0004]), (1e-9, [1.0, 1.0])] {
        let mut network = FlowNetwork::new(&platform, &NetworkParameters { precision_s, ..raw() });
        network.compute(SimTime::ZERO, host(0), 1000.0, 0);
        network.compute(SimTime::ZERO, host(1), 1000.4, 1);
        assert_eq!(finish(network, 2), expected);
    }
}

/// Groups advance whenever a flow joins or leaves, which may round the next arrival up by a picosecond: in these
/// cases it was then after the instant at which it was expected, and was never searched again.
#[test]
fn arrivals_that_rounding_moves_are_not_lost() {
    let text = "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n";
    let platform = Platform::from_toml(text, "test.toml").unwrap();
    // Hosts, bytes, and when they are sent [ns].
    let cases: [&[(u32, u32, u64, u64)]; 2] = [
        &[
            (3, 0, 20_287, 190_300),
            (1, 0, 1, 248_244),
            (1, 0, 184_544, 24_392),
            (3, 0, 7_096, 219_861),
            (2, 0, 1, 222_734),
            (3, 2, 97_447, 210_326),
            (3, 2, 170_027, 126_260),
            (1, 2, 120_126, 179_159),
        ],
        &[
            (2, 0, 10_763, 320_045),
            (0, 3, 75_255, 281_242),
            (2, 3, 229_444, 31_928),
            (0, 3, 13_792, 320_518),
            (2, 0, 58_678, 194_301),
            (2, 3, 190_517, 131_330),
            (1, 3, 85_052, 99_125),
            (2, 0, 130_948, 158_329),
            (2, 3, 297_124, 24_652),
            (2, 0, 297_567, 74_711),
            (0, 3, 266_661, 115_341),
            (1, 3, 209_766, 159_978),
            (1, 3, 159_028, 320_045),
            (2, 0, 288_609, 293_927),
        ],
    ];
    for messages in cases {
        let mut network = FlowNetwork::new(&platform, &raw());
        for (tag, &(src, dst, bytes, nanos)) in messages.iter().enumerate() {
            let at = SimTime::from_picos(nanos * 1000);
            network.send(Message::new(at, host(src), host(dst), Bytes::new(bytes), tag)).unwrap();
        }
        let ends = finish(network, messages.len());
        assert!(ends.iter().all(|end| end.is_finite()), "{ends:?}");
    }
}

#[test]
fn endless_flows_end_at_the_end_of_time() {
    let platform = platform();
    let mut network = FlowNetwork::new(&platform, &raw());
    network.compute(SimTime::ZERO, host(0), 1e300, ());
    assert_eq!(network.next_event(), Some(SimTime::MAX));
}

proptest! {
    /// A link is never faster than its capacity, and never idle while a message waits for it: of messages that all
    /// begin at once and end at one host, the last arrives when the link has carried all bytes.
    #[test]
    fn bytes_are_conserved(sizes in prop::collection::vec(1_u64..100_000, 1..30)) {
        let platform = platform();
        let mut network = FlowNetwork::new(&platform, &raw());
        for (tag, &size) in sizes.iter().enumerate() {
            network.send(Message::new(SimTime::ZERO, host(1 + tag as u32 % 7), host(0), Bytes::new(size), tag)).unwrap();
        }
        let ends = finish(network, sizes.len());
        let last = ends.iter().copied().fold(0.0, f64::max);
        let expected = 20.0 + sizes.iter().sum::<u64>() as f64;
        prop_assert!((last - expected).abs() <= 1e-6 * sizes.len() as f64, "{} instead of {}", last, expected);
        // Smaller ones first: all get the same.
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by(|&one, &other| ends[one].total_cmp(&ends[other]));
        prop_assert!(order.is_sorted_by_key(|&tag| sizes[tag]));
    }
}
