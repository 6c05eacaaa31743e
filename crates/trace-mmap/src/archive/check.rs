//! Check of a trace: finds the errors that can be found without a replay.

mod collectives;
mod digest;
mod files;
mod loops;
mod messages;
mod requests;

pub use collectives::check_collectives;
use files::FileUses;
use messages::{MessageSizes, RankSizes, check_sizes};
use requests::RequestTracker;

use pdes_core::Rank;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::archive::tally::Tally;
use crate::archive::{ArchivedRank, Damage};
use crate::builder::LinkableRank;
use crate::call::FileName;
use crate::channel::Tag;
use crate::column::{ABSENT, ActionCountChanges, BLOCK_VALUES, Column, ColumnReader, ColumnStorage};
use crate::communicator::CommId;
use crate::link::{CommunicatorConflict, LinkError, UnmatchedReceive, describe_shortage, link};
use crate::measured::MeasuredTimes;
use crate::open_files::FileMisuse;
use crate::record::{COMPUTE, MAX_AMOUNT_BITS};
use crate::trace::{ActionStorage, RankTrace, Trace};
use crate::warning::Unreceived;

/// Error found in a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// The checksum of a page of data does not match.
    #[error("{0}")]
    Data(Damage),
    /// A rank cannot be read to its end.
    #[error("rank {rank}: {damage}")]
    Damaged {
        /// The rank.
        rank: Rank,
        /// The damage.
        damage: Damage,
    },
    /// A number in a table differs from that of the program of the rank.
    #[error("rank {rank}: the {field} is {found} by the table, {expected} by the program")]
    Table {
        /// The rank.
        rank: Rank,
        /// Name of the number.
        field: &'static str,
        /// Number in the table.
        found: u64,
        /// Number by the program.
        expected: u64,
    },
    /// A request is posted to an occupied slot or waited for though it is not pending, or a loop changes the pending requests.
    #[error(
        "rank {rank}: record {record} of its program posts a request that is pending, completes one that is not, or ends a loop with other requests pending than before"
    )]
    Request {
        /// The rank.
        rank: Rank,
        /// Index of the record, from 0.
        record: u64,
    },
    /// A rank receives more messages from a channel than are sent to it.
    #[error("rank {rank} {}", describe_shortage([*receives, *sends], *src, *tag, *communicator))]
    ReceiveWithoutSend {
        /// The receiver.
        rank: Rank,
        /// The source; `None` for all sources together, if some receive is from any source.
        src: Option<Rank>,
        /// The tag; `None` for any.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommId,
        /// Number of messages sent to the channel.
        sends: u64,
        /// Number of receives from the channel.
        receives: u64,
    },
    /// Ranks do not agree on a communicator.
    #[error("{0}")]
    Communicators(CommunicatorConflict),
    /// An outgoing channel leads to another port than that of the receiver.
    #[error("rank {rank}: its channel to rank {peer}, tag {tag}, leads to the wrong port")]
    Port {
        /// The sender.
        rank: Rank,
        /// The receiver.
        peer: Rank,
        /// The tag.
        tag: Tag,
    },
    /// Two ranks do not take part in the same collective operations of a communicator, or with other roots, amounts or files.
    #[error(
        "collective operation {index} on communicator {communicator}: rank {first} has {}, rank {rank} has {}",
        expected.as_deref().unwrap_or("none"),
        found.as_deref().unwrap_or("none")
    )]
    Collective {
        /// The communicator.
        communicator: CommId,
        /// Its lowest rank.
        first: Rank,
        /// The lowest rank that differs from that one.
        rank: Rank,
        /// Index of the first operation that differs, from 0.
        index: u64,
        /// The operation of the rank, with what differs and the index of its action; `None` if it has no more.
        found: Option<String>,
        /// The operation of the first rank.
        expected: Option<String>,
    },
    /// A rank sends another amount to a rank than that one receives in a collective operation.
    #[error(
        "collective operation {index} on communicator {communicator}: in {operation} rank {from} sends {} B to rank {to}, which receives {} B",
        amounts[0], amounts[1]
    )]
    CollectiveAmounts {
        /// The communicator.
        communicator: CommId,
        /// Index of the operation, from 0.
        index: u64,
        /// Name of the operation.
        operation: &'static str,
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// Sizes of what is sent, and of what is received \[B\].
        amounts: [u64; 2],
    },
    /// A message is longer than the receive that matches it.
    #[error(
        "rank {rank}{}: a message from rank {peer} with tag {tag}{} has {sent} B, but the receive that matches it has room for {room} B; make the receive as large as the send",
        action.map_or(String::new(), |action| format!(", action {action}")),
        on_communicator(*communicator)
    )]
    TooLong {
        /// The receiver.
        rank: Rank,
        /// Index of the action that receives it; `None` if several may.
        action: Option<u64>,
        /// The sender.
        peer: Rank,
        /// The tag of the message.
        tag: Tag,
        /// The communicator.
        communicator: CommId,
        /// Size of the message \[B\].
        sent: u64,
        /// Size of the receive, or of the largest one that may match \[B\].
        room: u64,
    },
    /// A call on a file in the wrong state.
    #[error("rank {rank}, action {action}: {call}: the file {:?} {misuse}", file.as_str())]
    FileMisuse {
        /// The rank.
        rank: Rank,
        /// Index of the action.
        action: u64,
        /// Name of the call.
        call: &'static str,
        /// The file.
        file: FileName,
        /// The mistake.
        misuse: FileMisuse,
    },
    /// Named requests are neither completed nor freed when their rank ends.
    #[error("rank {rank} ends with {requests} unfinished requests: each must be completed or freed before")]
    Unfinished {
        /// The rank.
        rank: Rank,
        /// Number of unfinished requests.
        requests: u64,
    },
}

