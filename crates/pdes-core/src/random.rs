//! Random numbers that are keyed by what they are for: the same on any number of threads and processes.

/// Increment of the state of SplitMix64, and a factor that separates keys.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the word with its bits mixed: the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014). It is one-to-one, and 0 stays 0.
#[inline]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator with seed 1234567, as published with its reference implementation.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let numbers =
            [1, 2, 3].map(|step: u64| mix(1_234_567_u64.wrapping_add(step.wrapping_mul(GOLDEN_GAMMA))));
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
