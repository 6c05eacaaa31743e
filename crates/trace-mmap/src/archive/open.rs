//! Opening an archive: the header and the tables are verified, the data only as they are read.

mod communicators;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::archive::body::Program;
use crate::archive::layout::{
    BadHeader, HEADER, Header, MAX_COLUMNS, MAX_DEPTH, ORDER, PAGE, SLACK, Section, VERSION,
};
use crate::archive::map::MappedFile;
use crate::archive::shard::ShardFile;
use crate::archive::tables::Tables;
use crate::archive::{Archive, ArchiveError, ArchivedRank, Form, Shard};
use crate::channel::{Arrival, Incoming, Outgoing, PortId, Slot, Tag};
use crate::column::{Column, Place};
use crate::communicator::Group;
use crate::load::MAX_RANKS;
use crate::record::{ACTION_KINDS, Limits, MAX_AMOUNT_BITS, MAX_SLOTS, TableSizes};
use crate::side::{Side, SideNeeds};
use crate::trace::{Body, RankTrace};
use crate::warning::Unreceived;

/// Pages of data that are verified at the open: 16 MiB, which takes a few milliseconds, hold most folded traces, whose
/// damage then shows at once.
const EAGER_PAGES: u64 = 256;

/// Opens an archive.
pub(crate) fn open(path: &Path) -> Result<(Vec<RankTrace>, Option<Unreceived>), ArchiveError> {
    let io = |source| ArchiveError::Io { file: path.to_path_buf(), source };
    let file = Arc::new(MappedFile::open(path).map_err(io)?);
    let header = Header::from_bytes(file.bytes()).map_err(|bad| bad_header(&file, bad))?;
    let found = file.bytes().len() as u64;
    if cfg!(target_endian = "big") {
        return Err(bad_header(&file, BadHeader::ByteOrder(ORDER)));
    }
    if found != header.length {
        return Err(ArchiveError::Length { file: path.to_path_buf(), found, expected: header.length });
    }
    let tables = Tables::new(&file, &header)?;
    let shards = shards(&tables, &header, &file)?;
    let archive = Arc::new(Archive {
        shards,
        header: header.clone(),
        file: Arc::clone(&file),
        damage: Mutex::default(),
    });
    verify_first_pages(&archive)?;
    let ranks = Opening::new(&tables, &archive, &header)?.ranks()?;
    Ok((ranks, unreceived(&tables, &header)?))
}

fn bad_header(file: &MappedFile, bad: BadHeader) -> ArchiveError {
    let found = file.bytes().len() as u64;
    let file = file.path().to_path_buf();
    match bad {
        BadHeader::Magic => ArchiveError::Magic { file },
        BadHeader::ByteOrder(found) => {
            ArchiveError::ByteOrder { file, found, expected: u32::from_ne_bytes(ORDER.to_le_bytes()) }
        }
        BadHeader::Version(found) => ArchiveError::Version { file, found, expected: VERSION },
        BadHeader::Short => ArchiveError::Length { file, found, expected: HEADER as u64 },
        BadHeader::Checksum => ArchiveError::Checksum { file, section: "header" },
    }
}

