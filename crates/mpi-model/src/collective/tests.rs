//! Runs every algorithm of every operation, and checks the properties of a correct one: it ends although no message is
//! buffered, each message has a receive with a buffer of its size, and each member gets the data that it needs.

mod calls;
mod decisions;
mod rendezvous;

use super::*;
use calls::{Call, calls, of_member};
use rendezvous::run;

/// Returns placements: one member per node, pairs, threes, one node, cyclic, and uneven.
fn layouts(size: u32) -> Vec<Layout> {
    let of = |host: &dyn Fn(u32) -> u32| Layout::new(&(0..size).map(host).collect::<Vec<_>>());
    let mut layouts = vec![Layout::one_per_node(size)];
    let others: [&dyn Fn(u32) -> u32; 5] =
        [&|rank| rank / 2, &|rank| rank / 3, &|_| 0, &|rank| rank % 2, &|rank| {
            u32::BITS - rank.leading_zeros()
        }];
    for host in others {
        let layout = of(host);
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    layouts
}

/// Returns the selections with which a call is run: each algorithm that supports this number of ranks.
fn selections(operation: Option<Operation>, size: u32) -> Vec<(&'static str, Selection)> {
    let Some(operation) = operation else {
        return vec![("-", Selection::default()), ("analytic", Selection::new(Selector::Analytic))];
    };
    let selection = |algorithm| {
        let mut selection = Selection::default();
        selection.choose(operation, algorithm).unwrap();
        (algorithm, selection)
    };
    operation.algorithms().map(selection).filter(|(_, selection)| selection.check(size).is_ok()).collect()
}

fn check(call: &Call, layout: &Layout, name: &str, selection: &Selection) -> Result<(), String> {
    let size = layout.size();
    let operations: Vec<Collective> = (0..size).map(|rank| of_member(&call.operation, rank)).collect();
    let schedules = (0..size)
        .zip(&operations)
        .map(|(rank, operation)| schedule(Member::new(rank, layout, selection), operation));
    let told = |what: String| format!("{name} on {size} ranks, {:?}, {layout:?}: {what}", call.operation);
    let ends = run(schedules.collect()).map_err(told)?;
    for (rank, end) in (0..size).zip(ends) {
        let missing = call.needs(rank) & !end.known;
        if missing != 0 {
            return Err(told(format!("rank {rank} never learns of {missing:#b}")));
        }
        // These algorithms leave out elements beyond the last whole segment.
        let left_out = match name {
            "flattree_pipeline" => 8191,
            "smp_binomial_pipeline" => 4095 * 4,
            "analytic" | Selection::IN_NETWORK => u64::MAX,
            _ => 0,
        };
        let least = call.least_bytes(rank).saturating_sub(left_out);
        if end.received < least {
            let found = end.received;
            return Err(told(format!("rank {rank} receives {found} bytes, expected at least {least}")));
        }
    }
    Ok(())
}

#[test]
fn every_algorithm_terminates_and_delivers() {
    let mut failures = Vec::new();
    for size in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17] {
        for call in calls(size) {
            for (name, selection) in selections(call.kind, size) {
                for layout in layouts(size) {
                    failures.extend(check(&call, &layout, name, &selection).err());
                }
            }
        }
    }
    let shown: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), shown.join("\n"));
}
