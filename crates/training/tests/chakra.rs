//! Chakra execution traces, against the answers of `../shared/samples/chakra`.

use std::path::{Path, PathBuf};

use training::astra::{AstraError, Network, System, simulate};
use training::collective::Algorithm;
use training::{CHAKRA_LINTS, ChakraError, CollectiveKind, ExecutionTrace, NodeKind, ScheduleOptions};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/chakra/data")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(samples().join(path)).unwrap()
}

fn microbenchmark(operation: &str, npus: u32) -> ExecutionTrace {
    let path = format!("microbenchmarks/{operation}/{npus}npus_1MB/{operation}.0.et");
    ExecutionTrace::read(&samples().join(path)).unwrap()
}

#[test_with::shared]
fn microbenchmarks_have_one_operation() {
    let expected = [
        ("all_gather", CollectiveKind::AllGather),
        ("all_reduce", CollectiveKind::AllReduce),
        ("all_to_all", CollectiveKind::AllToAll),
        ("reduce_scatter", CollectiveKind::ReduceScatter),
    ];
    for (operation, kind) in expected {
        for npus in [4, 8] {
            let trace = microbenchmark(operation, npus);
            assert_eq!(trace.ranks.len(), npus as usize);
            for nodes in &trace.ranks {
                let [node] = &nodes[..] else { panic!("{} nodes", nodes.len()) };
                assert_eq!((node.kind, node.collective), (NodeKind::Collective, Some(kind)));
                assert_eq!((node.bytes, node.is_cpu), (1 << 20, false));
            }
            let schedule = trace.schedule(&ScheduleOptions::default()).unwrap();
            assert_eq!(schedule.schedule.extent().ranks, npus);
        }
    }
}

#[test_with::shared]
fn analytical_networks_end_when_astra_sim_ends() {
    let cases = [
        ("all_reduce", 8, "regression-system.json", "regression-network.yml", 117_780),
        ("all_reduce", 4, "Ring_4chunks.json", "Ring_4npus.yml", 43_000),
        ("all_reduce", 8, "Ring_4chunks.json", "Ring_8npus.yml", 64_440),
        ("all_gather", 4, "Ring_4chunks.json", "Ring_4npus.yml", 64_744),
        ("all_gather", 8, "Ring_4chunks.json", "Ring_8npus.yml", 151_016),
    ];
    for (operation, npus, system, network, expected) in cases {
        let system = System::from_json(&read(&format!("config/{system}"))).unwrap();
        let network = Network::from_yaml(&read(&format!("config/{network}"))).unwrap();
        let ends = simulate(&microbenchmark(operation, npus), &system, &network).unwrap();
        assert_eq!(ends, vec![expected; npus as usize], "{operation} {npus}");
    }
    // The quick example of ASTRA-sim's documentation, Ring_allgather_16npus.sh: each NPU has the node of those of 8 NPUs.
    let mut trace = microbenchmark("all_gather", 8);
    trace.ranks.extend(trace.ranks.clone());
    let system = System::from_json(&read("config/Ring_4chunks.json")).unwrap();
    let network = read("config/Ring_8npus.yml").replace("[ 8 ]", "[ 16 ]");
    let network = Network::from_yaml(&network).unwrap();
    assert_eq!(simulate(&trace, &system, &network).unwrap(), [323_560; 16]);
    let system = System::from_json(&read("config/HGX-H100-validated.json"));
    assert!(
        matches!(system, Err(AstraError::Value { key: "active-chunks-per-dimension", .. })),
        "{system:?}"
    );
    let system = System::from_json(&read("config/regression-system.json")).unwrap();
    let network = Network::from_yaml(&read("config/regression-network.yml")).unwrap();
    let error = simulate(&microbenchmark("all_to_all", 8), &system, &network).unwrap_err();
    assert!(matches!(error, AstraError::Kind { found: Some(CollectiveKind::AllToAll) }), "{error}");
}