fn on_communicator(id: CommId) -> String {
    if id == CommId::WORLD { String::new() } else { format!(" on communicator {id}") }
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Errors, at most one of a kind per rank; empty for a valid trace.
    pub findings: Vec<Finding>,
    /// Messages that nobody receives: a warning.
    pub unreceived: Option<Unreceived>,
    /// Number of requests pending at the end of their rank, over all ranks: a warning, because SimGrid waits for them, but an
    /// error for named requests.
    pub pending: u64,
}

/// Checks a trace: all checksums, all numbers of the tables, the order of requests, matching of sends and receives per
/// channel (per receiver if it receives from any source), that no message is longer than its receive, that files are open when they are
/// used, and that all ranks of each communicator take part in the [same collective operations](check_collectives).
///
/// The cost is linear in the length of programs and columns, not in the number of actions, but for channels in which some messages are longer
/// than some receives of others. The counter counts ranks.
///
/// ```
/// use trace_mmap::{Finding, check};
/// let trace = trace_tools::from_text("0 init\n0 barrier\n1 init\n1 bcast 1 0 0\n")?;
/// let report = check(&trace, None);
/// let (found, expected) = (Some("bcast (action 1)".to_owned()), Some("barrier (action 1)".to_owned()));
/// let (first, rank) = (pdes_core::Rank::new(0), pdes_core::Rank::new(1));
/// let communicator = trace_mmap::CommId::WORLD;
/// let finding = Finding::Collective { communicator, first, rank, index: 0, found, expected };
/// assert_eq!(report.findings, [finding]);
/// # Ok::<(), trace_mmap::TraceError>(())
/// ```
pub fn check(trace: &Trace, progress: Option<&AtomicU64>) -> CheckReport {
    let mut report = CheckReport::default();
    report.findings.extend(check_pages(trace).map(Finding::Data));
    let (mut linkables, mut sizes, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for rank in (0..trace.ranks()).map(Rank::new) {
        let CheckedRank { linkable, sizes: of_rank, file, pending } =
            check_rank(trace.rank(rank), rank, &mut report.findings);
        report.pending += pending;
        linkables.push(linkable);
        sizes.push(of_rank);
        files.extend(file);
        if let Some(progress) = progress {
            // A display elsewhere reads this counter; nothing depends on its order.
            progress.fetch_add(1, Ordering::Relaxed);
        }
    }
    // The following checks compare ranks, each of which has to be readable.
    if report.findings.is_empty() {
        check_links(trace, &mut linkables, &mut report);
        if report.findings.is_empty() {
            report.findings.extend(check_sizes(trace, &sizes, report.unreceived.is_none()));
        }
        // All ranks were read.
        report.findings.extend(check_collectives(trace).ok().flatten());
    }
    report.findings.extend(files);
    report
}

/// Returns the damage of the first page of each shard whose checksum does not match.
fn check_pages(trace: &Trace) -> impl Iterator<Item = Damage> + '_ {
    let shards = trace.directory().into_iter().flat_map(|directory| directory.archive.shards());
    shards.filter_map(|shard| (0..shard.pages().max(1)).find_map(|page| shard.check(page).err()))
}

