//! Reader of LogGOPSim's binary schedule format.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic number 4223; 2342 after a simulation that has counted down the dependencies in the file (`--save-mem`) |
//! | 8..12 | ranks |
//! | 12, 13 | largest numbers of a processor and of an interface |
//! | 14.. | per rank, offsets of its start and end, counted from byte 8 (two u64) |
//!
//! The data of a rank is: number of operations (u32), number of roots (u32), the numbers of the roots (u32 each), the
//! operations, and the list of dependents to which they point (u32 each). All numbers are little-endian and unaligned.
//! An operation is:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | number of operations that it depends on |
//! | 4 | 1 send, 2 receive, 3 computation |
//! | 5..9 | peer, all bits set: any |
//! | 9..17 | size \[B or ns\] |
//! | 17..21 | tag, all bits set: any |
//! | 21, 22 | processor, interface |
//! | 23..31 | dependents that wait for its end: their number, and the index of the first one in the list |
//! | 31..39 | dependents that wait for its start, likewise |
//! | 39..104 | only in LogGOPSim 2: fields of operations of other kinds |
//!
//! The file does not say which of the two layouts it has. It is the one in which the list of each rank ends with the
//! rank; if that holds for both, the one in which all operations are of the three kinds.

use crate::error::{BinaryError, ScheduleError};
use crate::schedule::{ANY, After, FROM_START, Kind, Operation, RankBuilder, Schedule, ScheduleBuilder};

const MAGIC: u64 = 4223;
const MAGIC_COUNTED_DOWN: u64 = 2342;
/// Byte from which offsets are counted.
const ORIGIN: usize = 8;
const RANK_OFFSETS: usize = 14;
/// Size of an operation in LogGOPSim and in LogGOPSim 2 \[B\].
const LAYOUTS: [usize; 2] = [39, 104];

/// Returns true if bytes start with a magic number of the binary format.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.len() >= ORIGIN && [MAGIC, MAGIC_COUNTED_DOWN].contains(&read_u64(bytes, 0))
}

/// Reads a schedule from LogGOPSim's binary format, in either layout.
///
/// # Errors
/// Fails if the bytes end too early, contain an offset or index out of range, or are not a valid schedule.
pub fn read_binary(bytes: &[u8]) -> Result<Schedule, BinaryError> {
    let truncated = |of, what| BinaryError::Truncated { at: bytes.len() as u64, of, what };
    if bytes.len() < ORIGIN {
        return Err(truncated("file", "8 bytes of 4223 (or 2342)"));
    }
    let magic = read_u64(bytes, 0);
    if !is_binary(bytes) {
        return Err(BinaryError::Magic { found: magic });
    }
    if bytes.len() < RANK_OFFSETS {
        return Err(truncated("file", "ranks, processors and interfaces"));
    }
    let ranks = read_u32(bytes, 8);
    if (bytes.len() - RANK_OFFSETS) / 16 < ranks as usize {
        return Err(truncated("file", "the offsets of all ranks"));
    }
    let body = |rank: u32| {
        let at = RANK_OFFSETS + 16 * rank as usize;
        let [start, end] =
            [read_u64(bytes, at), read_u64(bytes, at + 8)].map(|place| usize::try_from(place).ok());
        let body = start.zip(end).and_then(|(start, end)| bytes[ORIGIN..].get(start..end));
        body.ok_or_else(|| truncated("file", "a rank at its offset"))
    };
    let bodies: Vec<&[u8]> = (0..ranks).map(body).collect::<Result<_, _>>()?;
    let mut schedule = ScheduleBuilder::new(ranks);
    let mut operations = RankBuilder::default();
    for reader in split_ranks(&bodies)? {
        operations.clear();
        reader.read([bytes[12], bytes[13]], magic == MAGIC, &mut operations)?;
        schedule.push(&operations)?;
    }
    Ok(schedule.finish()?)
}

