//! File layout: the header and the sections. `docs/archive-format.md` describes it byte by byte.

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

/// First bytes of an archive. As in PNG, a byte beyond ASCII and line ends reveal transfers as text.
pub const MAGIC: [u8; 8] = *b"\x89PDT\r\n\x1a\n";
/// First bytes of a shard file.
pub(crate) const SHARD_MAGIC: [u8; 8] = *b"\x89PDS\r\n\x1a\n";
/// The format version.
pub(crate) const VERSION: u32 = 8;
/// Byte order mark, stored little-endian.
pub(crate) const BYTE_ORDER: u32 = 0x0a0b_0c0d;
/// Size of the header [B]; its last eight bytes are the checksum of the others.
pub(crate) const HEADER_BYTES: usize = 4096;
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
    Overview,
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
    Times,
}

impl Section {
    /// All sections, in the order of the header and of the file.
    pub(crate) const ALL: [Self; 15] = [
        Self::Overview,
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

    /// Returns the name in error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

/// Header of the main file, or of a shard file, which has no sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 8],
    version: u32,
    byte_order: u32,
    /// Size of the file [B].
    pub(crate) length: u64,
    /// Number of shard files; 0 if the data are in the main file. In a shard file: its number, from 0.
    pub(crate) files: u32,
    reserved: u32,
    /// Hash of the sections, repeated in shard files.
    pub(crate) id: u64,
    /// Extents of the sections in their order.
    pub(crate) sections: [Extent; Section::ALL.len()],
    unused: [u8; HEADER_BYTES - 48 - size_of::<[Extent; Section::ALL.len()]>()],
    /// Checksum of all other bytes.
    checksum: u64,
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

impl Header {
    /// Creates the header of a file of `length` bytes.
    pub(crate) fn new(magic: [u8; 8], length: u64, files: u32, id: u64) -> Self {
        Self { magic, version: VERSION, byte_order: BYTE_ORDER, length, files, id, ..Self::zeroed() }
    }

    /// Returns the header with its checksum.
    pub(crate) fn sealed(self) -> Self {
        Self { checksum: self.sum(), ..self }
    }

    fn sum(&self) -> u64 {
        xxh3_64(&bytemuck::bytes_of(self)[..HEADER_BYTES - 8])
    }

    /// Reads a header and checks magic, byte order, version and checksum.
    pub(crate) fn from_bytes(bytes: &[u8], magic: [u8; 8]) -> Result<Self, BadHeader> {
        if !bytes.starts_with(&magic) {
            return Err(BadHeader::Magic);
        }
        let header: Self = bytemuck::pod_read_unaligned(bytes.get(..HEADER_BYTES).ok_or(BadHeader::Short)?);
        if header.byte_order != BYTE_ORDER {
            return Err(BadHeader::ByteOrder(header.byte_order));
        }
        if header.version != VERSION {
            return Err(BadHeader::Version(header.version));
        }
        if header.sum() == header.checksum { Ok(header) } else { Err(BadHeader::Checksum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_and_every_changed_byte_is_found() {
        let mut header = Header::new(MAGIC, 1, 3, 4);
        header.sections[3] = Extent { offset: 10, len: 11, checksum: 12 };
        let header = header.sealed();
        let bytes = bytemuck::bytes_of(&header);
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(Header::from_bytes(bytes, MAGIC), Ok(header));
        for position in 0..HEADER_BYTES {
            let mut changed = bytes.to_vec();
            changed[position] ^= 0x40;
            assert!(Header::from_bytes(&changed, MAGIC).is_err(), "byte {position}");
        }
        assert_eq!(Header::from_bytes(&bytes[..100], MAGIC), Err(BadHeader::Short));
        assert_eq!(Header::from_bytes(bytes, SHARD_MAGIC), Err(BadHeader::Magic));
    }
}