/// A ring of chunks on the network that shares links is the closed form without memory and endpoints.
#[test_with::shared]
fn chunks_take_what_the_unit_tests_of_the_network_say() {
    let network = |name: &str| Network::from_yaml(&read(&format!("network-unit/{name}.yml"))).unwrap();
    let (size, from, to) = (1 << 20, 1, 4);
    for (name, aware) in [("Ring", 60_093), ("FullyConnected", 20_031), ("Switch", 40_062)] {
        assert_eq!(network(name).aware(&[(from, to, size, 0)]), [aware], "{name}");
    }
    for (name, unaware) in [("Ring", 21_031), ("FullyConnected", 20_031)] {
        assert_eq!(network(name).unaware(from, to, size), unaware, "{name}");
    }
    // Two chunks share the first link, one after the other; the way back is free.
    let ring = network("Ring");
    let occupied = (f64::from(1 << 20) / (50.0 * f64::from(1 << 30) / 1e9)) as u64;
    let arrivals = ring.aware(&[(0, 1, size, 0), (0, 1, size, 0), (1, 0, size, 0)]);
    assert_eq!(arrivals, [20_031, 20_031 + occupied, 20_031]);
}

#[test_with::shared]
fn the_trace_of_a_real_program_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let archive = std::fs::File::open(samples().join("feeder_tests_trace.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(folder.path()).unwrap();
    let trace = ExecutionTrace::read(&folder.path().join("tests/data/chakra.0.et")).unwrap();
    let [nodes] = &trace.ranks[..] else { panic!("{} ranks", trace.ranks.len()) };
    let count = |kind| nodes.iter().filter(|node| node.kind == kind).count();
    assert_eq!((nodes.len(), count(NodeKind::Compute), count(NodeKind::Collective)), (3664, 3643, 21));
    assert_eq!(nodes.iter().map(|node| u64::from(node.control)).sum::<u64>(), 3664);
    assert_eq!(nodes.iter().map(|node| node.after.len()).sum::<usize>(), 181_878);
    assert_eq!(nodes.iter().map(|node| node.micros).sum::<u64>(), 381_795);
    assert_eq!((nodes[0].id, nodes[nodes.len() - 1].id), (216, 7022));
    let free: Vec<u64> = nodes.iter().filter(|node| node.after.is_empty()).map(|node| node.id).collect();
    assert_eq!(free, [216, 432, 541, 619, 1634]);
    let kinds = |kind| nodes.iter().filter(|node| node.collective == Some(kind)).count();
    assert_eq!((kinds(CollectiveKind::AllReduce), kinds(CollectiveKind::Broadcast)), (5, 2));
    assert_eq!(nodes.iter().map(|node| node.bytes).sum::<u64>(), 102_441_032);
    let children = nodes.iter().filter(|node| node.after.first() == Some(&0)).map(|node| node.id);
    assert_eq!(children.take(3).collect::<Vec<_>>(), [217, 430, 435]);
    let mut chains = vec![0; nodes.len()];
    let mut longest = |index: usize| {
        fn chain(index: usize, nodes: &[training::Node], chains: &mut [u64]) -> u64 {
            if chains[index] == 0 {
                let before =
                    nodes[index].after.iter().map(|earlier| chain(*earlier as usize, nodes, chains)).max();
                // One more tells chains that are known.
                chains[index] = 1 + before.map_or(0, |before| before - 1) + nodes[index].micros;
            }
            chains[index]
        }
        chain(index, nodes, &mut chains) - 1
    };
    assert_eq!((0..nodes.len()).map(&mut longest).max(), Some(46_140));
    let schedule = trace.schedule(&ScheduleOptions::default()).unwrap();
    assert_eq!(schedule.left_out["control dependencies"], 3664);
    assert_eq!(schedule.left_out["collective operations of unknown kind"], 14);
}

/// Two ranks in JSON: a computation, a message, an allreduce.
fn json(folder: &Path, change: &dyn Fn(u32, String) -> String) -> PathBuf {
    for rank in 0..2 {
        let message = match rank {
            0 => r#""NodeType": 5, "comm_src": 0, "comm_dst": 1"#,
            _ => r#""NodeType": 6, "comm_src": 0, "comm_dst": 1"#,
        };
        let text = format!(
            r#"{{"workload_graph": [
                {{"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 7, "data_deps": []}},
                {{"Id": 2, "Name": "b", {message}, "is_cpu_op": false, "comm_size": 64, "comm_tag": 5, "data_deps": [1]}},
                {{"Id": 3, "Name": "c", "NodeType": 7, "is_cpu_op": false, "comm_type": 0, "comm_size": 1000, "data_deps": [2]}}
            ]}}"#
        );
        std::fs::write(folder.join(format!("app.{rank}.json")), change(rank, text)).unwrap();
    }
    folder.join("app.0.json")
}

