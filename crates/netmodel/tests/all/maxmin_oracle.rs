//! Completion times of flows that begin one after the other, against those of independent solvers (`../shared/oracle/maxmin`). Flows have
//! no latency there, and so the preset `raw`: penalties are equal, and nothing but shares bounds a rate.

use netmodel::{FlowNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset};
use pdes_core::{Bytes, SimTime};

use crate::shared::shared;
use crate::support::xml;

/// A flow: begin \[ps\], source, destination, bytes.
type Flow = (u64, u32, u32, u64);

/// Runs flows, and returns when each one ends \[ps\].
fn ends(platform: &Platform, flows: &[Flow]) -> Vec<u64> {
    let mut network = FlowNetwork::new(platform, &NetworkParameters::preset(Preset::Raw));
    for (tag, &(at, src, dst, bytes)) in flows.iter().enumerate() {
        let [src, dst] = [src, dst].map(HostId::new);
        network.send(Message::new(SimTime::from_picos(at), src, dst, Bytes::new(bytes), tag)).unwrap();
    }
    let (mut ends, mut done) = (vec![u64::MAX; flows.len()], Vec::new());
    while network.next_event().is_some() {
        network.advance(&mut done);
        done.drain(..).for_each(|tag: usize| ends[tag] = network.now().as_picos());
    }
    ends
}

/// Makes a platform of hosts, links with their rates [Gbit/s], and one-way routes.
fn platform(hosts: u32, links: &[(&str, f64)], routes: &[(u32, u32, Vec<&str>)]) -> Platform {
    let mut elements: String =
        (0..hosts).map(|host| format!("<host id=\"{host}\" speed=\"1Gf\"/>")).collect();
    for (name, rate) in links {
        elements += &format!("<link id=\"{name}\" bandwidth=\"{rate}Gbps\" latency=\"0s\"/>");
    }
    for (src, dst, links) in routes {
        let links: String = links.iter().map(|name| format!("<link_ctn id=\"{name}\"/>")).collect();
        elements += &format!("<route src=\"{src}\" dst=\"{dst}\" symmetrical=\"NO\">{links}</route>");
    }
    Platform::from_xml(&xml(&elements), "test.xml").unwrap_or_else(|error| panic!("{error}"))
}

/// Reads the fields of the rows below a table's header.
fn rows(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(shared("oracle/maxmin").join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Reads a number.
fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

/// Each of the 2,900 flows of all shards, on a path of three hosts. The clock rounds ends to picoseconds, which moves flows that are still
/// there by as much: ends are within 3 ps. In time stretched a thousandfold they are those of the table to its last digit, 0.0001 ns.
#[test_with::shared]
fn every_flow_on_a_path_ends_when_progressive_filling_says() {
    let names = ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "12"];
    let shards = names.map(|shard| rows(&format!("shards/{shard}.csv")));
    assert_eq!(shards.iter().map(Vec::len).sum::<usize>(), 2900);
    let routes = [(0, 1, vec!["near"]), (1, 2, vec!["far"]), (0, 2, vec!["near", "far"])];
    for (stretch, tolerance) in [(1, 0.003), (1000, 0.000_051)] {
        let rate = 10.0 / stretch as f64;
        let platform = platform(3, &[("near", rate), ("far", rate)], &routes);
        for (shard, rows) in names.iter().zip(&shards) {
            // Begin [ns], bytes, source, destination, time [ns]. Each packet of 1000 B has 48 B of headers.
            let flow = |row: &Vec<String>| {
                let [begin, bytes, src, dst] = [0, 1, 2, 3].map(|place| number(&row[place]));
                let work = bytes + 48 * bytes.div_ceil(1000);
                (begin * 1000 * stretch, src as u32, dst as u32, work)
            };
            let flows: Vec<Flow> = rows.iter().map(flow).collect();
            for ((end, flow), row) in ends(&platform, &flows).into_iter().zip(&flows).zip(rows) {
                let nanos = (end - flow.0) as f64 / 1e3 / stretch as f64;
                let expected: f64 = row[4].parse().unwrap();
                assert!(
                    (nanos - expected).abs() <= tolerance,
                    "shard {shard}, {row:?}, time stretched {stretch} times: {nanos} ns"
                );
            }
        }
    }
}

/// Small cases whose ends are fractions of nanoseconds, of flows that share several links of several rates.
#[test_with::shared]
fn small_cases_end_at_their_fractions() {
    let (links, flows) = (rows("toy-links.csv"), rows("toy-flows.csv"));
    let mut cases: Vec<&str> = flows.iter().map(|row| row[0].as_str()).collect();
    cases.dedup();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let links = links.iter().filter(|row| row[0] == case);
        let links: Vec<(&str, f64)> = links.map(|row| (row[1].as_str(), row[2].parse().unwrap())).collect();
        let rows: Vec<&Vec<String>> = flows.iter().filter(|row| row[0] == case).collect();
        // Each flow has a host at each end to itself.
        let pairs = || (0..).step_by(2).map(|src| (src, src + 1)).zip(&rows);
        let routes: Vec<_> =
            pairs().map(|((src, dst), row)| (src, dst, row[4].split(' ').collect())).collect();
        let platform = platform(2 * rows.len() as u32, &links, &routes);
        let flows: Vec<Flow> =
            pairs().map(|((src, dst), row)| (number(&row[2]) * 1000, src, dst, number(&row[3]))).collect();
        for (end, row) in ends(&platform, &flows).into_iter().zip(rows) {
            let (above, below) = row[6].split_once('/').unwrap();
            let expected = number(above) as f64 * 1e3 / number(below) as f64;
            assert!((end as f64 - expected).abs() <= 3.0, "{row:?}: {end} ps");
        }
    }
}