/// Data of a rank for comparison with other ranks.
struct CheckedRank {
    linkable: LinkableRank,
    sizes: RankSizes,
    file: Option<Finding>,
    pending: u64,
}

/// Checks a rank by itself.
fn check_rank(trace: &RankTrace, rank: Rank, findings: &mut Vec<Finding>) -> CheckedRank {
    let (mut tally, mut sizes, mut files) = (Tally::new(), MessageSizes::default(), FileUses::default());
    let mut pending = RequestTracker::new(trace.slots());
    let (mut damage, mut bad_request) = (None, None);
    for (index, record) in (0..).zip(trace.storage.records()) {
        let step = record.and_then(|record| {
            let [head, amount] = record.words();
            tally.push(record, &trace.side_tables).map_err(|_| Damage::Record { head, amount })?;
            sizes.push(record, &trace.side_tables);
            files.push(record, &trace.side_tables);
            Ok(pending.push(record, &trace.side_tables))
        });
        match step {
            Ok(true) => {}
            Ok(false) => {
                bad_request.get_or_insert(index);
            }
            Err(found) => {
                damage = Some(found);
                break;
            }
        }
    }
    if damage.is_none() && !tally.is_closed() {
        damage = Some(Damage::Loop { limit: crate::archive::MAX_DEPTH as u64 });
    }
    findings.extend(damage.map(|damage| Finding::Damaged { rank, damage }));
    let is_followed = damage.is_none() && bad_request.is_none();
    findings.extend(bad_request.map(|record| Finding::Request { rank, record }));
    if is_followed && trace.has_named_requests && pending.count() > 0 {
        findings.push(Finding::Unfinished { rank, requests: pending.count() });
    }
    if let (None, ActionStorage::Archive(body)) = (damage, &trace.storage) {
        findings.extend(check_tables(body, &tally, rank));
        findings.extend(check_columns(body, &tally).err().map(|damage| Finding::Damaged { rank, damage }));
        findings.extend(check_times(trace, body, &tally).map(|(found, expected)| Finding::Table {
            rank,
            field: "number of times of a kind of action",
            found,
            expected,
        }));
    }
    let mut sends: Vec<u64> = tally.sends.iter().map(|traffic| traffic.messages).collect();
    sends.resize(trace.outgoing.len(), 0);
    let mut receives: Vec<u64> = tally.received().collect();
    receives.resize(trace.incoming.len(), 0);
    let receives_from_any = tally.received_from_any();
    let linkable = LinkableRank { trace: trace.tables(), sends, receives, receives_from_any };
    let file = if is_followed { files.finish(trace, rank) } else { None };
    CheckedRank { linkable, sizes: sizes.finish(), file, pending: pending.count() }
}

/// Compares the tables of a rank with the sums over its program.
fn check_tables(body: &ArchivedRank, tally: &Tally, rank: Rank) -> Option<Finding> {
    let sends = body.sends().enumerate().flat_map(|(channel, stored)| {
        let summed = tally.sends.get(channel).copied().unwrap_or_default();
        [
            ("number of messages of a channel", stored.messages, summed.messages),
            ("number of bytes of a channel", stored.bytes, summed.bytes),
        ]
    });
    let received = tally.received().chain(std::iter::repeat(0));
    let receives = body.receives().zip(received);
    let receives = receives.map(|(stored, summed)| ("number of receives of a channel", stored, summed));
    let columns =
        body.class.columns[..body.class.program_columns].iter().enumerate().map(|(column, stored)| {
            let summed = tally.columns.get(column).copied().unwrap_or_default();
            ("length of a column", stored.len, summed)
        });
    let kinds = body.class.program.by_kind.iter().zip(tally.by_kind);
    let kinds = kinds.map(|(stored, summed)| ("number of actions of a kind", *stored, summed));
    let program = [
        ("number of actions", body.class.program.actions, tally.actions),
        ("depth of loops", body.class.program.depth, tally.depth),
    ];
    let mut fields = program.into_iter().chain(kinds).chain(sends).chain(receives).chain(columns);
    fields.find(|(_, found, expected)| found != expected).map(|(field, found, expected)| Finding::Table {
        rank,
        field,
        found,
        expected,
    })
}