#[test]
fn json_becomes_a_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let path = json(folder.path(), &|_, text| text);
    assert!(ExecutionTrace::knows(&path));
    let trace = ExecutionTrace::read(&path).unwrap();
    for (algorithm, messages) in
        [(Algorithm::Ring, 2), (Algorithm::Halving, 2), (Algorithm::DoubleTree { chunks: 3 }, 6)]
    {
        let options = ScheduleOptions { algorithm, ..ScheduleOptions::default() };
        let schedule = trace.schedule(&options).unwrap().schedule;
        let mut text = Vec::new();
        goal::write_text(&schedule, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("calc 7000") && text.contains("send 64b to 1 tag 5"), "{text}");
        let sends = text.matches("send ").count();
        assert_eq!(sends, 1 + 2 * messages, "{algorithm} {text}");
    }
}

#[test]
fn damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |from: &'static str, to: &'static str| {
        let path = json(folder.path(), &|_, text| text.replace(from, to));
        ExecutionTrace::read(&path).unwrap_err().to_string()
    };
    assert!(
        error("\"data_deps\": [1]", "\"data_deps\": [9]")
            .contains("node 2 depends on node 9, which is not in the file")
    );
    assert!(error("\"Id\": 2", "\"Id\": 1").contains("node 1 is there twice"));
    assert!(error("\"data_deps\": []", "\"data_deps\": [3]").contains("depends on itself"));
    assert!(error("\"NodeType\": 4", "\"NodeType\": 8").contains("has the type 8"));
    assert!(error("\"comm_type\": 0", "\"comm_type\": 12").contains("comm_type = 12"));
    assert!(error("\"comm_size\": 64", "\"comm_size\": -1").contains("comm_size = -1"));
    assert!(error("]}", "").contains("app.0.json"));
    let other = json(folder.path(), &|rank, text| if rank == 1 { text.replace("1000", "999") } else { text });
    let error = ExecutionTrace::read(&other).unwrap().schedule(&ScheduleOptions::default()).unwrap_err();
    assert!(matches!(error, ChakraError::Collective { number: 0, rank: 1, .. }), "{error}");
    std::fs::remove_file(folder.path().join("app.0.json")).unwrap();
    let missing = ExecutionTrace::read(&folder.path().join("app.1.json")).unwrap_err();
    assert!(matches!(missing, ChakraError::Missing { rank: 0, .. }), "{missing}");
    for bytes in [&[0x80][..], &[5, 1], &[0, 3, 0x08, 0x80], &[0xff; 64]] {
        let path = folder.path().join("x.0.et");
        std::fs::write(&path, bytes).unwrap();
        let error = ExecutionTrace::read(&path).unwrap_err();
        assert!(matches!(error, ChakraError::Protobuf { .. }), "{error}");
    }
}

