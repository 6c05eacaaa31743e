//! Blocks of a column: encoding of up to 256 values by frame of reference or by dictionary, with bit-packed codes.

use std::collections::BTreeSet;

use crate::column::{ABSENT, codes};

/// Widest code [bit] that a read of eight bytes at any bit offset holds; wider ones take 64 bits, at byte offsets.
const MAX_PACKED_WIDTH: u8 = 56;

/// Largest number of amounts in a dictionary.
const MAX_DICTIONARY: usize = 64;

/// Value that is neither the bits of an amount nor [`ABSENT`].
pub(crate) const NO_VALUE: u64 = ABSENT - 1;

/// Bound (2^53) below which integers are exact as doubles.
const EXACT_INTEGERS_END: f64 = 9_007_199_254_740_992.0;

/// Meaning of the codes of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Differences of the bits of the amounts from the base. With a width of 0 all amounts are equal.
    #[default]
    Bits,
    /// Differences of the amounts, which are whole numbers, from the base.
    Integers,
    /// Indices into the dictionary, which precedes the codes; the base is its length.
    Dictionary,
}

/// An entry of the directory of a column: position and encoding of a block.
///
/// | bytes | holds |
/// |---|---|
/// | 0-7 | base |
/// | 8-13 | offset from the base of the rank's blocks [B] |
/// | 14 | bits per code, 0 to 56, or 64 |
/// | 15 | packing: 0 bits, 1 integers, 2 dictionary; plus 128 if code 0 stands for an absent value and the others are one higher |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) base: u64,
    pub(crate) offset: u64,
    pub(crate) width: u8,
    pub(crate) packing: Packing,
    /// True if code 0 stands for an absent value.
    pub(crate) has_absent: bool,
}

/// Offsets of the parts of a block in the data of its shard [B].
pub(crate) struct BlockExtent {
    pub(crate) dictionary: u64,
    pub(crate) codes: u64,
    pub(crate) end: u64,
}

