//! Errors in zones and their routes, refused by name and line.

use netmodel::{Location, Platform, PlatformError};

/// Reads a platform of one zone whose elements begin on line 2, and returns its error.
fn refused(routing: &str, elements: &str) -> PlatformError {
    let text = format!(
        "<platform version=\"4.1\"><zone id=\"w\" routing=\"{routing}\">\n{elements}</zone></platform>"
    );
    Platform::from_xml(&text, "p.xml").err().unwrap_or_else(|| panic!("{elements} is accepted"))
}

fn line(number: u32) -> Location {
    Location { origin: "p.xml".into(), line: Some(number) }
}

const HOSTS: &str = "<host id=\"a\" speed=\"1f\"/><host id=\"b\" speed=\"1f\"/><router id=\"r\"/>
    <link id=\"l\" bandwidth=\"1Bps\"/><link id=\"s\" bandwidth=\"1Bps\" sharing_policy=\"SPLITDUPLEX\"/>\n";

const ZONES: &str = "<zone id=\"A\" routing=\"Full\"><host id=\"a\" speed=\"1f\"/></zone>
    <cluster id=\"T\" prefix=\"t\" suffix=\"\" radical=\"0-3\" speed=\"1f\" bw=\"1Bps\" lat=\"0\" topology=\"TORUS\" topo_parameters=\"4\"/>
    <zone id=\"B\" routing=\"Full\"><zone id=\"B1\" routing=\"Full\"><host id=\"b\" speed=\"1f\"/></zone></zone>
    <link id=\"l\" bandwidth=\"1Bps\"/>\n";

#[test]
fn routings_that_do_not_exist_are_refused() {
    for routing in ["", "Cirrus", "Fulll"] {
        let error = refused(routing, HOSTS);
        assert!(matches!(error, PlatformError::Value { field: "routing", found, .. } if found == routing));
    }
}

#[test]
fn elements_stand_in_zones_whose_routing_uses_them() {
    let route = "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>";
    let cases = [
        ("None", route, "route"),
        ("Cluster", route, "route"),
        ("Full", "<host_link id=\"a\" up=\"l\" down=\"l\"/>", "host_link"),
        ("Floyd", "<backbone id=\"x\" bandwidth=\"1Bps\" latency=\"0\"/>", "backbone"),
        (
            "Dijkstra",
            "<cabinet id=\"c\" prefix=\"c\" suffix=\"\" radical=\"0-1\" speed=\"1f\" bw=\"1Bps\" lat=\"0\"/>",
            "cabinet",
        ),
    ];
    for (routing, elements, expected) in cases {
        match refused(routing, &format!("{HOSTS}{elements}")) {
            PlatformError::Routing { at, element, zone, routing: found, .. } => {
                assert_eq!((at, element, zone.as_str(), found), (line(4), expected, "w", routing));
            }
            other => panic!("{elements}: {other}"),
        }
    }
    for routing in ["Cluster", "None"] {
        let route =
            "<zoneRoute src=\"A\" dst=\"B\" gw_src=\"a\" gw_dst=\"b\"><link_ctn id=\"l\"/></zoneRoute>";
        let error = refused(routing, &format!("{ZONES}{route}"));
        assert!(matches!(error, PlatformError::Routing { element: "zoneRoute", .. }), "{error}");
    }
}

#[test]
fn routes_between_zones_name_zones_of_their_zone() {
    let unknown = |element: &str, src: &str, dst: &str| {
        let route = format!(
            "<{element} src=\"{src}\" dst=\"{dst}\" gw_src=\"a\" gw_dst=\"b\"><link_ctn id=\"l\"/></{element}>"
        );
        match refused("Full", &format!("{ZONES}{route}")) {
            PlatformError::UnknownInRoute { at, kind, name, .. } => {
                assert_eq!(at, line(6));
                assert!(kind.starts_with("zone "), "{kind}");
                name
            }
            other => panic!("{other}"),
        }
    };
    assert_eq!(unknown("zoneRoute", "A", "X"), "X");
    assert_eq!(unknown("zoneRoute", "a", "B"), "a");
    // A zone inside a zone is joined by that one's routes, or by a bypass.
    assert_eq!(unknown("ASroute", "A", "B1"), "B1");
    assert_eq!(unknown("bypassZoneRoute", "A", "w"), "w");
    assert_eq!(unknown("bypassASroute", "A", "b"), "b");
}

#[test]
fn gateways_are_in_the_zones_that_they_lead_into() {
    let gateway = |gateways: (&str, &str)| {
        let route = format!(
            "<zoneRoute src=\"A\" dst=\"T\" gw_src=\"{}\" gw_dst=\"{}\"><link_ctn id=\"l\"/></zoneRoute>",
            gateways.0, gateways.1
        );
        match refused("Floyd", &format!("{ZONES}{route}")) {
            PlatformError::Gateway { at, gateway, zone, .. } => {
                assert_eq!(at, line(6));
                (gateway, zone)
            }
            other => panic!("{other}"),
        }
    };
    assert_eq!(gateway(("b", "t0")), ("b".to_owned(), "A".to_owned()));
    assert_eq!(gateway(("A", "t0")), ("A".to_owned(), "A".to_owned()));
    assert_eq!(gateway(("x", "t0")), ("x".to_owned(), "A".to_owned()));
    // Only flat clusters have a router.
    assert_eq!(gateway(("a", "tT_router")), ("tT_router".to_owned(), "T".to_owned()));
}

