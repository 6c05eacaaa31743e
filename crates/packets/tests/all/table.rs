//! Ways that the configuration gives.

use netmodel::{HostId, NetworkGraph, NodeId, Platform};
use packets::{
    DegradedLink, InFlight, PacketError, PacketMachine, PacketParameters, PacketRouting, Queues, TableEntry,
    TablePlace,
};

use crate::driver::{Sent, machine, run};
use crate::networks::{leaf_spine, network};

/// Two leaves of four hosts below two spines, with the names of the links from each leaf to each spine.
struct Tree {
    platform: Platform,
    up: [[String; 2]; 2],
    /// From each spine to each leaf.
    down: [[String; 2]; 2],
}

impl Tree {
    fn new() -> Self {
        let platform = network(&leaf_spine(2, 4, 2), 1.0, 100.0);
        let graph = NetworkGraph::of(&platform).unwrap();
        let leaf = |host: u32| graph.channel(graph.outputs(HostId::new(host).into())[0]).to;
        let leaves = [leaf(0), leaf(4)];
        let channels = |node: NodeId| graph.outputs(node).iter().map(|&channel| graph.channel(channel));
        let is_switch = |node: NodeId| node.index() >= graph.hosts() as usize;
        let mut spines: Vec<NodeId> = channels(leaves[0]).map(|channel| channel.to).collect();
        spines.retain(|&node| is_switch(node));
        let link = |from: NodeId, to: NodeId| {
            let link = channels(from).find(|channel| channel.to == to).unwrap().link;
            platform.link(link).name.clone()
        };
        let spines = [spines[0], spines[1]];
        let up = leaves.map(|leaf| spines.map(|spine| link(leaf, spine)));
        let down = spines.map(|spine| leaves.map(|leaf| link(spine, leaf)));
        Self { platform, up, down }
    }

    /// The ways to a host of the second leaf, with weights of the links from the first leaf.
    fn entries(&self, host: u32, weights: &[f64]) -> Vec<TableEntry> {
        let to = self.platform.host(HostId::new(host)).name.clone();
        let entry = |links: Vec<String>, weights: &[f64]| TableEntry {
            to: to.clone(),
            links,
            weights: weights.to_vec(),
        };
        let down = [self.down[0][1].clone(), self.down[1][1].clone()];
        vec![entry(self.up[0][..weights.len()].to_vec(), weights), entry(down[..weights.len()].to_vec(), &[])]
    }

    fn refusal(&self, table: Vec<TableEntry>, parameters: PacketParameters) -> PacketError {
        PacketMachine::new(&self.platform, &PacketParameters { table, ..parameters }, (&[0; 8], 1))
            .unwrap_err()
    }
}

fn parameters(routing: PacketRouting) -> PacketParameters {
    PacketParameters {
        packet_bytes: 1000,
        routing,
        in_flight: Some(InFlight::Unlimited),
        ..PacketParameters::default()
    }
}

/// Four hosts send 400 packets each over two links, in shares by weight: 3 to 1, the first one carries 1200 of 1600. Over one link, all.
#[test]
fn packets_take_the_ways_of_the_table_by_weight() {
    let tree = Tree::new();
    let messages: Vec<Sent> = (0..4).map(|host| (0, host, host + 4, 400_000)).collect();
    for (weights, packets) in [(&[3.0, 1.0][..], 1200.0), (&[1.0, 1.0], 800.0), (&[5.0], 1600.0)] {
        for queues in [Queues::Fifo, Queues::Credits] {
            let entries = (4..8).flat_map(|host| {
                // Each leaf is reached from its own hosts by cables that need no entry.
                let mut entries = tree.entries(host, weights);
                entries[0].weights = if weights.len() == 1 { Vec::new() } else { entries[0].weights.clone() };
                entries
            });
            let table: Vec<TableEntry> = entries.collect();
            let parameters = PacketParameters { table, queues, ..parameters(PacketRouting::Spray) };
            let done = run(&tree.platform, &parameters, &messages);
            let slots = done.last() as f64 / 1e6;
            // With credits packets wait behind others.
            let most = packets * if queues == Queues::Fifo { 1.06 } else { 1.2 };
            assert!((0.97 * packets..most).contains(&slots), "{weights:?} {queues:?}: {slots}");
            if queues == Queues::Credits {
                assert_eq!(machine(&tree.platform, &parameters).find_circular_wait().unwrap(), None);
            }
        }
    }
}