/// Splits the data of each rank by the layout that the file has.
fn split_ranks<'a>(bodies: &[&'a [u8]]) -> Result<Vec<RankReader<'a>>, BinaryError> {
    let mut layouts = LAYOUTS.map(|layout| Some((layout, Vec::with_capacity(bodies.len()))));
    for (rank, body) in (0..).zip(bodies) {
        let nodes = RankReader::operation_count(body)?;
        for fitting in &mut layouts {
            *fitting = fitting.take().and_then(|(layout, mut readers)| {
                readers.push(RankReader::split(rank, body, layout)?);
                Some((layout, readers))
            });
        }
        if layouts.iter().all(Option::is_none) {
            return Err(BinaryError::Layout { rank, bytes: body.len() as u64, nodes });
        }
    }
    let mut fitting: Vec<_> = layouts.into_iter().flatten().map(|(_, readers)| readers).collect();
    let is_known = |readers: &Vec<RankReader<'_>>| readers.iter().all(RankReader::has_known_kinds);
    let place = if fitting.len() > 1 { fitting.iter().position(is_known) } else { None };
    Ok(fitting.swap_remove(place.unwrap_or(0)))
}

/// The data of a rank, split into its parts.
struct RankReader<'a> {
    rank: u32,
    roots: &'a [u8],
    /// Operations, `layout` bytes each.
    nodes: &'a [u8],
    dependents: &'a [u8],
    layout: usize,
}

impl<'a> RankReader<'a> {
    /// Returns the number of operations of a rank.
    fn operation_count(body: &[u8]) -> Result<u32, BinaryError> {
        if body.len() < 8 {
            let what = "its numbers of operations and roots";
            return Err(BinaryError::Truncated { at: body.len() as u64, of: "rank", what });
        }
        let nodes = read_u32(body, 0);
        if nodes >= FROM_START {
            return Err(ScheduleError::TooLarge { table: "operations", entries: nodes.into() }.into());
        }
        Ok(nodes)
    }

    /// Splits the data of a rank with operations of `layout` bytes; `None` if its list of dependents does not end with
    /// it.
    fn split(rank: u32, body: &'a [u8], layout: usize) -> Option<Self> {
        let (nodes, roots) = (read_u32(body, 0), read_u32(body, 4));
        let (roots, rest) = body[8..].split_at_checked((roots as usize).checked_mul(4)?)?;
        let (nodes, list) = rest.split_at_checked((nodes as usize).checked_mul(layout)?)?;
        let listed: u64 = nodes.chunks_exact(layout).map(dependent_count).sum();
        (listed * 4 == list.len() as u64).then_some(Self { rank, roots, nodes, dependents: list, layout })
    }

    /// Returns true if all operations are of known kinds.
    fn has_known_kinds(&self) -> bool {
        self.nodes.chunks_exact(self.layout).all(|node| Kind::from_number(node[4]).is_some())
    }

    /// Adds the operations and dependencies. `last` holds the largest numbers of a processor and an interface; `counts`
    /// tells whether the dependency counts in the file are valid.
    fn read(&self, last: [u8; 2], counts: bool, operations: &mut RankBuilder) -> Result<(), BinaryError> {
        let nodes = || (0..).zip(self.nodes.chunks_exact(self.layout));
        for (index, node) in nodes() {
            operations.push(self.operation(index, node, last)?);
        }
        let mut waits_for = vec![0_u32; operations.len()];
        for (index, node) in nodes() {
            self.add_dependencies(index, node, 23, After::End, operations, &mut waits_for)?;
            self.add_dependencies(index, node, 31, After::Start, operations, &mut waits_for)?;
        }
        if counts {
            self.check_counts(&waits_for)?;
        }
        self.check_roots(&waits_for)
    }