/// Returns the name of a further file of an archive.
pub(crate) fn shard_path(archive: &Path, number: u32) -> PathBuf {
    let mut name: OsString = archive.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn shards(tables: &Tables<'_>, header: &Header, file: &Arc<MappedFile>) -> Result<Vec<Shard>, ArchiveError> {
    let section = Section::Shards;
    let files = u64::from(header.files);
    let rows = tables.all::<2>(section)?;
    tables.limit((section, 0), "number of shards", rows.len() as u64, files.max(1))?;
    tables.below((section, 0), "number of shards", files.max(1) - 1, rows.len() as u64)?;
    let mut first_page = 0;
    let mut shards = Vec::with_capacity(rows.len());
    for (number, [offset, len]) in (0_u32..).zip(rows) {
        let named = (section, u64::from(number));
        let file = if files == 0 {
            let end = header.length.saturating_sub(SLACK);
            tables.limit(named, "end of the data", offset.saturating_add(len), end)?;
            ShardFile::Main(Arc::clone(file))
        } else {
            let path = shard_path(tables.path(), number);
            ShardFile::Further { path, id: header.id, map: OnceLock::new() }
        };
        // Records are read in place: they lie at multiples of their alignment.
        tables.limit(named, "rest of the offset by 4096", offset % HEADER as u64, 0)?;
        tables.limit(named, "length", len, i64::MAX as u64 - header.length.max(offset))?;
        let pages = len.div_ceil(PAGE);
        let sums = tables.rows::<1>(Section::PageSums, first_page, pages, named)?.map(|[sum]| sum).collect();
        first_page += pages;
        shards.push(Shard::new(number, file, offset, len, sums));
    }
    Ok(shards)
}

fn verify_first_pages(archive: &Archive) -> Result<(), ArchiveError> {
    let Some(shard) = archive.shards().first() else { return Ok(()) };
    for page in 0..shard.pages().min(EAGER_PAGES) {
        let file = || archive.path().to_path_buf();
        shard.verify(page).map_err(|damage| ArchiveError::Data { file: file(), damage })?;
    }
    Ok(())
}

fn unreceived(tables: &Tables<'_>, header: &Header) -> Result<Option<Unreceived>, ArchiveError> {
    let [rank, peer, tag] = header.first_unreceived.map(u64::from);
    let named = (Section::Ranks, 0);
    for (field, number) in [("rank of an unreceived message", rank), ("peer of an unreceived message", peer)]
    {
        tables.limit(named, field, number, u64::from(header.ranks))?;
    }
    tables.limit(named, "tag of an unreceived message", tag, i32::MAX as u64)?;
    let (rank, peer, tag) = (Rank::new(rank as u32), Rank::new(peer as u32), Tag::new(tag as i32));
    Ok((header.unreceived > 0).then_some(Unreceived { messages: header.unreceived, rank, peer, tag }))
}

/// Side tables, and what they ask of the other tables of their rank.
type NeedySide = (Arc<Side>, Arc<SideNeeds>);

/// An archive whose ranks are being made of its tables.
struct Opening<'a> {
    tables: &'a Tables<'a>,
    archive: &'a Arc<Archive>,
    header: &'a Header,
    programs: Vec<Arc<Program>>,
    sides: Vec<NeedySide>,
    groups: Vec<Arc<Group>>,
    world: Arc<Group>,
    /// Number of ports of each rank, and whether it receives from any source.
    ports: Vec<(u32, bool)>,
    /// Columns by their first entry and number: ranks share them.
    columns: FxHashMap<(u64, u64), Arc<[Column]>>,
    limits: FxHashMap<TableSizes, Arc<Limits>>,
    /// What ranks share, by program, columns and limits.
    forms: FxHashMap<(u64, (u64, u64), TableSizes), Arc<Form>>,
    /// Entries of each section that ranks have taken: no entry is taken twice, so that memory is bounded by the file.
    taken: [u64; Section::ALL.len()],
}

/// An entry of the table of ranks.
struct Entry {
    program: u64,
    side: u64,
    blocks: u64,
    outgoing: (u64, u64),
    incoming: (u64, u64),
    ports: u64,
    slots: u64,
    pending: (u64, u64),
    columns: (u64, u64),
    communicators: (u64, u64),
    names_requests: u64,
}

impl Entry {
    fn new(words: [u64; 11]) -> Self {
        let [
            program,
            blocks,
            outgoing,
            channels,
            incoming,
            places,
            pending,
            counts,
            columns,
            communicators,
            flags,
        ] = words;
        let halves = |word: u64| (word & 0xffff_ffff, word >> 32);
        let (program, side) = halves(program);
        let (out, into) = halves(channels);
        let (ports, slots) = halves(places);
        let (pending_len, columns_len) = halves(counts);
        let (communicators_len, names_requests) = halves(flags);
        Self {
            program,
            side,
            blocks,
            outgoing: (outgoing, out),
            incoming: (incoming, into),
            ports,
            slots,
            pending: (pending, pending_len),
            columns: (columns, columns_len),
            communicators: (communicators, communicators_len),
            names_requests,
        }
    }
}