#[test]
fn wrong_tables_are_refused() {
    let tree = Tree::new();
    let spray = || parameters(PacketRouting::Spray);
    let (to, whole) = (tree.platform.host(HostId::new(4)).name.clone(), tree.entries(4, &[1.0, 1.0]));
    let unused = tree.refusal(whole.clone(), parameters(PacketRouting::Minimal));
    assert_eq!(unused, PacketError::UnusedTable { routing: "minimal".to_owned() });
    let mut unknown = whole.clone();
    unknown[1].links[0] = "no link".to_owned();
    let name = "no link".to_owned();
    assert_eq!(
        tree.refusal(unknown, spray()),
        PacketError::UnknownInTable { place: TablePlace::Entry(2), name }
    );
    let mut weights = whole.clone();
    weights[0].weights = vec![1.0];
    assert_eq!(
        tree.refusal(weights, spray()),
        PacketError::BadWeights { place: TablePlace::Entry(1), found: 1, links: 2 }
    );
    // The second spine has no link to the second leaf.
    let mut hole = whole.clone();
    hole[1].links.pop();
    let at = tree.up[0][1].clone();
    assert_eq!(tree.refusal(hole, spray()), PacketError::HoleInTable { to: to.clone(), at });
    // It sends packets back to the first leaf.
    let mut circle = whole.clone();
    circle[1].links[1] = tree.down[1][0].clone();
    let links = vec![tree.up[0][1].clone(), tree.down[1][0].clone()];
    assert_eq!(tree.refusal(circle, spray()), PacketError::LoopInTable { to, links });
    let link = tree.up[0][0].clone();
    let degraded = vec![DegradedLink { link: link.clone(), rate: 0.0 }];
    let failed = tree.refusal(whole, PacketParameters { degraded, ..spray() });
    assert_eq!(failed, PacketError::FailedInTable { place: TablePlace::Entry(1), link });
}

impl Tree {
    fn host(&self, number: u32) -> &str {
        &self.platform.host(HostId::new(number)).name
    }

    /// The lines of routes from each host of the first leaf to each of the second one, over a spine.
    fn routes(&self, spine: usize) -> String {
        let graph = NetworkGraph::of(&self.platform).unwrap();
        let cable = |channel: u32| self.platform.link(graph.channel(channel).link).name.clone();
        let route = |src: u32, dst: u32| {
            let [first, last] =
                [graph.outputs(HostId::new(src).into())[0], graph.inputs(HostId::new(dst).into())[0]]
                    .map(cable);
            let (up, down) = (&self.up[0][spine], &self.down[spine][1]);
            format!("{},{}, {first}, {up}, {down}, {last}\n", self.host(src), self.host(dst))
        };
        (0..4).flat_map(|src| (4..8).map(move |dst| route(src, dst))).collect()
    }

    fn refusal_of_file(&self, text: &str, parameters: PacketParameters) -> PacketError {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ways");
        std::fs::write(&file, text).unwrap();
        let parameters = match parameters.routing {
            PacketRouting::Minimal => PacketParameters { route_file: Some(file), ..parameters },
            _ => PacketParameters { table_file: Some(file), ..parameters },
        };
        PacketMachine::new(&self.platform, &parameters, (&[0; 8], 1)).unwrap_err()
    }
}

/// A file says the same as the table of the configuration, in words or commas.
#[test]
fn a_file_is_a_table() {
    let tree = Tree::new();
    let messages: Vec<Sent> = (0..4).map(|host| (0, host, host + 4, 100_000)).collect();
    let table: Vec<TableEntry> = (4..8).flat_map(|host| tree.entries(host, &[3.0, 1.0])).collect();
    let line = |entry: &TableEntry| {
        let weight =
            |place: usize| entry.weights.get(place).map_or(String::new(), |weight| format!(" {weight}"));
        (0..entry.links.len())
            .map(|place| format!("{} {}{} # and on\n", entry.to, entry.links[place], weight(place)))
            .collect::<String>()
    };
    let text: String = table.iter().map(line).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table");
    let configured = PacketParameters { table, ..parameters(PacketRouting::Spray) };
    let expected = run(&tree.platform, &configured, &messages);
    for text in [text.clone(), text.replace(' ', ",").replace(",#,and,on", "")] {
        std::fs::write(&file, format!("# host link weight\n\n{text}")).unwrap();
        let of_file =
            PacketParameters { table: Vec::new(), table_file: Some(file.clone()), ..configured.clone() };
        assert_eq!(run(&tree.platform, &of_file, &messages), expected);
    }
}

