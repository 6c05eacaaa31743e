//! SimGrid's XML: accepted input, and input refused with its line.

use crate::support::{route, xml};
use netmodel::{
    HostId, LinkId, Location, MissingRoute, Platform, PlatformError, Resource, RouteError, Sharing, UnitError,
};
use pdes_core::SimTime;

/// Reads a platform whose elements begin on line 2.
fn read(elements: &str) -> Result<Platform, PlatformError> {
    Platform::from_xml(&xml(&format!("\n{elements}\n")), "p.xml")
}

fn refused(elements: &str) -> PlatformError {
    read(elements).err().unwrap_or_else(|| panic!("{elements} is accepted"))
}

fn line(number: u32) -> Location {
    Location { origin: "p.xml".into(), line: Some(number) }
}

const CLUSTER: &str = "id=\"c\" prefix=\"n\" suffix=\"\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\"";

#[test]
fn a_zone_holds_hosts_links_and_routes() {
    let platform = read(
        "<prop id=\"colour\" value=\"red\"/>
        <host id=\"a\" speed=\"1Gf, 2Gf\" pstate=\"1\" core=\"4\"><disk id=\"d\" read_bw=\"1\" write_bw=\"1\"/></host>
        <host id=\"b\" speed=\"3Mf\" coordinates=\"1 2 3\"/>
        <link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"FULLDUPLEX\"/>
        <link id=\"f\" bandwidth=\"8Gbps\" sharing_policy=\"FATPIPE\"/>
        <route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/><link_ctn id=\"f\"/></route>",
    )
    .unwrap();
    let hosts: Vec<(&str, f64, u32)> =
        platform.hosts().iter().map(|host| (host.name.as_str(), host.speed, host.cores)).collect();
    assert_eq!(hosts, [("a", 2e9, 4), ("b", 3e6, 1)]);
    assert_eq!(route(&platform, 0, 1), ["l_UP", "f"]);
    assert_eq!(route(&platform, 1, 0), ["f", "l_DOWN"]);
    assert_eq!(route(&platform, 0, 0), ["__loopback__"]);
    let loopback = platform.links().last().unwrap();
    assert_eq!((loopback.bandwidth, loopback.latency, loopback.sharing), (1e10, 0.0, Sharing::FatPipe));
    assert!(platform.warnings().is_empty());
}

#[test]
fn a_route_that_is_not_listed_is_missing() {
    let platform = read("<host id=\"a\" speed=\"1f\"/><host id=\"b\" speed=\"1f\"/>").unwrap();
    let [a, b] = ["a", "b"].map(|name| platform.host_by_name(name).unwrap());
    let at = Location { origin: "p.xml".into(), line: Some(1) };
    let expected = MissingRoute {
        src: "a".into(),
        dst: "b".into(),
        zone: "w".into(),
        zone_at: at,
        from: "a".into(),
        to: "b".into(),
    };
    assert_eq!(platform.route(a, b, &mut Vec::new()), Err(RouteError::Missing(Box::new(expected))));
}

#[test]
fn a_symmetrical_route_claims_both_directions() {
    let elements = |symmetrical| {
        format!(
            "<host id=\"a\" speed=\"1f\"/><host id=\"b\" speed=\"1f\"/><link id=\"l\" bandwidth=\"1Bps\"/>
            <route src=\"a\" dst=\"b\" symmetrical=\"{symmetrical}\"><link_ctn id=\"l\"/></route>
            <route src=\"b\" dst=\"a\" symmetrical=\"NO\"><link_ctn id=\"l\"/><link_ctn id=\"l\"/></route>"
        )
    };
    let platform = read(&elements("no")).unwrap();
    assert_eq!(route(&platform, 0, 1), ["l"]);
    assert_eq!(route(&platform, 1, 0), ["l", "l"]);
    let error = refused(&elements("YES"));
    assert!(matches!(error, PlatformError::DuplicateRoute { at, src, .. } if at == line(4) && src == "b"));
}

#[test]
fn quantities_without_unit_are_taken_with_a_warning() {
    let platform =
        read("<host id=\"a\" speed=\"5\"/>\n<link id=\"l\" bandwidth=\"7\" latency=\"0\"/>").unwrap();
    assert_eq!(platform.hosts()[0].speed, 5.0);
    let warnings = platform.warnings();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].starts_with("p.xml:2: speed=\"5\" of <host> has no unit"), "{}", warnings[0]);
    assert!(warnings[1].starts_with("p.xml:3: bandwidth=\"7\" of <link> has no unit"), "{}", warnings[1]);
}

