//! Checks that every message is received, by counting with loops.

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::{CallOp, Item, Op, RecvFrom};
use trace_tools::generate::Generator;

/// Source, destination, tag, size. The source is `None` if the destination has wildcard receives for such messages.
type Channel = (Option<u32>, u32, i32, u64);

/// Asserts that for every source, destination, tag and size as many messages are received as sent.
pub(crate) fn assert_sends_match_receives(generator: &dyn Generator) {
    let mut balance: BTreeMap<Channel, i64> = BTreeMap::new();
    for rank in 0..generator.ranks() {
        count(&mut balance, rank, 1, &generator.rank(Rank::new(rank)));
        balance.retain(|_, difference| *difference != 0);
    }
    let from_any: Vec<Channel> = balance.keys().filter(|channel| channel.0.is_none()).copied().collect();
    for (_, to, tag, bytes) in from_any {
        let sources = |channel: &Channel| (channel.1, channel.2, channel.3) == (to, tag, bytes);
        let sum: i64 = balance.iter().filter(|(channel, _)| sources(channel)).map(|(_, sum)| sum).sum();
        balance.retain(|channel, _| !sources(channel));
        balance.insert((None, to, tag, bytes), sum);
    }
    balance.retain(|_, difference| *difference != 0);
    let unmatched = balance.first_key_value();
    assert_eq!(
        unmatched,
        None,
        "{} ranks: (source, destination, tag, bytes), sent - received",
        generator.ranks()
    );
}

fn count(balance: &mut BTreeMap<Channel, i64>, rank: u32, times: i64, items: &[Item]) {
    for item in items {
        match item {
            Item::Loop { count: more, body } => count(balance, rank, times * *more as i64, body),
            Item::Op(
                Op::Send { peer: Some(peer), tag, bytes } | Op::Isend { peer: Some(peer), tag, bytes },
            ) => {
                *balance.entry((Some(rank), peer.get(), tag.get(), bytes.get())).or_default() += times;
            }
            Item::Op(
                Op::Recv { peer: Some(peer), tag: Some(tag), bytes }
                | Op::Irecv { peer: Some(peer), tag: Some(tag), bytes },
            ) => *balance.entry((Some(peer.get()), rank, tag.get(), bytes.get())).or_default() -= times,
            Item::Op(Op::Call(CallOp::Recv { from: RecvFrom { tag: Some(tag), .. }, bytes })) => {
                *balance.entry((None, rank, tag.get(), bytes.get())).or_default() -= times;
            }
            Item::Op(_) => {}
        }
    }
}
