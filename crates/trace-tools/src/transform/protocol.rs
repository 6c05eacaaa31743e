//! `protocol`: messages are sent by another protocol than their size decides.

use trace_mmap::SendMode;

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::mode::Mode;
use super::{Selector, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "protocol",
    subject: Subject::Messages,
    keys: &[Key::required(
        "protocol",
        KeyValues::Choice(&["eager", "rendezvous"]),
        "Protocol of the messages.",
    )],
    semantics: "`protocol = \"eager\"`: the sender goes on at once, as below `mpi.detached_below_bytes`; `\"rendezvous\"`: it waits for the receive, as from \
                this size on. These are buffered and synchronous sends, see `mode`. Data leave before the receive is posted below `mpi.eager_below_bytes` \
                only, whatever the protocol.",
    read,
};

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let mode = keys.require("protocol", |value| match value.as_str()? {
        "eager" => Some(SendMode::Buffered),
        "rendezvous" => Some(SendMode::Synchronous),
        _ => None,
    })?;
    Ok(Box::new(Mode { selector, mode }))
}