#[test]
fn a_fat_pipe_cluster_is_shared_with_a_warning() {
    let platform = read(&format!("<cluster {CLUSTER} radical=\"0-1\" sharing_policy=\"FATPIPE\"/>")).unwrap();
    assert_eq!(platform.links()[0].sharing, Sharing::Shared);
    assert_eq!(platform.warnings().len(), 1);
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let cases = [
        ("<zone id=\"z\" routing=\"Wifi\"/>", "routing=\"Wifi\""),
        ("<AS id=\"z\" routing=\"vivaldi\"/>", "routing=\"vivaldi\""),
        ("<peer id=\"p\" speed=\"1f\" bw_in=\"1Bps\" bw_out=\"1Bps\"/>", "the element <peer>"),
        ("<trace id=\"t\" periodicity=\"1\">0 1\n1 0.5</trace>", "the element <trace>"),
        ("<trace_connect trace=\"t\" element=\"h\"/>", "the element <trace_connect>"),
        ("<include file=\"f\"/>", "the element <include>"),
        ("<storage id=\"s\" typeId=\"t\" attach=\"h\"/>", "the element <storage>"),
        ("<host id=\"a\" speed=\"1f\"><mount storageId=\"s\" name=\"n\"/></host>", "the element <mount>"),
        ("<host id=\"a\" speed=\"1f\" availability_file=\"s\"/>", "availability_file=\"s\" of <host>"),
        ("<link id=\"a\" bandwidth=\"1Bps\" sharing_policy=\"WIFI\"/>", "sharing_policy=\"WIFI\" of <link>"),
    ];
    for (elements, expected) in cases {
        match refused(elements) {
            PlatformError::NotSupported { at, feature } => {
                assert_eq!(feature, expected);
                assert_eq!(at, line(2));
            }
            other => panic!("{elements}: {other}"),
        }
    }
}

#[test]
fn profiles_are_read_beside_the_platform() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let platform = r#"<platform version="4.1"><zone id="w" routing="Full">
        <host id="a" speed="2f" core="1" speed_file="a.speed"/>
        <link id="l" bandwidth="1Bps" latency="1s" sharing_policy="SPLITDUPLEX" latency_file="l.latency" state_file="l.state"/>
        </zone></platform>"#;
    write("platform.xml", platform);
    write("a.speed", "1 0.5\n3 2\nLOOPAFTER 1\n");
    write("l.latency", "2 0.25\n");
    write("l.state", "4 0\n5 1\n");
    let read = || Platform::from_path(&folder.path().join("platform.xml"));
    let platform = read().unwrap();
    let value = |resource, seconds: u64| {
        platform.changes().value(resource, SimTime::from_picos(seconds * 1_000_000_000_000))
    };
    // A factor of the speed, from 1 s on, every 4 s.
    let speeds = [0, 1, 3, 5, 7].map(|seconds| value(Resource::Speed(HostId::new(0)), seconds));
    assert_eq!(speeds, [None, Some(1.0), Some(4.0), Some(1.0), Some(4.0)]);
    for link in [0, 1].map(LinkId::new) {
        assert_eq!(value(Resource::Latency(link), 2), Some(0.25));
        assert_eq!([3, 4, 5].map(|at| value(Resource::Bandwidth(link), at)), [None, Some(0.0), None]);
    }
    write("l.state", "4 0\n3 1\n");
    let error = read().unwrap_err().to_string();
    assert!(error.contains("platform.xml:3: state_file: ") && error.contains("l.state:2: "), "{error}");
}