#[test]
fn routes_join_what_their_own_zone_holds() {
    let route = "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>";
    let error = refused("Full", &format!("{ZONES}{route}"));
    assert!(
        matches!(error, PlatformError::UnknownInRoute { kind: "host or router of its zone", name, .. } if name == "a")
    );
    let bypass = "<bypassRoute src=\"r\" dst=\"x\"><link_ctn id=\"l\"/></bypassRoute>";
    let error = refused("Full", &format!("{HOSTS}{bypass}"));
    assert!(
        matches!(error, PlatformError::UnknownInRoute { kind: "host or router of its zone", name, .. } if name == "x")
    );
}

#[test]
fn routes_have_links() {
    for (elements, route) in [
        (HOSTS, "<route src=\"a\" dst=\"b\"/>"),
        (HOSTS, "<bypassRoute src=\"a\" dst=\"b\"/>"),
        (ZONES, "<zoneRoute src=\"A\" dst=\"B\" gw_src=\"a\" gw_dst=\"b\"/>"),
        (ZONES, "<bypassZoneRoute src=\"A\" dst=\"B\" gw_src=\"a\" gw_dst=\"b\"/>"),
    ] {
        let error = refused("Dijkstra", &format!("{elements}{route}"));
        assert!(matches!(error, PlatformError::EmptyRoute { .. }), "{route}: {error}");
    }
}

#[test]
fn routes_are_declared_once() {
    let twice = |routing: &str, elements: &str, route: &str| {
        let error = refused(routing, &format!("{elements}{route}\n{route}"));
        assert!(matches!(error, PlatformError::DuplicateRoute { .. }), "{route}: {error}");
    };
    let bypass = "<bypassRoute src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></bypassRoute>";
    let loopback = "<route src=\"a\" dst=\"a\"><link_ctn id=\"l\"/></route>";
    let between = "<zoneRoute src=\"A\" dst=\"B\" gw_src=\"a\" gw_dst=\"b\"><link_ctn id=\"l\"/></zoneRoute>";
    twice("None", HOSTS, bypass);
    twice("Full", HOSTS, loopback);
    twice("Star", HOSTS, loopback);
    twice("Floyd", ZONES, between);
    // The reverse of such a route is a second route in zones of shortest paths, as in SimGrid.
    for routing in ["Floyd", "Dijkstra"] {
        let error = refused(routing, &format!("{HOSTS}{loopback}"));
        assert!(matches!(error, PlatformError::DuplicateRoute { .. }), "{error}");
    }
    let bypass = "<bypassRoute src=\"a\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"l\"/></bypassRoute>";
    let error = refused("Full", &format!("{HOSTS}{bypass}"));
    assert!(matches!(error, PlatformError::UnknownAttribute { attribute, .. } if attribute == "symmetrical"));
}

#[test]
fn cables_of_a_star_are_single_links_of_its_hosts() {
    let value = |cables: &str| match refused("Cluster", &format!("{HOSTS}{cables}")) {
        PlatformError::Value { at, field, found, .. } => {
            assert_eq!(at, line(4));
            (field, found)
        }
        other => panic!("{other}"),
    };
    assert_eq!(value("<host_link id=\"r\" up=\"l\" down=\"l\"/>"), ("id", "r".to_owned()));
    assert_eq!(value("<host_link id=\"a\" up=\"l\" down=\"s\"/>"), ("down", "s".to_owned()));
    assert_eq!(value("<host_link id=\"a\" up=\"x\" down=\"l\"/>"), ("up", "x".to_owned()));
    let twice = |element: &str| match refused(
        "Cluster",
        &format!("{HOSTS}{element}\n{}", element.replace("bb1", "bb2")),
    ) {
        PlatformError::Duplicate { at, kind, .. } => {
            assert_eq!(at, line(5));
            kind
        }
        other => panic!("{other}"),
    };
    assert_eq!(twice("<host_link id=\"a\" up=\"l\" down=\"l\"/>"), "cable of the host");
    assert_eq!(twice("<backbone id=\"bb1\" bandwidth=\"1Bps\" latency=\"0\"/>"), "backbone");
}

#[test]
fn hosts_routers_and_zones_have_one_space_of_names() {
    let duplicate = |elements: &str| match refused("Full", elements) {
        PlatformError::Duplicate { kind, name, .. } => (kind, name),
        other => panic!("{elements}: {other}"),
    };
    assert_eq!(duplicate("<host id=\"a\" speed=\"1f\"/><router id=\"a\"/>"), ("router", "a".to_owned()));
    assert_eq!(duplicate("<zone id=\"w\" routing=\"Full\"/>"), ("zone", "w".to_owned()));
    let link = "<link id=\"__loopback__\" bandwidth=\"1Bps\"/>";
    assert!(matches!(refused("Full", link), PlatformError::Value { field: "id", .. }));
}

#[test]
fn a_platform_is_one_zone_of_hosts_or_of_zones() {
    let outermost = "</zone>\n<zone id=\"v\" routing=\"Full\">";
    let error = refused("Full", outermost);
    assert!(
        matches!(error, PlatformError::UnknownElement { at, element, .. } if at == line(3) && element == "zone")
    );
    let mixed = "<router id=\"r\"/>\n<zone id=\"v\" routing=\"Full\"/>";
    assert!(matches!(refused("Full", mixed), PlatformError::UnknownElement { at, .. } if at == line(3)));
}

#[test]
fn floyd_tables_are_bounded() {
    let routers: String = (0..=8192).map(|router| format!("<router id=\"r{router}\"/>")).collect();
    let error = refused("Floyd", &format!("<host id=\"a\" speed=\"1f\"/>{routers}"));
    assert!(matches!(error, PlatformError::TooLarge { limit: 8192, .. }), "{error}");
}