impl Block {
    /// Decodes a directory entry; returns `None` if it is malformed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let base = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let word = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        let width = (word >> 48) as u8;
        let (packing, has_gaps) = match word >> 56 {
            0 => (Packing::Bits, false),
            1 => (Packing::Integers, false),
            2 if base <= MAX_DICTIONARY as u64 => (Packing::Dictionary, false),
            0x80 => (Packing::Bits, true),
            0x81 => (Packing::Integers, true),
            _ => return None,
        };
        let is_width = width <= MAX_PACKED_WIDTH || width == 64;
        is_width.then_some(Self {
            base,
            offset: word & ((1 << 48) - 1),
            width,
            packing,
            has_absent: has_gaps,
        })
    }

    /// Encodes the directory entry.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let packing = match self.packing {
            Packing::Bits => 0_u64,
            Packing::Integers => 1,
            Packing::Dictionary => 2,
        };
        let gaps = u64::from(self.has_absent) << 63;
        let word = self.offset | u64::from(self.width) << 48 | packing << 56 | gaps;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.base.to_le_bytes());
        bytes[8..].copy_from_slice(&word.to_le_bytes());
        bytes
    }

    /// Returns the position of a block of `len` values; `None` if it exceeds 64 bits.
    pub(crate) fn extent(&self, len: u64, base: u64) -> Option<BlockExtent> {
        let dictionary = base.checked_add(self.offset)?;
        let entries = if self.packing == Packing::Dictionary { self.base } else { 0 };
        let codes = dictionary.checked_add(8 * entries)?;
        let end = codes.checked_add((len * u64::from(self.width)).div_ceil(8))?;
        Some(BlockExtent { dictionary, codes, end })
    }

    /// Decodes the bits of values from number `first` of the block on; returns `None` if the bytes end before them. Eight
    /// bytes must be readable from the first byte of each code. An index beyond the dictionary yields [`NO_VALUE`].
    pub(crate) fn unpack(&self, dictionary: &[u8], packed: &[u8], first: u64, out: &mut [u64]) -> Option<()> {
        let base = match self.packing {
            Packing::Dictionary => 0,
            _ => self.base.wrapping_sub(u64::from(self.has_absent)),
        };
        codes::unpack(packed, first, self.width, base, out)?;
        match self.packing {
            Packing::Bits if self.has_absent && self.width <= MAX_PACKED_WIDTH => {
                out.iter_mut().for_each(|sum| *sum |= self.absent_mask(*sum));
            }
            Packing::Bits if self.has_absent => {
                out.iter_mut().filter(|sum| **sum == base).for_each(|sum| *sum = ABSENT)
            }
            Packing::Bits => {}
            Packing::Integers => self.integers_to_doubles(base, out),
            Packing::Dictionary => {
                let (entries, _) = dictionary.as_chunks();
                let entry = |code: u64| entries.get(code as usize).map(|entry| u64::from_le_bytes(*entry));
                out.iter_mut().for_each(|code| *code = entry(*code).unwrap_or(NO_VALUE));
            }
        }
        Some(())
    }

    /// Returns [`ABSENT`] (all bits) if a sum is that of code 0, which is below the base; else 0. This takes two arithmetic
    /// instructions; a comparison of 64 bits takes more, or a branch that is often mispredicted.
    #[inline]
    fn absent_mask(&self, sum: u64) -> u64 {
        (sum.wrapping_sub(self.base) as i64 >> 63) as u64
    }

    /// Converts whole numbers, the sums of codes and base, to the bits of doubles.
    fn integers_to_doubles(&self, base: u64, sums: &mut [u64]) {
        let gap = self.has_absent.then_some(base);
        let double = |sum: u64, bits: u64| if Some(sum) == gap { ABSENT } else { bits };
        // A number below 2^52 is put into the mantissa of 2^52, whose last bit counts one, instead of being converted.
        let unit = EXACT_INTEGERS_END / 2.0;
        let is_short = self.base < 1 << 51 && self.width <= 51;
        let short = |sum: u64| (f64::from_bits(sum | unit.to_bits()) - unit).to_bits();
        if is_short && gap.is_none() {
            sums.iter_mut().for_each(|sum| *sum = short(*sum));
        } else if is_short {
            sums.iter_mut().for_each(|sum| *sum = short(*sum) | self.absent_mask(*sum));
        } else {
            sums.iter_mut().for_each(|sum| *sum = double(*sum, (*sum as i64 as f64).to_bits()));
        }
    }

    /// Encodes the bits of values in the shortest encoding and appends the block to `out`.
    pub(crate) fn pack(values: &[u64], out: &mut Vec<u8>) -> Self {
        if values.iter().all(|bits| *bits == values[0]) {
            return Self { base: values[0], ..Self::default() };
        }
        let has_gaps = values.contains(&ABSENT);
        let present = || values.iter().copied().filter(|bits| *bits != ABSENT);
        let are_whole = present().all(is_whole);
        let number = |bits: u64| if are_whole { f64::from_bits(bits) as u64 } else { bits };
        let frame = FrameOfReference::of(present().map(number), has_gaps);
        let dictionary: BTreeSet<u64> = values.iter().copied().collect();
        let code = code_width(dictionary.len());
        let framed = values.len() * usize::from(frame.width);
        if dictionary.len() <= MAX_DICTIONARY
            && 64 * dictionary.len() + values.len() * usize::from(code) < framed
        {
            return pack_dictionary(values, &dictionary.into_iter().collect::<Vec<_>>(), code, out);
        }
        let code = |bits: &u64| match *bits {
            ABSENT => 0,
            bits => number(bits) - frame.base + u64::from(has_gaps),
        };
        append_codes(values.iter().map(code), frame.width, out);
        let packing = if are_whole { Packing::Integers } else { Packing::Bits };
        Self { base: frame.base, offset: 0, width: frame.width, packing, has_absent: has_gaps }
    }
}

/// Frame of reference: the smallest number, and the width of the largest difference from it [bit].
#[derive(Clone, Copy)]
struct FrameOfReference {
    base: u64,
    width: u8,
}

impl FrameOfReference {
    fn of(numbers: impl Iterator<Item = u64>, has_gaps: bool) -> Self {
        let (base, top) =
            numbers.fold((u64::MAX, 0), |(low, high), number| (low.min(number), high.max(number)));
        // The bits of amounts are below 2^63, so that this sum cannot overflow.
        let codes = top.saturating_sub(base) + u64::from(has_gaps);
        Self { base, width: storable_width(bit_length(codes)) }
    }
}

/// Returns whether bits are those of a whole number below 2^53, without minus zero.
fn is_whole(bits: u64) -> bool {
    let value = f64::from_bits(bits);
    value.fract() == 0.0 && (0.0..EXACT_INTEGERS_END).contains(&value) && value.is_sign_positive()
}

fn code_width(entries: usize) -> u8 {
    bit_length(entries.saturating_sub(1) as u64)
}

fn bit_length(number: u64) -> u8 {
    (64 - number.leading_zeros()) as u8
}

fn storable_width(width: u8) -> u8 {
    if width <= MAX_PACKED_WIDTH { width } else { 64 }
}