/// Messages of four hosts over one spine take four times as long as the link, and half of that over two.
#[test]
fn packets_take_the_routes_of_a_file() {
    let tree = Tree::new();
    let messages: Vec<Sent> = (0..4).map(|host| (0, host, host + 4, 400_000)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("routes.csv");
    let over = |spine: usize, dst: u32| {
        let routes = tree.routes(spine);
        routes
            .lines()
            .filter(|line| line.split(',').nth(1) == Some(tree.host(dst)))
            .map(str::to_owned)
            .collect()
    };
    let one: Vec<String> = (4..8).flat_map(|dst| -> Vec<String> { over(1, dst) }).collect();
    let both: Vec<String> = (4..8).flat_map(|dst| -> Vec<String> { over(dst as usize % 2, dst) }).collect();
    for (lines, packets) in [(one, 1600), (both, 800)] {
        std::fs::write(&file, lines.join("\n")).unwrap();
        for queues in [Queues::Fifo, Queues::Credits] {
            let routed = PacketParameters {
                route_file: Some(file.clone()),
                queues,
                ..parameters(PacketRouting::Minimal)
            };
            // The first packet, then one after the other, over four links.
            let expected = (packets + 3) * 1_000_000 + 4 * 100_000;
            assert_eq!(run(&tree.platform, &routed, &messages).last(), expected, "{queues:?}");
            assert_eq!(machine(&tree.platform, &routed).find_circular_wait().unwrap(), None);
        }
    }
}

#[test]
fn wrong_files_are_refused_with_their_line() {
    let tree = Tree::new();
    let routes = tree.routes(0);
    let (src, dst) = (tree.host(0).to_owned(), tree.host(4).to_owned());
    let refused = |text: &str, routing| {
        let error = tree.refusal_of_file(text, parameters(routing)).to_string();
        error[error.rfind("ways").expect("the file is named")..].to_owned()
    };
    let last = format!("{routes}{}", routes.lines().next().unwrap());
    let minimal = PacketRouting::Minimal;
    assert!(
        refused(&last, minimal).contains("line 17: a line before has a route"),
        "{}",
        refused(&last, minimal)
    );
    let error = refused(&format!("\n{src},{dst},no-link"), minimal);
    assert!(error.contains("line 2: ") && error.contains("no-link"), "{error}");
    let error = refused(&format!("{src},{dst},{}", tree.up[0][0]), minimal);
    assert!(error.contains("line 1: the link") && error.contains("does not begin"), "{error}");
    assert!(refused(&format!("{src},{dst}"), minimal).contains("no way from"));
    assert!(refused("alone", minimal).contains("line 1: found \"alone\", expected two hosts"));
    let spray = PacketRouting::Spray;
    for line in [dst.clone(), format!("{dst},{},much", tree.up[0][0]), format!("{dst},a,1,b")] {
        assert!(refused(&line, spray).contains("line 1: found"), "{line}");
    }
    let error = refused(&format!("{dst} {} -1", tree.up[0][0]), spray);
    assert!(error.contains("line 1: ") && error.contains("weights"), "{error}");
    let unused = PacketParameters { route_file: Some("x".into()), ..parameters(spray) };
    let error = PacketMachine::new(&tree.platform, &unused, (&[0; 8], 1)).unwrap_err();
    assert_eq!(error, PacketError::UnusedRoutes { routing: "spray".to_owned() });
    let absent = PacketParameters { table_file: Some("absent.csv".into()), ..parameters(spray) };
    let error = PacketMachine::new(&tree.platform, &absent, (&[0; 8], 1)).unwrap_err().to_string();
    assert!(error.contains("absent.csv"), "{error}");
}
