//! Forwarding of a vector along a tree, in segments or as a whole.

use pdes_core::Bytes;

use super::schedule_builder::{RequestHandle, build_rounds};
use super::tree::Tree;
use super::{Schedule, Step, Steps, recv, send};

/// Send mode of forwarded segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendMode {
    Blocking,
    NonBlocking,
}

/// Posts receives of all segments from the parent, and forwards each segment to the children as soon as it has arrived.
pub(super) fn forward_segments<'a>(tree: Tree, segments: u64, bytes: Bytes, sends: SendMode) -> Schedule<'a> {
    let Tree { parent, children } = tree;
    let receives = parent.map_or(0, |_| segments);
    let hands_on = if parent.is_some() && children.is_empty() { 0 } else { segments };
    let steps = build_rounds(receives + hands_on, move |round, steps| {
        if let Some(parent) = parent {
            if round < receives {
                steps.irecv(parent, bytes);
                return;
            }
            steps.wait(RequestHandle::nth((round - receives) as u32));
        }
        for &child in &children {
            match sends {
                SendMode::Blocking => steps.send(child, bytes),
                SendMode::NonBlocking => {
                    steps.isend(child, bytes);
                }
            }
        }
    });
    Box::new(steps.then(std::iter::once(Step::WaitAll)))
}

/// Receives a vector from the parent as a whole, then forwards it to the children.
pub(super) fn store_and_forward<'a>(tree: Tree, bytes: Bytes) -> Schedule<'a> {
    let Tree { parent, children } = tree;
    let received = parent.map(|parent| recv(parent, bytes));
    Box::new(received.into_iter().chain(children.into_iter().map(move |child| send(child, bytes))))
}
