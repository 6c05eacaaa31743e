//! Regions of the program.

use super::Recorder;

/// The name of what is in no region.
const OUTSIDE: &str = "outside";

/// The levels of `MPI_Pcontrol` that the standard gives a meaning of its own: off, on, and on with a flush.
const STANDARD: std::ops::RangeInclusive<i32> = -2..=2;

impl Recorder {
    /// Records that a region begins: what follows belongs to it.
    pub fn begin_region(&mut self, name: &str) {
        let name: String =
            name.chars().map(|letter| if letter.is_whitespace() { '_' } else { letter }).collect();
        self.regions.push(if name.is_empty() { "_".to_owned() } else { name });
        self.place();
    }

    /// Records that the region ends that was begun last; where there is none, nothing.
    pub fn end_region(&mut self) {
        if self.regions.pop().is_some() {
            self.place();
        }
    }

    /// Records `MPI_Pcontrol`: a level of 3 or more begins a region that is named by it, `level-3`; the same below zero ends it, with
    /// those inside. Other levels are the standard's.
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
            self.place();
        }
    }

    /// Writes in which region the program is.
    fn place(&mut self) {
        let path = if self.regions.is_empty() { OUTSIDE.to_owned() } else { self.regions.join("/") };
        self.begin("location");
        self.phrase.word("", &path);
        self.phrase.number(0);
        self.end();
    }
}
