//! Helpers of the tests of this crate: platforms on one line, and routes by the names of their links.

use std::path::PathBuf;

use netmodel::{HostId, Platform};

/// Wraps elements into a platform file.
pub(crate) fn xml(elements: &str) -> String {
    format!("<platform version=\"4.1\"><zone id=\"w\" routing=\"Full\">{elements}</zone></platform>")
}

/// Makes the platform of one cluster, hosts n0, n1, .., with cables of 1 GB/s and 1 us.
pub(crate) fn cluster(hosts: u32, attributes: &str) -> Platform {
    let radical = format!("0-{}", hosts - 1);
    let text = xml(&format!(
        "<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"{radical}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" {attributes}/>"
    ));
    Platform::from_xml(&text, "test.xml").unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the names of the links between two hosts.
pub(crate) fn route(platform: &Platform, src: u32, dst: u32) -> Vec<String> {
    let mut links = Vec::new();
    platform.route(HostId::new(src), HostId::new(dst), &mut links).unwrap_or_else(|error| panic!("{error}"));
    links.into_iter().map(|link| platform.link(link).name.clone()).collect()
}

/// Declares a zone.
pub(crate) fn zone(id: &str, routing: &str, elements: &str) -> String {
    format!("<zone id=\"{id}\" routing=\"{routing}\">{elements}</zone>")
}

/// Returns the names of the links between two hosts, which are given by name.
pub(crate) fn route_by_name(platform: &Platform, src: &str, dst: &str) -> Vec<String> {
    let host = |name| platform.host_by_name(name).unwrap_or_else(|| panic!("no host {name}"));
    route(platform, host(src).get(), host(dst).get())
}

/// Returns a path relative to the root of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}
