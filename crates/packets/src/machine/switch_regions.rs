//! Regions of switches.

use std::collections::BTreeSet;

use netmodel::{NetworkGraph, NodeId};

/// Returns the region of each node: a switch is in a region nearest to it; switches with several nearest regions, such as the cores of a
/// fat tree, are dealt out to them. `homes` has the region of each host.
pub(super) fn assign(graph: &NetworkGraph, homes: &[u32]) -> Vec<u32> {
    let mut nearest: Vec<BTreeSet<u32>> = homes.iter().map(|&home| BTreeSet::from([home])).collect();
    nearest.resize(graph.nodes() as usize, BTreeSet::new());
    let mut level: Vec<u32> = (0..graph.hosts()).collect();
    while !level.is_empty() {
        let mut next = BTreeSet::new();
        for &node in &level {
            for &channel in graph.outputs(NodeId::new(node)) {
                let to = graph.channel(channel).to.index();
                if nearest[to].is_empty() || next.contains(&(to as u32)) {
                    next.insert(to as u32);
                    let regions = nearest[node as usize].clone();
                    nearest[to].extend(regions);
                }
            }
        }
        level = next.into_iter().collect();
    }
    let mut dealt = 0;
    let region = |regions: BTreeSet<u32>| {
        let place = if regions.len() > 1 { dealt } else { 0 };
        dealt += usize::from(regions.len() > 1);
        // A switch that no host reaches has nothing to do.
        regions.iter().nth(place % regions.len().max(1)).copied().unwrap_or(0)
    };
    nearest.into_iter().map(region).collect()
}