/// Lints of the trace of one rank with these nodes.
fn lints(nodes: &str) -> Vec<(&'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.0.json");
    std::fs::write(&path, format!(r#"{{"workload_graph": [{nodes}]}}"#)).unwrap();
    let found = ExecutionTrace::read(&path).unwrap().lint();
    found.into_iter().map(|suspicion| (suspicion.lint, suspicion.text)).collect()
}

#[test]
fn each_lint_finds_its_own() {
    let node = |id: u32, start: u64, micros: u64, more: &str| {
        format!(
            r#"{{"Id": {id}, "NodeType": 4, "is_cpu_op": false, "start_time_micros": {start}, "runtime": {micros}{more}}}"#
        )
    };
    let after = |id: u32| format!(r#", "data_deps": [{id}]"#);
    let sound = [node(1, 100, 50, ""), node(2, 150, 50, &after(1)), node(3, 205, 50, &after(2))].join(",");
    assert_eq!(lints(&sound), []);
    let collective = |id: u32, more: &str| {
        format!(r#"{{"Id": {id}, "NodeType": 7, "is_cpu_op": false, "start_time_micros": 9{more}}}"#)
    };
    let cases = [
        (collective(1, ""), "left-out", "1 collective operations of unknown kind"),
        (node(1, 5, 0, ""), "instant", "1 computation(s) have neither"),
        (node(1, 0, 5, ""), "instant", "no operation has an instant"),
        (
            [node(1, 100, 50, ""), node(2, 130, 50, &after(1)), node(3, 140, 60, &after(2))].join(","),
            "early",
            "2 operation(s) begin before what they depend on has ended, most node 3 of rank 0 at 140 us, where node 2 ends at 180 us",
        ),
        // Of 200 us, node 2 waits for 21 us and node 3 for 19 us.
        (
            [node(1, 100, 50, ""), node(2, 171, 50, &after(1)), node(3, 240, 60, &after(1))].join(","),
            "late",
            "1 operation(s) begin more than a tenth of the recorded time after all was ready, most node 2 of rank 0, ready at 150 us, at 171 us",
        ),
        (
            [node(1, 100, 50, ""), node(2, 130, 50, "")].join(","),
            "overlap",
            "1 operation(s) begin while another one of the same kind goes on, most node 2 of rank 0 at 130 us",
        ),
    ];
    for (nodes, lint, expected) in cases {
        let found = lints(&nodes);
        assert!(
            found.iter().any(|(name, text)| *name == lint && text.contains(expected)),
            "{lint}: {found:?}"
        );
    }
    assert_eq!(CHAKRA_LINTS.len(), 6);
}

#[test]
fn operations_that_a_rank_never_reaches_are_violations() {
    let folder = tempfile::tempdir().unwrap();
    let lost = |rank, text: String| {
        if rank == 1 { text.replace(r#""NodeType": 7"#, r#""NodeType": 1"#) } else { text }
    };
    let found = ExecutionTrace::read(&json(folder.path(), &lost)).unwrap().lint();
    assert_eq!(found[0].lint, "violation");
    assert!(found[0].text.contains("rank 1"), "{found:?}");
}

/// The recording of the sample kept no instants; 14 of its collective operations do not say which they are.
#[test_with::shared]
fn the_trace_of_a_real_program_is_suspicious_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let archive = std::fs::File::open(samples().join("feeder_tests_trace.tar.gz")).unwrap();
    tar::Archive::new(flate2::read::GzDecoder::new(archive)).unpack(folder.path()).unwrap();
    let found = ExecutionTrace::read(&folder.path().join("tests/data/chakra.0.et")).unwrap().lint();
    let text: String =
        found.iter().map(|suspicion| format!("{}: {}\n", suspicion.lint, suspicion.text)).collect();
    assert!(
        text.contains("left-out: not in the schedule: 14 collective operations of unknown kind"),
        "{text}"
    );
    assert!(text.contains("instant: no operation has an instant"), "{text}");
    assert!(found.iter().all(|suspicion| !["early", "late", "overlap"].contains(&suspicion.lint)), "{text}");
}
