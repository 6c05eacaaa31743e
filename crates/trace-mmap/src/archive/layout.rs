//! File layout: the header and the sections of 64-bit words. `docs/archive-format.md` describes it byte by byte.

use xxhash_rust::xxh3::xxh3_64;

/// First bytes of an archive. As in PNG, a byte beyond ASCII and line ends reveal transfers as text.
pub(crate) const MAGIC: [u8; 8] = *b"\x89PDT\r\n\x1a\n";
/// First bytes of a shard file.
pub(crate) const SHARD_MAGIC: [u8; 8] = *b"\x89PDS\r\n\x1a\n";
/// Format version that is written.
pub(crate) const VERSION: u32 = 3;
/// Oldest format version that is read: it has no inserted computations.
pub(crate) const OLDEST_VERSION: u32 = 2;
/// Byte order mark, stored little-endian.
pub(crate) const BYTE_ORDER: u32 = 0x0a0b_0c0d;
/// Size of the header [B]; its last eight bytes are the checksum of the others.
pub(crate) const HEADER_BYTES: usize = 4096;
/// Offset of the provenance in the header [B].
const PROVENANCE_OFFSET: usize = HEADER_BYTES - 8 - 24;
/// Size of a page [B], the unit of data with one checksum.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;
/// Padding after the data of a shard [B], so that codes can be read eight bytes at a time.
pub(crate) const TAIL_PADDING: u64 = 8;
/// Largest number of columns of a rank.
pub(crate) const MAX_COLUMNS: u64 = 1 << 16;
/// Deepest nesting of loops.
pub(crate) const MAX_DEPTH: usize = 16;

/// The tables of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Shards,
    PageSums,
    Programs,
    Ranks,
    Outgoing,
    Incoming,
    Pending,
    Columns,
    Communicators,
    Groups,
    Runs,
    SideIndex,
    SideTables,
    /// Measured times; present only if there are any.
    Times,
}

impl Section {
    /// All sections, in the order of the header and of the file.
    pub(crate) const ALL: [Self; 14] = [
        Self::Shards,
        Self::PageSums,
        Self::Programs,
        Self::Ranks,
        Self::Outgoing,
        Self::Incoming,
        Self::Pending,
        Self::Columns,
        Self::Communicators,
        Self::Groups,
        Self::Runs,
        Self::SideIndex,
        Self::SideTables,
        Self::Times,
    ];

    /// Returns the number of words per entry.
    pub(crate) fn entry_words(self) -> usize {
        match self {
            Self::Shards | Self::Communicators | Self::Groups | Self::Runs | Self::SideIndex => 2,
            Self::PageSums | Self::Pending | Self::SideTables => 1,
            Self::Programs => 24,
            Self::Ranks => 11,
            Self::Outgoing => 4,
            Self::Incoming | Self::Columns | Self::Times => 3,
        }
    }

    /// Returns the name in error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Shards => "table of shards",
            Self::PageSums => "table of page checksums",
            Self::Programs => "table of programs",
            Self::Ranks => "table of ranks",
            Self::Outgoing => "table of outgoing channels",
            Self::Incoming => "table of incoming channels",
            Self::Pending => "table of pending requests",
            Self::Columns => "table of columns",
            Self::Communicators => "table of communicators",
            Self::Groups => "table of groups",
            Self::Runs => "table of runs of ranks",
            Self::SideIndex => "index of side tables",
            Self::SideTables => "side tables",
            Self::Times => "table of times",
        }
    }
}

/// Position, length [B] and checksum of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

/// Fields of the header after magic, version and byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Size of the file [B].
    pub(crate) length: u64,
    /// Number of ranks.
    pub(crate) ranks: u32,
    /// Number of shard files; 0 if the data are in this file.
    pub(crate) files: u32,
    /// Hash of the data, repeated in shard files.
    pub(crate) id: u64,
    /// Number of actions of all ranks.
    pub(crate) actions: u64,
    /// Number of messages that nobody receives.
    pub(crate) unreceived: u64,
    /// Rank, peer and tag of the first unreceived message.
    pub(crate) first_unreceived: [u32; 3],
    /// Extents of the sections in their order.
    pub(crate) sections: [Extent; Section::ALL.len()],
    /// Provenance of the trace, packed.
    pub(crate) provenance: [u64; 3],
}

/// Header of a shard file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardHeader {
    /// Size of the file [B].
    pub(crate) length: u64,
    /// Number of the file, from 0.
    pub(crate) number: u32,
    /// Same hash as in the header of the archive.
    pub(crate) id: u64,
}

