//! Checks of the files of a trace when a simulation is loaded.

use std::collections::BTreeSet;

use netmodel::{HostId, Layout, Platform, StoragePlace};
use pdes_core::Rank;

use super::RunError;
use crate::execution::Feature;
use crate::programs::Program;

/// Returns the kinds of files that ranks access on a storage.
pub(super) fn file_features(program: &Program, platform: &Platform) -> BTreeSet<Feature> {
    let Program { trace, placement, .. } = program;
    let storage = platform.storage();
    // Which files a program accesses is not known before it runs: any that its hosts see.
    let is_open = program.may_access_files();
    if storage.is_empty() || !(is_open || trace.has_file_calls()) {
        return BTreeSet::new();
    }
    let is_elsewhere = |host, file: &str| match storage.find(host, file) {
        Some(StoragePlace::Device(device)) => storage.host(device) != host,
        // A file that no storage has is an error of the program, which its replay finds.
        Some(StoragePlace::FileSystem(_)) | None => false,
    };
    let are_elsewhere = |rank| {
        let host = placement.host(rank);
        if is_open && storage.directories(host).any(|directory| is_elsewhere(host, directory)) {
            return true;
        }
        let found = trace.with_rank(rank, |rank| rank.files().any(|file| is_elsewhere(host, file.as_str())));
        // A damaged rank ends the run on the process that replays it.
        found.unwrap_or(false)
    };
    let found = [
        (Feature::Files, true),
        (Feature::FileSystems, !storage.file_systems().is_empty()),
        (Feature::RemoteFiles, (0..trace.ranks()).map(Rank::new).any(are_elsewhere)),
        (Feature::SharedPointers, trace.has_shared_file_accesses()),
    ];
    found.into_iter().filter_map(|(feature, is_found)| is_found.then_some(feature)).collect()
}

/// Checks that clients and servers of all file systems reach each other.
pub(super) fn check_routes(platform: &Platform, lp_hosts: &[HostId]) -> Result<(), RunError> {
    // In one cluster all hosts do.
    if Layout::of(platform).is_some() {
        return Ok(());
    }
    let clients: BTreeSet<HostId> = lp_hosts.iter().copied().collect();
    for system in platform.storage().file_systems() {
        let metadata = system.metadata.map(|(host, _)| host);
        let servers: BTreeSet<HostId> = system.servers.iter().copied().chain(metadata).collect();
        let forwarders: BTreeSet<HostId> = system.forwarders.iter().copied().collect();
        let near = if forwarders.is_empty() { &servers } else { &forwarders };
        let pairs = clients.iter().flat_map(|client| near.iter().map(move |host| (*client, *host)));
        let behind = forwarders.iter().flat_map(|via| servers.iter().map(move |host| (*via, *host)));
        // A forwarder that is a client or a server itself is left out.
        let direct = clients.intersection(&forwarders);
        let direct = direct.flat_map(|client| servers.iter().map(move |host| (*client, *host)));
        for (one, other) in pairs.chain(behind).chain(direct).filter(|(one, other)| one != other) {
            for (from, to) in [(one, other), (other, one)] {
                platform.route(from, to, &mut Vec::new()).map_err(|source| RunError::FileSystemRoute {
                    directory: system.directory.clone(),
                    source: source.into(),
                })?;
            }
        }
    }
    Ok(())
}
