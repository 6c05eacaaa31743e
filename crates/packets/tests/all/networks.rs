//! Platforms of the tests.

use netmodel::{Platform, RoutingRule};

/// A chain from host 0 to host 1 of links, each with its rate [B/ns] and latency \[ns\].
pub(crate) fn chain(links: &[(f64, f64)]) -> Platform {
    let link = |(number, (rate, latency)): (usize, &(f64, f64))| {
        format!(
            "<link id=\"{number}\" bandwidth=\"{}Bps\" latency=\"{latency}ns\" sharing_policy=\"SPLITDUPLEX\"/>",
            rate * 1e9
        )
    };
    let declared: String = links.iter().enumerate().map(link).collect();
    let hops: String =
        (0..links.len()).map(|number| format!("<link_ctn id=\"{number}\" direction=\"UP\"/>")).collect();
    let text = format!(
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>\
         {declared}<route src=\"a\" dst=\"b\">{hops}</route></zone></platform>"
    );
    Platform::from_xml(&text, "chain").unwrap()
}

/// A platform of a topology with links of a rate \[B/ns\] and a latency \[ns\].
pub(crate) fn network(topology: &str, rate: f64, latency: f64) -> Platform {
    let bandwidth = rate * 1e9;
    let text = format!(
        "topology = {{ {topology}, speed = '1Gf', bandwidth = '{bandwidth}Bps', latency = '{latency}ns' }}"
    );
    let mut platform = Platform::from_toml(&text, "test").unwrap();
    platform.set_routing_rule(RoutingRule::Textbook);
    platform
}

/// The three levels of a full fat tree of switches with `ports` ports: `ports^3 / 4` hosts.
pub(crate) fn fat_tree(ports: u32) -> String {
    let half = ports / 2;
    format!(
        "kind = 'fat_tree', levels = [{{ children = {half}, parents = 1 }}, {{ children = {half}, parents = {half} }}, \
         {{ children = {ports}, parents = {half} }}]"
    )
}

/// Leaves with `hosts` hosts each, below `spines` spines.
pub(crate) fn leaf_spine(leaves: u32, hosts: u32, spines: u32) -> String {
    format!(
        "kind = 'fat_tree', levels = [{{ children = {hosts}, parents = 1 }}, {{ children = {leaves}, parents = {spines} }}]"
    )
}
