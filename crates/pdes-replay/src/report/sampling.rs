//! Sampled blocks of a program that ran online, for the report.

use std::fmt::{self, Write as _};

use online::SampledBlock;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::section::{CsvTable, Section};

/// Blocks that were skipped once their time was known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Blocks, in the order of their places.
    pub blocks: Vec<SampledBlock>,
}

impl Sampling {
    /// Returns the section of a program, if it has sampled blocks.
    pub fn of_blocks(blocks: Vec<SampledBlock>) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self { blocks })
    }

    /// Returns the warning that the program was not executed as a whole.
    pub fn warning(&self) -> Option<String> {
        let skipped = self.blocks.iter().filter(|block| block.skipped > 0);
        let text = |block: &SampledBlock| {
            let SampledBlock { place, executed, skipped, .. } = block;
            format!("{place} (executed {executed} times, skipped {skipped} times)")
        };
        let texts: Vec<String> = skipped.map(text).collect();
        let all = texts.join(", ");
        (!texts.is_empty()).then(|| {
            format!(
                "the program's own results are not those of a real run, as sampled blocks were skipped: {all}"
            )
        })
    }
}

impl Section for Sampling {
    /// Only who has started a program knows its blocks.
    fn new(_: &Simulation, _: &Outcome) -> Option<Self> {
        None
    }

    fn write_tables(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "\nsampled blocks: executed, skipped, mean")?;
        for SampledBlock { place, executed, skipped, mean_work, .. } in &self.blocks {
            writeln!(text, "  {place}: {executed}, {skipped}, {mean_work:.3e}")?;
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let header =
            ["place", "of_all_ranks", "executed", "skipped", "mean_work"].map(str::to_owned).to_vec();
        let row = |block: &SampledBlock| {
            let SampledBlock { place, of_all_ranks, executed, skipped, mean_work } = block;
            vec![
                place.clone(),
                of_all_ranks.to_string(),
                executed.to_string(),
                skipped.to_string(),
                mean_work.to_string(),
            ]
        };
        vec![CsvTable { name: "sampled_blocks", header, rows: self.blocks.iter().map(row).collect() }]
    }
}
