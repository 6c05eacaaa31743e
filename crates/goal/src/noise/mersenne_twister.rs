//! The random numbers of LogGOPSim, which are those of C++'s `std::mt19937`.

/// Words of the state.
const WORDS: usize = 624;

/// Mersenne Twister of period 2^19937 - 1 with words of 32 bits (Matsumoto and Nishimura, "Mersenne Twister: A 623-Dimensionally
/// Equidistributed Uniform Pseudo-Random Number Generator", ACM TOMACS 8(1), 1998).
pub(super) struct MersenneTwister {
    state: [u32; WORDS],
    next: usize,
}

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for word in 1..WORDS {
            let before = state[word - 1];
            state[word] = (before ^ (before >> 30)).wrapping_mul(1_812_433_253).wrapping_add(word as u32);
        }
        Self { state, next: WORDS }
    }

    pub(super) fn next(&mut self) -> u32 {
        if self.next == WORDS {
            for word in 0..WORDS {
                let mixed = self.state[word] & 0x8000_0000 | self.state[(word + 1) % WORDS] & 0x7fff_ffff;
                let twist = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[word] = self.state[(word + 397) % WORDS] ^ (mixed >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut number = self.state[self.next];
        self.next += 1;
        number ^= number >> 11;
        number ^= number << 7 & 0x9d2c_5680;
        number ^= number << 15 & 0xefc6_0000;
        number ^ number >> 18
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard() {
        // C++ (rand.predef): the 10000th number of a default-constructed std::mt19937.
        let mut random = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| random.next()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
