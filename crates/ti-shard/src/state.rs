//! State of a process: words at a fixed place of its shard, which it overwrites as it runs.

use crate::unit::UNIT;

/// Number of bytes of a name: those of the longest function of MPI, and more.
const NAME: usize = 32;

/// State of a process, between the first line of its shard and the records. Whatever ends the process, the last state is there.
///
/// | word | content |
/// |---|---|
/// | 0-3 | call in progress: the interface (`c_`, `f_` or `p_`) and the name of its function, filled up with zeros; zeros outside of calls |
/// | 4 | 1 if several threads have called MPI |
/// | 5 | time that passed between calls \[ns\] |
/// | 6 | computation between calls \[ns of processor time, or instructions\] |
/// | 7 | time that the process was ready to run and waited for a processor, in calls and between them \[ns\]; written at its end |
/// | 8-12 | calls that returned an error and are not recorded: their number, and the name of the first |
/// | 13-17 | calls on requests that no recorded call has made, likewise |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessState([u64; Self::WORDS]);

impl ProcessState {
    const WORDS: usize = 18;

    /// Number of bytes in a shard \[B\], whole units.
    pub const BYTES: usize = Self::WORDS * 8;

    /// First word of the call in progress.
    pub const CALL: usize = 0;
    /// Word that is 1 if several threads have called MPI.
    pub const THREADS: usize = 4;
    /// Word of the time between calls.
    pub const ELAPSED: usize = 5;
    /// Word of the computation between calls.
    pub const COMPUTED: usize = 6;
    /// Word of the time of waiting for a processor.
    pub const QUEUED: usize = 7;
    /// First word of the failed calls.
    pub const FAILED: usize = 8;
    /// First word of the calls on unknown requests.
    pub const UNKNOWN: usize = 13;

    /// Returns the words of a name.
    #[inline]
    pub fn name_words(name: &[u8]) -> [u64; NAME / 8] {
        let mut bytes = [0; NAME];
        let len = name.len().min(NAME);
        bytes[..len].copy_from_slice(&name[..len]);
        std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|byte| bytes[word * 8 + byte])))
    }

    /// Reads the state from its bytes.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self(std::array::from_fn(|word| {
            u64::from_le_bytes(std::array::from_fn(|byte| bytes[word * 8 + byte]))
        }))
    }

    /// Returns the bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        std::array::from_fn(|byte| self.0[byte / 8].to_le_bytes()[byte % 8])
    }

    /// Overwrites words, from the first on.
    pub fn set(&mut self, first: usize, words: &[u64]) {
        self.0[first..first + words.len()].copy_from_slice(words);
    }

    /// Returns the function that was in progress.
    pub fn call(&self) -> Option<String> {
        self.function(Self::CALL)
    }

    /// Returns whether several threads have called MPI.
    pub fn has_threads(&self) -> bool {
        self.0[Self::THREADS] != 0
    }

    /// Returns the time that passed between calls and the computation \[ns\]. Up to half of the time, what the process waited for a
    /// processor is left out: how much of it was between calls is not known.
    pub fn elapsed_and_computed(&self) -> (u64, u64) {
        let [elapsed, computed, queued] =
            [Self::ELAPSED, Self::COMPUTED, Self::QUEUED].map(|word| self.0[word]);
        (elapsed - queued.min(elapsed / 2), computed)
    }

    /// Returns the number of calls that returned an error and are not recorded, and the function of the first.
    pub fn failed(&self) -> Option<(u64, String)> {
        Some((self.0[Self::FAILED], self.function(Self::FAILED + 1)?))
    }

    /// Returns the number of calls on requests that no recorded call has made, and the function of the first.
    pub fn unknown_requests(&self) -> Option<(u64, String)> {
        Some((self.0[Self::UNKNOWN], self.function(Self::UNKNOWN + 1)?))
    }

    /// Returns a function as its standard spells it.
    fn function(&self, first: usize) -> Option<String> {
        let words = self.0[first..].iter().take(NAME / 8);
        let bytes: Vec<u8> =
            words.flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
        let name = str::from_utf8(&bytes).ok().filter(|name| name.is_ascii())?;
        match name.split_at_checked(2)? {
            ("p_", name) => Some(name.to_owned()),
            (_, name) => {
                let (first, rest) = name.split_at_checked(1)?;
                Some(format!("MPI_{}{rest}", first.to_ascii_uppercase()))
            }
        }
    }
}

// The state is between whole units.
const _: () = assert!(ProcessState::BYTES.is_multiple_of(UNIT));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_of_their_standards() {
        let mut state = ProcessState::default();
        assert_eq!((state.call(), state.failed(), state.unknown_requests()), (None, None, None));
        for (name, function) in [
            (&b"c_Neighbor_alltoallw_init"[..], "MPI_Neighbor_alltoallw_init"),
            (b"f_recv", "MPI_Recv"),
            (b"p_pread64", "pread64"),
        ] {
            state.set(ProcessState::CALL, &ProcessState::name_words(name));
            assert_eq!(state.call().as_deref(), Some(function));
        }
        state.set(ProcessState::FAILED, &[3]);
        state.set(ProcessState::FAILED + 1, &ProcessState::name_words(b"c_Send"));
        assert_eq!(state.failed(), Some((3, "MPI_Send".to_owned())));
        assert_eq!(ProcessState::from_bytes(&state.to_bytes()), state);
        // Any bytes of a file are read.
        assert_eq!(ProcessState([u64::MAX; 18]).call(), None);
    }
}