/// Error in the header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Magic,
    ByteOrder(u32),
    Version(u32),
    Short,
    Checksum,
}

/// Writer of the words of a header.
struct HeaderWriter(Vec<u8>);

impl HeaderWriter {
    fn new(magic: [u8; 8]) -> Self {
        let mut words = Self(magic.to_vec());
        words.u32(VERSION).u32(BYTE_ORDER);
        words
    }

    fn u32(&mut self, word: u32) -> &mut Self {
        self.0.extend(word.to_le_bytes());
        self
    }

    fn u64(&mut self, word: u64) -> &mut Self {
        self.0.extend(word.to_le_bytes());
        self
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.resize(HEADER_BYTES - 8, 0);
        let sum = xxh3_64(&self.0);
        self.u64(sum);
        self.0
    }
}

/// Reader of the words of a header.
struct HeaderReader<'a>(&'a [u8]);

impl HeaderReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("a header holds all its fields");
        self.0 = rest;
        *first
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Checks magic, byte order, version and checksum of a header; returns a reader of its fields.
fn open_header(bytes: &[u8], magic: [u8; 8]) -> Result<HeaderReader<'_>, BadHeader> {
    if !bytes.starts_with(&magic) {
        return Err(BadHeader::Magic);
    }
    let header = bytes.get(..HEADER_BYTES).ok_or(BadHeader::Short)?;
    let mut reader = HeaderReader(&header[magic.len()..]);
    let (version, order) = (reader.u32(), reader.u32());
    if order != BYTE_ORDER {
        return Err(BadHeader::ByteOrder(order));
    }
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(BadHeader::Version(version));
    }
    let (fields, sum) = header.split_at(HEADER_BYTES - 8);
    if xxh3_64(fields).to_le_bytes() != *sum {
        return Err(BadHeader::Checksum);
    }
    Ok(reader)
}

impl Header {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut words = HeaderWriter::new(MAGIC);
        words.u64(self.length).u32(self.ranks).u32(self.files).u64(self.id).u64(self.actions);
        words.u64(self.unreceived);
        self.first_unreceived.iter().for_each(|word| {
            words.u32(*word);
        });
        words.u32(0);
        for section in &self.sections {
            words.u64(section.offset).u64(section.len).u64(section.checksum);
        }
        words.0.resize(PROVENANCE_OFFSET, 0);
        self.provenance.iter().for_each(|word| {
            words.u64(*word);
        });
        words.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, BadHeader> {
        let mut reader = open_header(bytes, MAGIC)?;
        let mut header = Self {
            length: reader.u64(),
            ranks: reader.u32(),
            files: reader.u32(),
            id: reader.u64(),
            actions: reader.u64(),
            unreceived: reader.u64(),
            first_unreceived: [reader.u32(), reader.u32(), reader.u32()],
            sections: Default::default(),
            provenance: Default::default(),
        };
        reader.u32();
        for section in &mut header.sections {
            *section = Extent { offset: reader.u64(), len: reader.u64(), checksum: reader.u64() };
        }
        let mut reader = HeaderReader(&bytes[PROVENANCE_OFFSET..HEADER_BYTES]);
        header.provenance = [reader.u64(), reader.u64(), reader.u64()];
        Ok(header)
    }
}

impl ShardHeader {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut words = HeaderWriter::new(SHARD_MAGIC);
        words.u64(self.length).u32(self.number).u32(0).u64(self.id);
        words.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, BadHeader> {
        let mut reader = open_header(bytes, SHARD_MAGIC)?;
        let (length, number) = (reader.u64(), reader.u32());
        reader.u32();
        Ok(Self { length, number, id: reader.u64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_and_every_changed_byte_is_found() {
        let mut header =
            Header { length: 1, ranks: 2, files: 3, id: 4, actions: 5, unreceived: 6, ..Header::default() };
        header.first_unreceived = [7, 8, 9];
        header.sections[3] = Extent { offset: 10, len: 11, checksum: 12 };
        header.provenance = [13, 14, 15];
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(Header::from_bytes(&bytes), Ok(header));
        for position in 0..HEADER_BYTES {
            let mut changed = bytes.clone();
            changed[position] ^= 0x40;
            assert!(Header::from_bytes(&changed).is_err(), "byte {position}");
        }
        assert_eq!(Header::from_bytes(&bytes[..100]), Err(BadHeader::Short));
        let shard = ShardHeader { length: 1, number: 2, id: 3 };
        assert_eq!(ShardHeader::from_bytes(&shard.to_bytes()), Ok(shard));
        assert_eq!(ShardHeader::from_bytes(&bytes), Err(BadHeader::Magic));
    }
}
