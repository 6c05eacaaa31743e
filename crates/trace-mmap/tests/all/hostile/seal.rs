//! Forging checksums.

use xxhash_rust::xxh3::xxh3_64;

/// Makes all checksums right again, by the description of the format.
pub(crate) fn seal(bytes: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
    let section = |bytes: &[u8], number: usize| {
        let at = 40 + 24 * number;
        let (start, len) = (word(bytes, at) as usize, word(bytes, at + 8) as usize);
        bytes.len().checked_sub(len).filter(|limit| start <= *limit).map(|_| (at, start..start + len))
    };
    let (Some((_, shards)), Some((_, pages))) = (section(bytes, 1), section(bytes, 2)) else { return };
    // Rows come first, and then 16 bytes with their place and number.
    if shards.len() >= 32 {
        let (start, len) = (word(bytes, shards.start) as usize, word(bytes, shards.start + 8) as usize);
        let data = bytes.get(start..start.saturating_add(len)).unwrap_or_default();
        let sums: Vec<u8> = data.chunks(64 << 10).flat_map(|page| xxh3_64(page).to_le_bytes()).collect();
        let len = sums.len().min(pages.len().saturating_sub(16));
        bytes[pages][..len].copy_from_slice(&sums[..len]);
    }
    let sections = (0..15).filter_map(|number| section(bytes, number));
    for (at, range) in sections.collect::<Vec<_>>() {
        let sum = xxh3_64(&bytes[range]);
        bytes[at + 16..at + 24].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = xxh3_64(&bytes[..4088]);
    bytes[4088..4096].copy_from_slice(&sum.to_le_bytes());
}