impl<'a> Opening<'a> {
    fn new(
        tables: &'a Tables<'a>,
        archive: &'a Arc<Archive>,
        header: &'a Header,
    ) -> Result<Self, ArchiveError> {
        let ranks =
            tables.limit((Section::Ranks, 0), "number of ranks", header.ranks.into(), MAX_RANKS.into())?;
        let mut opening = Self {
            tables,
            archive,
            header,
            programs: Vec::new(),
            sides: Vec::new(),
            groups: Vec::new(),
            world: Arc::new(Group::world(header.ranks)),
            ports: Vec::new(),
            columns: FxHashMap::default(),
            limits: FxHashMap::default(),
            forms: FxHashMap::default(),
            taken: Default::default(),
        };
        opening.programs = opening.read_programs()?;
        opening.sides = opening.read_sides()?;
        opening.groups = opening.read_groups()?;
        let rows = tables.rows::<11>(Section::Ranks, 0, ranks, (Section::Ranks, 0))?;
        opening.ports = rows.map(|row| opening.port_count(&Entry::new(row))).collect();
        Ok(opening)
    }

    /// Returns the ports of a rank, and whether it receives from any source; its entry is checked later.
    fn port_count(&self, entry: &Entry) -> (u32, bool) {
        let side = usize::try_from(entry.side).ok().and_then(|side| self.sides.get(side));
        (entry.ports as u32, side.is_some_and(|(_, needs)| needs.matches_by_time))
    }

    /// Counts entries of a section that belong to one owner alone.
    fn take(&mut self, section: Section, count: u64, named: (Section, u64)) -> Result<(), ArchiveError> {
        let taken = &mut self.taken[section as usize];
        *taken = taken.saturating_add(count);
        self.tables
            .limit(named, "number of entries of all ranks", *taken, self.tables.len(section))
            .map(|_| ())
    }

    fn read_programs(&self) -> Result<Vec<Arc<Program>>, ArchiveError> {
        let section = Section::Programs;
        let mut programs = Vec::new();
        for (entry, row) in (0..).zip(self.tables.all::<24>(section)?) {
            let [shard, offset, records, actions, columns, depth, counts @ ..] = row;
            let named = (section, entry);
            self.tables.below(named, "shard", shard, self.archive.shards.len() as u64)?;
            let len = self.archive.shards[shard as usize].len();
            self.tables.limit(named, "offset", offset, len)?;
            self.tables.limit(named, "rest of the offset by 16", offset % 16, 0)?;
            self.tables.limit(named, "number of records", records, (len - offset) / 16)?;
            self.tables.limit(named, "depth of loops", depth, MAX_DEPTH as u64)?;
            self.tables.limit(named, "number of columns", columns, records)?;
            let sum = counts[..ACTION_KINDS].iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
            let sum = sum.unwrap_or(u64::MAX);
            self.tables.limit(named, "number of actions", actions, sum)?;
            self.tables.limit(named, "sum of the actions by kind", sum, actions)?;
            let by_kind = std::array::from_fn(|kind| counts[kind]);
            let shard = shard as u32;
            let unrolled = OnceLock::new();
            let program = Program { shard, offset, records, actions, columns, by_kind, depth, unrolled };
            programs.push(Arc::new(program));
        }
        Ok(programs)
    }

    fn read_sides(&mut self) -> Result<Vec<NeedySide>, ArchiveError> {
        let section = Section::SideIndex;
        let mut sides = Vec::new();
        for (entry, [first, len]) in (0..).zip(self.tables.all::<2>(section)?) {
            self.take(Section::Sides, len, (section, entry))?;
            let words = self.tables.rows::<1>(Section::Sides, first, len, (section, entry))?;
            let words: Vec<u64> = words.map(|[word]| word).collect();
            let Some(side) = Side::from_words(&words, self.header.ranks) else {
                return Err(self.malformed((Section::Sides, entry)));
            };
            let needs = Arc::new(SideNeeds::of(&side));
            sides.push((Arc::new(side), needs));
        }
        Ok(sides)
    }

    fn malformed(&self, (section, entry): (Section, u64)) -> ArchiveError {
        let (file, section) = (self.tables.path().to_path_buf(), section.name());
        ArchiveError::Malformed { file, section, entry }
    }

