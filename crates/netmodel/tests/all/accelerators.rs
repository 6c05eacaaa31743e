//! Accelerators of the hosts of clusters: hosts of their own, on cables to their hosts.

use netmodel::measures::Measures;
use netmodel::{
    FlowNetwork, HostId, Layout, LinkId, Message, MessageRouting, NetworkLevel, NetworkModel,
    NetworkParameters, Platform, Preset, Regions,
};
use pdes_core::{Bytes, SimTime};

const TREE: &str =
    "kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 1 }]";
const OWN: &str =
    "accelerators = { count = 2, speed = '9Tf', cores = 8, bandwidth = '4GBps', latency = '3us' }";

fn read(fields: &str) -> Result<Platform, String> {
    let rates = "speed = '1Gf', bandwidth = '1GBps', latency = '1us'";
    Platform::from_toml(&format!("topology = {{ {fields}, {rates} }}"), "test")
        .map_err(|error| error.to_string())
}

#[test]
fn messages_of_accelerators_cross_their_hosts() {
    let loopback = "loopback = { bandwidth = '7GBps' }";
    let platform = read(&format!("{TREE}, {OWN}, {loopback}")).unwrap();
    let host = |name: &str| platform.host_by_name(name).unwrap();
    let names: Vec<&str> = platform.hosts().iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names[3..6], ["node-3", "node-0-gpu-0", "node-0-gpu-1"]);
    assert_eq!(platform.accelerators().collect::<Vec<_>>(), (4..12).map(HostId::new).collect::<Vec<_>>());
    let gpu = platform.host(host("node-2-gpu-1"));
    assert_eq!((gpu.speed, gpu.cores), (9e12, 8));
    let route = |src: &str, dst: &str| {
        let mut links = Vec::new();
        platform.route(host(src), host(dst), &mut links).unwrap();
        links
    };
    let rates = |links: &[LinkId]| -> Vec<f64> {
        links.iter().map(|&link| platform.link(link).bandwidth / 1e9).collect()
    };
    assert_eq!(rates(&route("node-0", "node-0-gpu-1")), [4.0]);
    assert_eq!(rates(&route("node-0-gpu-0", "node-0-gpu-1")), [4.0, 4.0]);
    assert_eq!(rates(&route("node-1-gpu-0", "node-1-gpu-0")), [7.0]);
    let across = route("node-0-gpu-0", "node-3-gpu-1");
    assert_eq!(across[1..5], route("node-0", "node-3"));
    assert_eq!(rates(&across), [4.0, 1.0, 1.0, 1.0, 1.0, 4.0]);
    assert_eq!(platform.link(across[0]).name, "cluster_accelerator_link_0_0_UP");
    assert_eq!(platform.link(across[5]).name, "cluster_accelerator_link_3_1_DOWN");
    assert!(
        platform.topology().ends_with("each host with 2 accelerators, 4 hosts"),
        "{}",
        platform.topology()
    );
    // 4 links of 1 us and two of 3 us.
    let longest = Measures::of(&platform).diameter;
    assert_eq!((longest.links, longest.missing), (6, 0));
    assert!((longest.latency - 10e-6).abs() < 1e-18, "{longest:?}");
}

#[test]
fn accelerators_are_where_their_hosts_are() {
    let platform = read(&format!("{TREE}, {OWN}")).unwrap();
    let of = [0, 1, 2, 3, 0, 0, 1, 1, 2, 2, 3, 3];
    let leaves: Vec<u32> = of.iter().map(|host| host / 2).collect();
    assert_eq!(platform.parts(NetworkLevel::Leaf), leaves);
    let regions = Regions::with_count(&platform, 2);
    let region = |host: u32| regions.of_host(HostId::new(host));
    assert!((0..).zip(of).all(|(host, of)| region(host) == region(of)), "{regions:?}");
    // Between regions messages cross at least the four links of two hosts.
    let lookahead = regions.lookahead(&platform, &NetworkParameters::preset(Preset::Raw)).unwrap();
    assert_eq!(lookahead.as_picos(), 4_000_000);
    let layout = Layout::of(&platform).unwrap();
    assert_eq!((layout.hosts(), layout.accelerators, layout.cables().unwrap().len()), (4, 2, 6));
    assert_eq!(Layout::of_bare(&platform), None);
}

#[test]
fn impossible_accelerators_are_refused() {
    for (fields, expected) in [
        (format!("{TREE}, accelerators = {{ count = 0, speed = '1Gf', bandwidth = '1Bps' }}"), "count"),
        (format!("{TREE}, accelerators = {{ count = 1, speed = '1Gf', bandwidth = '0Bps' }}"), "bandwidth"),
        (
            format!(
                "{TREE}, accelerators = {{ count = 1, speed = '1Gf', bandwidth = '1Bps', latency = '-1s' }}"
            ),
            "latency",
        ),
        (format!("{TREE}, accelerators = {{ count = 1, bandwidth = '1Bps' }}"), "speed"),
        (
            format!("{TREE}, accelerators = {{ count = 20000000, speed = '1Gf', bandwidth = '1Bps' }}"),
            "hosts",
        ),
        (format!("{TREE}, {OWN}, limiter = '1Bps'"), "limiter"),
    ] {
        let error = read(&fields).unwrap_err();
        assert!(error.contains(expected), "{fields}: {error}");
    }
    let error = Platform::from_toml(&format!("topology = {{ kind = 'graph', {OWN} }}"), "test").unwrap_err();
    assert!(error.to_string().contains("has no field \"accelerators\""), "{error}");
}

#[test]
fn messages_of_accelerators_choose_the_routes_of_their_hosts() {
    let dragonfly = "kind = 'dragonfly', groups = 4, chassis = 1, blades = 4, nodes = 1";
    let platform = read(&format!("{dragonfly}, {OWN}")).unwrap();
    assert!(platform.has_indirect_routes());
    let parameters =
        NetworkParameters { routing: MessageRouting::Valiant, ..NetworkParameters::preset(Preset::Raw) };
    let end = |src: &str, dst: &str| {
        let [src, dst] = [src, dst].map(|name| platform.host_by_name(name).unwrap());
        let mut network = FlowNetwork::new(&platform, &parameters);
        network.send(Message::new(SimTime::ZERO, src, dst, Bytes::new(1_000_000), 0)).unwrap();
        let mut done: Vec<u32> = Vec::new();
        while network.next_event().is_some() {
            network.advance(&mut done);
        }
        network.now().as_picos()
    };
    // Over a third group a message crosses four cables or more between the switches of two groups, and those of its accelerators.
    let picos = end("node-0-gpu-0", "node-5-gpu-1");
    let links = (picos - 1_000_000_000 - 6_000_000) / 1_000_000;
    assert!((4..=8).contains(&links) && picos % 1_000_000 == 0, "{picos} ps");
    // Within a node there is one route.
    assert_eq!(end("node-0-gpu-0", "node-0-gpu-1"), 250_000_000 + 6_000_000);
}
