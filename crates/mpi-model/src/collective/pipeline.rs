//! Vectors that travel along a tree in segments.

use pdes_core::Bytes;

use super::script::{Handle, rounds};
use super::tree::Tree;
use super::{Schedule, Step, Steps, recv, send};

/// How a member hands segments on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    Blocking,
    NonBlocking,
}

/// Receives segments from above, all posted at once, and hands each on as soon as it is there.
pub(super) fn relay<'a>(tree: Tree, segments: u64, bytes: Bytes, sends: Sends) -> Schedule<'a> {
    let Tree { parent, children } = tree;
    let receives = parent.map_or(0, |_| segments);
    let hands_on = if parent.is_some() && children.is_empty() { 0 } else { segments };
    let steps = rounds(receives + hands_on, move |round, steps| {
        if let Some(parent) = parent {
            if round < receives {
                steps.irecv(parent, bytes);
                return;
            }
            steps.wait(Handle::nth((round - receives) as u32));
        }
        for &child in &children {
            match sends {
                Sends::Blocking => steps.send(child, bytes),
                Sends::NonBlocking => {
                    steps.isend(child, bytes);
                }
            }
        }
    });
    Box::new(steps.then(std::iter::once(Step::WaitAll)))
}

/// Receives a vector from above as a whole, then hands it on.
pub(super) fn store_and_forward<'a>(tree: Tree, bytes: Bytes) -> Schedule<'a> {
    let Tree { parent, children } = tree;
    let received = parent.map(|parent| recv(parent, bytes));
    Box::new(received.into_iter().chain(children.into_iter().map(move |child| send(child, bytes))))
}