/// Compares the numbers of measured times with those of the actions of each kind; returns the first that differ.
fn check_times(trace: &RankTrace, body: &ArchivedRank, tally: &Tally) -> Option<(u64, u64)> {
    let Some(MeasuredTimes::Archive { columns, .. }) = &trace.measured_times else { return None };
    let mut numbers = (0_u8..).zip(columns.iter()).map(|(kind, column)| {
        let changes = if kind == COMPUTE { body.class.changes } else { ActionCountChanges::default() };
        (column.len, changes.apply(tally.by_kind[usize::from(kind)]).unwrap_or(0))
    });
    numbers.find(|(found, expected)| found != expected)
}

/// Reads all columns. Each value must be an amount or absent, with as many absent ones as the table says; inserted computations
/// must be within the program, after whole numbers of records.
fn check_columns(body: &ArchivedRank, tally: &Tally) -> Result<(), Damage> {
    let (own, inserting) = body.class.columns.split_at(body.class.program_columns);
    own.iter()
        .zip(&tally.columns)
        .try_for_each(|(column, uses)| check_column(body, column, *uses, |_| true))?;
    let mut left = tally.actions;
    let mut is_gap = |bits| {
        let records = f64::from_bits(bits);
        let rest = left.checked_sub(records as u64).filter(|_| records.fract() == 0.0);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let [gaps, amounts] = inserting else { return Ok(()) };
    if let ColumnStorage::Constant(bits) = gaps.storage {
        let all = gaps.len as f64 * f64::from_bits(bits);
        return if is_gap(all.to_bits()) {
            check_column(body, amounts, amounts.len, |_| true)
        } else {
            Err(Damage::Column)
        };
    }
    check_column(body, gaps, gaps.len, is_gap)?;
    check_column(body, amounts, amounts.len, |_| true)
}

/// Reads a column that is used `uses` times; each value must be absent or satisfy `is_right`.
fn check_column(
    body: &ArchivedRank,
    column: &Column,
    uses: u64,
    mut is_right: impl FnMut(u64) -> bool,
) -> Result<(), Damage> {
    if column.is_constant() {
        return if column.absent > 0 { Err(Damage::Column) } else { Ok(()) };
    }
    let mut places = [0; BLOCK_VALUES as usize];
    let (mut reader, mut absent, mut left) = (ColumnReader::new(column), 0, uses);
    while left > 0 {
        let limit = left.min(BLOCK_VALUES) as usize;
        let len = reader.unpack(body.shard(), body.blocks_offset, &mut places[..limit])?;
        for bits in &places[..len] {
            match *bits {
                ABSENT => absent += 1,
                bits if bits <= MAX_AMOUNT_BITS && is_right(bits) => {}
                _ => return Err(Damage::Column),
            }
        }
        left -= len as u64;
    }
    if absent == column.absent { Ok(()) } else { Err(Damage::Column) }
}

/// Links the ranks again and compares the ports.
fn check_links(trace: &Trace, linkables: &mut [LinkableRank], report: &mut CheckReport) {
    match link(linkables) {
        Ok(unreceived) => report.unreceived = unreceived,
        Err(LinkError::Communicators(conflict)) => {
            report.findings.push(Finding::Communicators(conflict));
            return;
        }
        Err(LinkError::Unmatched(shortage)) => {
            let rank = shortage.rank;
            let UnmatchedReceive { src, tag, communicator, sends, receives } =
                shortage.first_channel(&linkables[rank.index()]);
            report.findings.push(Finding::ReceiveWithoutSend {
                rank,
                src,
                tag,
                communicator,
                sends,
                receives,
            });
            return;
        }
    }
    for (rank, linked) in (0..).map(Rank::new).zip(linkables) {
        let stored = trace.rank(rank).outgoing().iter();
        let wrong =
            stored.zip(&linked.trace.outgoing).find(|(stored, linked)| stored.arrival() != linked.arrival());
        let finding = wrong.map(|(channel, _)| Finding::Port { rank, peer: channel.peer, tag: channel.tag });
        report.findings.extend(finding);
    }
}
