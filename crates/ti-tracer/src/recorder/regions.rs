//! Recording of the regions of a program.

use super::Recorder;

/// Location outside of any region.
const OUTSIDE: &str = "outside";

/// Levels of `MPI_Pcontrol` to which the standard assigns a meaning: off, on, and on with a flush.
const STANDARD: std::ops::RangeInclusive<i32> = -2..=2;

impl Recorder {
    /// Records the begin of a region: the following actions belong to it.
    pub fn begin_region(&mut self, name: &str) {
        let name: String =
            name.chars().map(|letter| if letter.is_whitespace() { '_' } else { letter }).collect();
        self.regions.push(if name.is_empty() { "_".to_owned() } else { name });
        self.write_location();
    }

    /// Records the end of the innermost region; without one, nothing is recorded.
    pub fn end_region(&mut self) {
        if self.regions.pop().is_some() {
            self.write_location();
        }
    }

    /// Records `MPI_Pcontrol`: a level of 3 or more begins a region named after it, `level-3`; its negative ends that
    /// region, and those inside. Other levels are the standard's.
    pub fn region_level(&mut self, level: i32) {
        if STANDARD.contains(&level) {
            return;
        }
        let name = format!("level-{}", level.unsigned_abs());
        if level > 0 {
            return self.begin_region(&name);
        }
        if let Some(begun) = self.regions.iter().rposition(|region| *region == name) {
            self.regions.truncate(begun);
            self.write_location();
        }
    }

    /// Records the current location.
    fn write_location(&mut self) {
        let path = if self.regions.is_empty() { OUTSIDE.to_owned() } else { self.regions.join("/") };
        self.begin_call("location");
        self.phrase.word("", &path);
        self.phrase.number(0);
        self.write_call();
    }
}