fn pack_dictionary(values: &[u64], dictionary: &[u64], width: u8, out: &mut Vec<u8>) -> Block {
    out.extend(dictionary.iter().flat_map(|bits| bits.to_le_bytes()));
    // Each amount is in the dictionary, so that the search always succeeds.
    let code = |value: &u64| dictionary.partition_point(|bits| bits < value) as u64;
    append_codes(values.iter().map(code), width, out);
    Block { base: dictionary.len() as u64, offset: 0, width, packing: Packing::Dictionary, has_absent: false }
}

/// Appends codes of `width` bits each, the lowest bits first.
fn append_codes(codes: impl Iterator<Item = u64>, width: u8, out: &mut Vec<u8>) {
    let (mut pending, mut bits) = (0_u128, 0);
    for code in codes {
        pending |= u128::from(code) << bits;
        bits += u32::from(width);
        while bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(pending as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpack(block: Block, len: usize, bytes: &[u8]) -> Vec<u64> {
        let padded = [bytes, &[0xff; 8]].concat();
        let place = block.extent(len as u64, 0).expect("a short block");
        assert_eq!(place.end, bytes.len() as u64);
        let (dictionary, codes) = padded.split_at(place.codes as usize);
        let mut values = vec![0; len];
        // In two parts, as a cursor does.
        let (first, rest) = values.split_at_mut(len / 3);
        block.unpack(dictionary, codes, 0, first).expect("enough bytes");
        block.unpack(dictionary, codes, len as u64 / 3, rest).expect("enough bytes");
        values
    }

    fn check(values: &[f64]) -> (Block, usize) {
        check_bits(&values.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    }

    fn check_bits(bits: &[u64]) -> (Block, usize) {
        let mut bytes = Vec::new();
        let block = Block::pack(bits, &mut bytes);
        assert_eq!(unpack(block, bits.len(), &bytes), bits);
        assert_eq!(Block::from_bytes(&block.to_bytes()), Some(block));
        (block, bytes.len())
    }

    #[test]
    fn each_block_takes_the_shortest_packing() {
        let (constant, bytes) = check(&[0.1; 256]);
        assert_eq!((constant.width, constant.packing, bytes), (0, Packing::Bits, 0));
        // 1000 to 1255 differ by 8 bits.
        let ramp: Vec<f64> = (1000..1256).map(f64::from).collect();
        let (block, bytes) = check(&ramp);
        assert_eq!((block.width, block.packing, bytes), (8, Packing::Integers, 256));
        // Two amounts far apart: 16 bytes of dictionary and one bit each.
        let two: Vec<f64> = (0..256).map(|index| if index % 3 == 0 { 1.5 } else { 1e300 }).collect();
        let (block, bytes) = check(&two);
        assert_eq!((block.width, block.packing, bytes), (1, Packing::Dictionary, 16 + 32));
        // Amounts of one binary order share the upper 12 bits.
        let fractions: Vec<f64> = (0..256).map(|index| 1.0 + f64::from(index) / 7001.0).collect();
        let (block, _) = check(&fractions);
        assert_eq!((block.width <= 52, block.packing), (true, Packing::Bits));
        assert_eq!(check(&[0.0, f64::MAX, 1e-300, 2.5]).0.width, 64);
        // Half of the values are absent: codes are 0 for those, else 1 to 255, and take 8 bits.
        let gaps: Vec<u64> = (0..256)
            .map(|index| if index % 2 == 0 { ABSENT } else { f64::from(1000 + index).to_bits() })
            .collect();
        let (block, bytes) = check_bits(&gaps);
        assert_eq!((block.packing, block.has_absent, bytes), (Packing::Integers, true, 256));
        let (block, bytes) = check_bits(&[ABSENT; 256]);
        assert_eq!((block.base, block.width, bytes), (ABSENT, 0, 0));
    }

    proptest! {
        #[test]
        fn amounts_are_kept_to_the_bit(
            values in prop::collection::vec(prop_oneof![
                (0_u64..u64::MAX >> 1).prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
                (0_u64..1 << 53).prop_map(|whole| whole as f64),
                (0_u64..9).prop_map(|whole| whole as f64 * 1e9),
            ], 1..257),
            gaps in prop::collection::vec(any::<bool>(), 257),
        ) {
            check(&values);
            let with_gaps = |(value, is_gap): (&f64, &bool)| if *is_gap { ABSENT } else { value.to_bits() };
            check_bits(&values.iter().zip(&gaps).map(with_gaps).collect::<Vec<_>>());
        }
    }
}
