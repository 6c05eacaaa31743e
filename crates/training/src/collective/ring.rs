//! Rings: chunks go from each member to the next one.

use super::{Steps, Transfer};

/// Sends a chunk to the next member and receives one from the previous one, so many times.
pub(super) fn rounds(me: u32, members: u32, bytes: u64, rounds: u32) -> Steps {
    let (next, previous) = ((me + 1) % members, (me + members - 1) % members);
    (0..rounds).map(|_| vec![Transfer::Send(next, bytes), Transfer::Receive(previous, bytes)]).collect()
}

/// Passes as many chunks as there are members along the members, from member 0 to the last one or back.
pub(super) fn chain(me: u32, members: u32, chunk: u64, is_backward: bool) -> Steps {
    let (earlier, later) = (me.checked_sub(1), Some(me + 1).filter(|later| *later < members));
    let (from, to) = if is_backward { (later, earlier) } else { (earlier, later) };
    let receives = from.map(|from| Transfer::Receive(from, chunk));
    let sends = to.map(|to| Transfer::Send(to, chunk));
    pipeline(receives, sends, members)
}

/// Receives a chunk while the one before it is sent.
fn pipeline(receive: Option<Transfer>, send: Option<Transfer>, chunks: u32) -> Steps {
    match (receive, send) {
        (Some(receive), Some(send)) => {
            let both = (1..chunks).map(|_| vec![receive, send]);
            [vec![receive]].into_iter().chain(both).chain([vec![send]]).collect()
        }
        (only, other) => (0..chunks).map(|_| only.into_iter().chain(other).collect()).collect(),
    }
}

/// Reduces and scatters in each node, reduces between members with the same place in their nodes, and gathers in each node.
pub(super) fn hierarchical(me: u32, members: u32, node: u32, bytes: u64) -> Steps {
    let (first, place) = (me / node * node, me % node);
    let part = bytes.div_ceil(node.into());
    let nodes = members / node;
    let renumber = |steps: Steps, number: &dyn Fn(u32) -> u32| -> Steps {
        let transfer = |transfer| match transfer {
            Transfer::Send(peer, bytes) => Transfer::Send(number(peer), bytes),
            Transfer::Receive(peer, bytes) => Transfer::Receive(number(peer), bytes),
        };
        steps.into_iter().map(|step| step.into_iter().map(transfer).collect()).collect()
    };
    let within = renumber(rounds(place, node, part, node - 1), &|peer| first + peer);
    let chunk = part.div_ceil(nodes.into());
    let between = renumber(rounds(me / node, nodes, chunk, 2 * (nodes - 1)), &|peer| peer * node + place);
    [within.clone(), between, within].concat()
}
