//! Bit-packed codes of equal width, without gaps.

/// Number of codes that are unpacked together. They take whole bytes, so that each group starts at a byte.
pub(super) const GROUP: usize = 8;

/// Unpacks codes of `width` bits (at most 56, or 64) from number `first` on and adds `base` to each, modulo 2^64; returns `None`
/// if the bytes end before them. Eight bytes must be readable from the first byte of each code.
pub(crate) fn unpack(bytes: &[u8], first: u64, width: u8, base: u64, out: &mut [u64]) -> Option<()> {
    let bit = first.checked_mul(u64::from(width))?;
    let (groups, rest) = if bit % 8 == 0 { out.as_chunks_mut::<GROUP>() } else { (&mut [][..], out) };
    let packed = bytes.get(usize::try_from(bit / 8).ok()?..)?;
    by_width(width)(packed, base, groups)?;
    let grouped = (groups.len() * GROUP * usize::from(width)) as u64;
    unpack_each(bytes, bit + grouped, width, base, rest)
}

/// Unpacks codes from any bit on.
fn unpack_each(bytes: &[u8], first: u64, width: u8, base: u64, out: &mut [u64]) -> Option<()> {
    let (mut bit, width, mask) = (usize::try_from(first).ok()?, usize::from(width), mask(width));
    for code in out {
        let word = u64::from_le_bytes(*bytes.get(bit / 8..)?.first_chunk()?);
        *code = base.wrapping_add(word >> (bit % 8) & mask);
        bit += width;
    }
    Some(())
}

/// Unpacks groups of codes. The width is a constant, so that all offsets and shifts are.
fn unpack_groups<const WIDTH: usize>(bytes: &[u8], base: u64, out: &mut [[u64; GROUP]]) -> Option<()> {
    for (number, codes) in out.iter_mut().enumerate() {
        let group = bytes.get(number * WIDTH..)?.get(..(GROUP - 1) * WIDTH / 8 + 8)?;
        for (index, code) in codes.iter_mut().enumerate() {
            let bit = index * WIDTH;
            let word = u64::from_le_bytes(*group.get(bit / 8..)?.first_chunk()?);
            *code = base.wrapping_add(word >> (bit % 8) & mask(WIDTH as u8));
        }
    }
    Some(())
}

/// Returns the lowest `width` bits.
#[inline]
fn mask(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

type Unpack = fn(&[u8], u64, &mut [[u64; GROUP]]) -> Option<()>;

/// Returns the routine for codes of this width.
fn by_width(width: u8) -> Unpack {
    macro_rules! table {
        ($($width:literal)*) => { [$(unpack_groups::<$width>),*] };
    }
    const TABLE: [Unpack; 57] = table! {
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
        29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56
    };
    TABLE.get(usize::from(width)).copied().unwrap_or(unpack_groups::<64>)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads sixteen hexadecimal digits as codes of 4, 12 and 64 bits; lower digits come first.
    #[test]
    fn codes_are_found_at_their_bits() {
        let bytes: Vec<u8> =
            [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe].into_iter().chain([0xff; 8]).collect();
        let read = |first, width, len| {
            let mut out = vec![0; len];
            unpack(&bytes, first, width, 0, &mut out).map(|()| out)
        };
        assert_eq!(read(0, 4, 16), Some((0..16).collect()));
        assert_eq!(read(3, 4, 13), Some((3..16).collect()));
        assert_eq!(read(1, 12, 4), Some(vec![0x543, 0x876, 0xba9, 0xedc]));
        assert_eq!(read(0, 64, 1), Some(vec![0xfedc_ba98_7654_3210]));
        assert_eq!(read(0, 64, 3), None);
        assert_eq!(read(1 << 60, 64, 1), None);
    }

    #[test]
    fn all_widths_agree_with_reading_each_code_by_itself() {
        let bytes: Vec<u8> =
            (0..600_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for width in (0..=56).chain([64]) {
            let (mut all, mut each) = ([0; 43], [0; 43]);
            unpack(&bytes, 8, width, 7, &mut all).expect("enough bytes");
            unpack_each(&bytes, 8 * u64::from(width), width, 7, &mut each).expect("enough bytes");
            assert_eq!(all, each, "width {width}");
        }
    }
}