    fn ranks(mut self) -> Result<Vec<RankTrace>, ArchiveError> {
        let mut ranks = Vec::with_capacity(self.ports.len());
        let mut actions = 0_u64;
        for (rank, row) in (0_u32..).zip(self.tables.rows::<11>(
            Section::Ranks,
            0,
            self.header.ranks.into(),
            (Section::Ranks, 0),
        )?) {
            let trace = self.rank(Rank::new(rank), &Entry::new(row))?;
            actions = actions.saturating_add(trace.len());
            ranks.push(trace);
        }
        let named = (Section::Ranks, u64::from(self.header.ranks));
        self.tables.limit(named, "number of all actions", actions, self.header.actions)?;
        self.tables.limit(named, "number of all actions in the header", self.header.actions, actions)?;
        Ok(ranks)
    }

    fn rank(&mut self, rank: Rank, entry: &Entry) -> Result<RankTrace, ArchiveError> {
        let (tables, named) = (self.tables, (Section::Ranks, u64::from(rank.get())));
        self.take(Section::Outgoing, entry.outgoing.1, named)?;
        self.take(Section::Incoming, entry.incoming.1, named)?;
        self.take(Section::Pending, entry.pending.1, named)?;
        tables.below(named, "program", entry.program, self.programs.len() as u64)?;
        tables.below(named, "side table", entry.side, self.sides.len() as u64)?;
        let program = Arc::clone(&self.programs[entry.program as usize]);
        let communicators = self.communicators(rank, named, entry)?;
        let (side, needs) = self.sides[entry.side as usize].clone();
        let matches_by_time = needs.matches_by_time;
        // Each slot has a record that first fills it, and each port a channel.
        let max_slots = program.records.min(u64::from(MAX_SLOTS));
        let slots = tables.limit(named, "number of slots", entry.slots, max_slots)? as u32;
        let ports = tables.limit(named, "number of ports", entry.ports, entry.incoming.1)? as u32;
        let columns = self.columns(named, entry)?;
        tables.limit(named, "number of columns of the program", program.columns, columns.len() as u64)?;
        let absent = columns.iter().try_fold(0_u64, |sum, column| sum.checked_add(column.absent));
        let absent = absent.unwrap_or(u64::MAX);
        let actions =
            program.actions - tables.limit(named, "gaps of all columns", absent, program.actions)?;
        let outgoing = self.outgoing(named, entry)?;
        let incoming = self.incoming(named, entry)?;
        for (field, needed, len) in [
            ("slot of a call", needs.slots, entry.slots),
            ("outgoing channel of a call", needs.outgoing, outgoing.len() as u64),
            ("incoming channel of a call", needs.incoming, incoming.len() as u64),
            ("communicator of a call", needs.communicators, communicators.len() as u64),
        ] {
            tables.limit(named, field, needed, len)?;
        }
        if !needs.fit(&communicators) {
            return Err(self.malformed(named));
        }
        let names_requests = tables.limit(named, "flags", entry.names_requests, 1)? == 1;
        let sizes = TableSizes {
            outgoing: outgoing.len(),
            incoming: incoming.len(),
            slots,
            collectives: side.collectives.len(),
            send_recvs: side.send_recvs.len(),
            locations: side.locations.len(),
            calls: side.calls.len(),
        };
        let pending_at_end = self.pending(named, entry)?;
        let limits = self.limits.entry(sizes).or_insert_with(|| Arc::new(Limits::new(&sizes)));
        let form = self.forms.entry((entry.program, entry.columns, sizes)).or_insert_with(|| {
            let (archive, limits) = (Arc::clone(self.archive), Arc::clone(limits));
            Arc::new(Form { archive, program, actions, columns, limits })
        });
        let body = Body::Archive(ArchivedRank {
            form: Arc::clone(form),
            rank,
            blocks: entry.blocks,
            first_channels: [entry.outgoing.0, entry.incoming.0],
            channels: [outgoing.len() as u32, incoming.len() as u32],
        });
        Ok(RankTrace {
            body,
            outgoing,
            incoming,
            ports,
            slots,
            pending_at_end,
            matches_by_time,
            names_requests,
            communicators: communicators.into(),
            side,
        })
    }