    fn operation(&self, index: u32, node: &[u8], last: [u8; 2]) -> Result<Operation, BinaryError> {
        let known = |number| (number != ANY).then_some(number);
        let kind = Kind::from_number(node[4]);
        let kind = kind.ok_or_else(|| {
            self.invalid_field(index, "type", node[4].into(), "1 send, 2 receive or 3 calculation")
        })?;
        for (field, number, last) in [("processor", node[21], last[0]), ("interface", node[22], last[1])] {
            if number > last {
                let expected = format!("at most {last}, as the header says");
                return Err(self.invalid_field(index, field, number.into(), &expected));
            }
        }
        let (peer, tag) = match kind {
            Kind::Calculate => (None, None),
            _ => (known(read_u32(node, 5)), known(read_u32(node, 17))),
        };
        Ok(Operation { kind, size: read_u64(node, 9), peer, tag, cpu: node[21], nic: node[22] })
    }

    /// Adds the dependencies on one operation whose number of dependents and index in the list are stored at byte `at`.
    fn add_dependencies(
        &self,
        index: u32,
        node: &[u8],
        at: usize,
        after: After,
        operations: &mut RankBuilder,
        waits_for: &mut [u32],
    ) -> Result<(), BinaryError> {
        let (count, first) = (read_u32(node, at) as usize, read_u32(node, at + 4) as usize);
        if count == 0 {
            return Ok(());
        }
        let range = first.checked_mul(4).zip(first.checked_add(count).and_then(|end| end.checked_mul(4)));
        let list = range.and_then(|(start, end)| self.dependents.get(start..end));
        let expected = || format!("an index up to {} in the list", self.dependents.len() / 4);
        let list =
            list.ok_or_else(|| self.invalid_field(index, "index of dependents", first as u64, &expected()))?;
        for dependent in list.chunks_exact(4).map(|number| read_u32(number, 0)) {
            let expected = || format!("an operation up to {}", waits_for.len().saturating_sub(1));
            let beyond = || self.invalid_field(index, "dependent", dependent.into(), &expected());
            if dependent as usize >= waits_for.len() {
                return Err(beyond());
            }
            waits_for[dependent as usize] += 1;
            operations.depend(dependent, index, after);
        }
        Ok(())
    }

    fn check_counts(&self, waits_for: &[u32]) -> Result<(), BinaryError> {
        for (index, (node, &expected)) in (0..).zip(self.nodes.chunks_exact(self.layout).zip(waits_for)) {
            let found = read_u32(node, 0);
            if found != expected {
                let expected = format!("{expected}, its number of occurrences in the dependents");
                return Err(self.invalid_field(index, "number of dependencies", found.into(), &expected));
            }
        }
        Ok(())
    }

    /// Checks that the roots are exactly the operations without dependencies, in order.
    fn check_roots(&self, waits_for: &[u32]) -> Result<(), BinaryError> {
        let mut expected = (0..).zip(waits_for).filter(|(_, count)| **count == 0).map(|(index, _)| index);
        for found in self.roots.chunks_exact(4).map(|root| read_u32(root, 0)) {
            let root = expected.next();
            if root != Some(found) {
                let expected = root.map_or("no further one".to_owned(), |root| root.to_string());
                return Err(self.invalid_field(found, "root", found.into(), &expected));
            }
        }
        match expected.next() {
            None => Ok(()),
            Some(root) => Err(self.invalid_field(
                root,
                "missing root",
                root.into(),
                "every operation without dependencies",
            )),
        }
    }

    fn invalid_field(&self, operation: u32, field: &'static str, found: u64, expected: &str) -> BinaryError {
        BinaryError::Field { rank: self.rank, operation, field, found, expected: expected.to_owned() }
    }
}

/// Returns the number of dependents of an operation.
fn dependent_count(node: &[u8]) -> u64 {
    u64::from(read_u32(node, 23)) + u64::from(read_u32(node, 31))
}

/// Reads a u32; callers have checked the length.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le(bytemuck::pod_read_unaligned(&bytes[at..at + 4]))
}

/// Reads a u64; callers have checked the length.
fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le(bytemuck::pod_read_unaligned(&bytes[at..at + 8]))
}