#[test]
fn options_that_change_timing_are_refused() {
    let with_config = |option| {
        let text = format!(
            "<platform version=\"4.1\"><config id=\"General\">\n<prop id=\"{option}\" value=\"1\"/></config>
            <zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1f\"/></zone></platform>"
        );
        Platform::from_xml(&text, "p.xml")
    };
    assert!(with_config("tracing/filename").is_ok());
    for option in ["network/TCP-gamma", "smpi/os", "host/model", "surf/precision"] {
        let error = with_config(option).unwrap_err();
        assert!(
            matches!(error, PlatformError::Option { at, option: found } if at == line(2) && found == option)
        );
    }
    for (option, expected) in [
        ("network/TCP-gamma", "set network.tcp_gamma in the configuration"),
        ("smpi/reduce-scatter", "set mpi.reduce_scatter in the configuration"),
        ("host/model", "has no counterpart"),
    ] {
        let error = with_config(option).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for option in ["smpi/host-speed", "smpi/simulate-computation", "maxmin/precision", "cpu/optim"] {
        let platform = with_config(option).unwrap();
        let [warning] = platform.warnings() else { panic!("{:?}", platform.warnings()) };
        assert_eq!(
            *warning,
            format!("p.xml:2: the option {option:?} is ignored: it changes no replay of a trace")
        );
    }
    let error = refused("<host id=\"a\" speed=\"1f\"><prop id=\"smpi/or\" value=\"0:1:2\"/></host>");
    assert!(matches!(error, PlatformError::Option { option, .. } if option == "smpi/or"));
}

#[test]
fn names_are_declared_once() {
    let twice = |element: &str| match refused(&format!("{element}\n{element}")) {
        PlatformError::Duplicate { at, kind, name } => {
            assert_eq!(at, line(3));
            (kind, name)
        }
        other => panic!("{element}: {other}"),
    };
    assert_eq!(twice("<host id=\"a\" speed=\"1f\"/>"), ("host", "a".to_owned()));
    assert_eq!(twice("<link id=\"l\" bandwidth=\"1Bps\"/>"), ("link", "l".to_owned()));
    assert_eq!(twice(&format!("<cluster {CLUSTER} radical=\"0-1\"/>")), ("zone", "c".to_owned()));
}

#[test]
fn routes_name_what_is_declared() {
    let route = |route: &str| {
        refused(&format!(
            "<host id=\"a\" speed=\"1f\"/><host id=\"b\" speed=\"1f\"/><link id=\"l\" bandwidth=\"1Bps\"/>
            <link id=\"s\" bandwidth=\"1Bps\" sharing_policy=\"SPLITDUPLEX\"/>\n{route}"
        ))
    };
    let error = route("<route src=\"a\" dst=\"b\"><link_ctn id=\"x\"/></route>");
    assert!(
        matches!(error, PlatformError::UnknownInRoute { at, kind: "link", name, .. } if at == line(4) && name == "x")
    );
    let error = route("<route src=\"a\" dst=\"x\"><link_ctn id=\"l\"/></route>");
    assert!(
        matches!(error, PlatformError::UnknownInRoute { kind: "host or router of its zone", name, .. } if name == "x")
    );
    let error = route("<route src=\"a\" dst=\"b\"/>");
    assert!(matches!(error, PlatformError::EmptyRoute { at, .. } if at == line(4)));
    let error = route("<route src=\"a\" dst=\"b\"><link_ctn id=\"s\"/></route>");
    assert!(matches!(error, PlatformError::Direction { link, .. } if link == "s"));
    let error = route("<route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/></route>");
    assert!(matches!(error, PlatformError::Direction { link, .. } if link == "l"));
}

#[test]
fn topologies_need_as_many_hosts_as_places() {
    let cases = [("TORUS", "4,4", 16), ("FAT_TREE", "2;4,4;1,2;1,2", 16), ("DRAGONFLY", "3,4;3,2;4,1;1", 36)];
    for (topology, parameters, places) in cases {
        let error = refused(&format!(
            "<cluster {CLUSTER} radical=\"0-9\" topology=\"{topology}\" topo_parameters=\"{parameters}\"/>"
        ));
        assert!(
            matches!(error, PlatformError::HostCount { ref at, found: 10, expected, .. } if *at == line(2) && expected == places),
            "{error}"
        );
    }
}

#[test]
fn topology_parameters_are_checked() {
    let cases = [
        ("TORUS", "4,,4"),
        ("TORUS", ""),
        ("FAT_TREE", "2;4,4;1,2"),
        ("FAT_TREE", "3;4,4;1,2;1,2"),
        ("DRAGONFLY", "3,4;3;4,1;1"),
        ("DRAGONFLY", "3,4;3,2;4,1;1;1"),
    ];
    for (topology, parameters) in cases {
        let error = refused(&format!(
            "<cluster {CLUSTER} radical=\"0-9\" topology=\"{topology}\" topo_parameters=\"{parameters}\"/>"
        ));
        assert!(matches!(error, PlatformError::Value { field: "topo_parameters", .. }), "{error}");
    }
    for (topology, parameters) in [
        ("TORUS", "4,0"),
        ("FAT_TREE", "1;4;0;1"),
        ("DRAGONFLY", "4,1;1,1;3,1;1"),
        ("DRAGONFLY", "1,1;1,1;3,0;1"),
    ] {
        let error = refused(&format!(
            "<cluster {CLUSTER} radical=\"0-9\" topology=\"{topology}\" topo_parameters=\"{parameters}\"/>"
        ));
        assert!(matches!(error, PlatformError::Topology { .. }), "{error}");
    }
}

#[test]
fn values_are_checked() {
    let field = |elements: &str| match refused(elements) {
        PlatformError::Value { field, .. } => field,
        other => panic!("{elements}: {other}"),
    };
    assert_eq!(field("<host id=\"a\" speed=\"0f\"/>"), "speed");
    assert_eq!(field("<host id=\"a\" speed=\"1f\" core=\"0\"/>"), "core");
    assert_eq!(field("<host id=\"a\" speed=\"1f\" core=\"x\"/>"), "core");
    assert_eq!(field("<host id=\"a\" speed=\"1f\" pstate=\"1\"/>"), "pstate");
    assert_eq!(field("<link id=\"a\" bandwidth=\"0Bps\"/>"), "bandwidth");
    assert_eq!(field("<link id=\"a\" bandwidth=\"1Bps\" latency=\"-1s\"/>"), "latency");
    assert_eq!(field("<zone id=\"a\" routing=\"Cirrus\"/>"), "routing");
    assert_eq!(field(&format!("<cluster {CLUSTER} radical=\"4-1\"/>")), "radical");
    assert_eq!(field(&format!("<cluster {CLUSTER} radical=\"0-99999999\"/>")), "radical");
    assert_eq!(field(&format!("<cluster {CLUSTER} radical=\"0\" topology=\"HYPERCUBE\"/>")), "topology");
    assert_eq!(field(&format!("<cluster {CLUSTER} radical=\"0\" loopback_lat=\"1us\"/>")), "bandwidth");
    let error = refused("<link id=\"a\" bandwidth=\"1 parsec\"/>");
    assert!(
        matches!(error, PlatformError::Quantity { at, attribute: "bandwidth", reason: UnitError::Unit { .. }, .. } if at == line(2))
    );
}

#[test]
fn unknown_elements_and_attributes_are_refused() {
    let error = refused("\n<hosts/>");
    assert!(
        matches!(error, PlatformError::UnknownElement { at, element, .. } if at == line(3) && element == "hosts")
    );
    let error = refused("<host id=\"a\" speed=\"1f\"><prop id=\"x\" value=\"y\"/>\n<cpu/></host>");
    assert!(
        matches!(error, PlatformError::UnknownElement { at, parent, .. } if at == line(3) && parent == "host")
    );
    let error = refused("<host id=\"a\" speed=\"1f\" color=\"red\"/>");
    assert!(matches!(error, PlatformError::UnknownAttribute { attribute, .. } if attribute == "color"));
    let error = refused("<host id=\"a\"/>");
    assert!(matches!(error, PlatformError::MissingAttribute { attribute: "speed", .. }));
    let mixed = format!("<host id=\"a\" speed=\"1f\"/>\n<cluster {CLUSTER} radical=\"0\"/>");
    assert!(matches!(refused(&mixed), PlatformError::UnknownElement { at, .. } if at == line(3)));
}

#[test]
fn files_that_are_no_platform_are_refused() {
    let error =
        |text: &str| Platform::from_xml(text, "p.xml").err().unwrap_or_else(|| panic!("{text} is accepted"));
    assert!(
        matches!(error("<platform version=\"3\"/>"), PlatformError::Version { found, .. } if found == "3")
    );
    for (text, converts) in [
        ("<platform version=\"3\"/>", true),
        ("<platform_description version=\"1\"/>", true),
        ("<platform version=\"5\"/>", false),
    ] {
        let message = error(text).to_string();
        assert!(message.contains("expected 4, 4.0 or 4.1"), "{message}");
        assert_eq!(message.contains("simgrid_update_xml"), converts, "{message}");
    }
    let before = error("A page.\n<?xml version=\"1.0\"?><platform version=\"4.1\"/>").to_string();
    assert_eq!(
        before,
        "p.xml:1: not well-formed XML: text before the first element, expected <?xml or <platform"
    );
    assert!(matches!(error("<platform version=\"4.1\"/>"), PlatformError::NoHosts { .. }));
    assert!(matches!(error("<zone id=\"a\" routing=\"Full\"/>"), PlatformError::UnknownElement { .. }));
    for malformed in [
        "",
        "<platform version=\"4.1\">",
        "<platform version=\"4.1\"></zone>",
        "<platform version=\"4.1\" version=\"4.1\"/>",
        "<platform version=4.1/>",
        "<platform version=\"4.1\">text</platform>",
        "<platform version=\"4.1\"/><platform version=\"4.1\"/>",
        "</platform>",
        "<platform version=\"4.1\">\n<zone",
    ] {
        assert!(matches!(error(malformed), PlatformError::Xml { .. }), "{malformed}: {}", error(malformed));
    }
    let deep = "<a>".repeat(100_000);
    assert!(matches!(error(&deep), PlatformError::Xml { .. }));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[<>/=\"' a-z0-9\n!?&;-]{0,200}") {
        let _ = Platform::from_xml(&text, "p.xml");
        let _ = Platform::from_xml(&xml(&text), "p.xml");
    }
}