    fn columns(&mut self, named: (Section, u64), entry: &Entry) -> Result<Arc<[Column]>, ArchiveError> {
        if let Some(columns) = self.columns.get(&entry.columns) {
            return Ok(Arc::clone(columns));
        }
        self.take(Section::Columns, entry.columns.1, named)?;
        self.tables.limit(named, "number of columns", entry.columns.1, MAX_COLUMNS)?;
        let rows = self.tables.rows::<3>(Section::Columns, entry.columns.0, entry.columns.1, named)?;
        let column = |[head, word, absent]: [u64; 3]| {
            let len = head & ((1 << 56) - 1);
            let place = match self.tables.limit(named, "kind of a column", head >> 56, 1)? {
                0 => Place::Constant(self.tables.limit(named, "bits of an amount", word, MAX_AMOUNT_BITS)?),
                _ => Place::Blocks(word),
            };
            self.tables.limit(named, "gaps of a column", absent, len)?;
            Ok(Column { len, absent, place })
        };
        let columns = rows.map(column).collect::<Result<Arc<[Column]>, _>>()?;
        self.columns.insert(entry.columns, Arc::clone(&columns));
        Ok(columns)
    }

    fn outgoing(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Outgoing]>, ArchiveError> {
        let rows = self.tables.rows::<4>(Section::Outgoing, entry.outgoing.0, entry.outgoing.1, named)?;
        let channel = |[name, place, _, _]: [u64; 4]| {
            let (peer, tag) = self.peer_and_tag(named, name, i32::MAX as u64)?;
            let (ports, has_mailbox) = self.ports[peer.index()];
            let arrival = match place & 0xffff_ffff {
                1 if has_mailbox => Arrival::Mailbox,
                0 if !has_mailbox => Arrival::Nowhere,
                port @ 2.. if !has_mailbox => {
                    let port =
                        self.tables.below(named, "port of an outgoing channel", port - 2, ports.into())?;
                    Arrival::Port(PortId::new(port as u32))
                }
                _ => return Err(self.malformed(named)),
            };
            let communicator = self.communicator(named, place >> 32, entry)?;
            Ok(Outgoing::new(peer, Tag::new(tag as i32), communicator, arrival))
        };
        exact(rows, channel)
    }

    fn incoming(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Incoming]>, ArchiveError> {
        let rows = self.tables.rows::<3>(Section::Incoming, entry.incoming.0, entry.incoming.1, named)?;
        let channel = |[name, place, _]: [u64; 3]| {
            let (peer, tag) = self.peer_and_tag(named, name, i32::MAX as u64 + 1)?;
            let communicator = self.communicator(named, place >> 32, entry)?;
            let port = place & 0xffff_ffff;
            let port = self.tables.below(named, "port of an incoming channel", port, entry.ports)?;
            let tag = tag.checked_sub(1).map(|tag| Tag::new(tag as i32));
            Ok(Incoming { peer, tag, communicator, port: PortId::new(port as u32) })
        };
        exact(rows, channel)
    }

    fn peer_and_tag(
        &self,
        named: (Section, u64),
        word: u64,
        max_tag: u64,
    ) -> Result<(Rank, u64), ArchiveError> {
        let peer = self.tables.below(named, "peer", word & 0xffff_ffff, self.header.ranks.into())?;
        let tag = self.tables.limit(named, "tag", word >> 32, max_tag)?;
        Ok((Rank::new(peer as u32), tag))
    }

    fn pending(&self, named: (Section, u64), entry: &Entry) -> Result<Box<[Slot]>, ArchiveError> {
        let rows = self.tables.rows::<1>(Section::Pending, entry.pending.0, entry.pending.1, named)?;
        let slot = |[slot]: [u64; 1]| {
            let slot = self.tables.below(named, "slot of a pending request", slot, entry.slots)?;
            Ok(Slot::new(slot as u32))
        };
        rows.map(slot).collect()
    }
}

/// Collects without room for more: there are millions of ranks.
fn exact<T, U>(
    rows: impl ExactSizeIterator<Item = T>,
    make: impl Fn(T) -> Result<U, ArchiveError>,
) -> Result<Box<[U]>, ArchiveError> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(make(row)?);
    }
    Ok(all.into())
}
