//! Communication matrix, for the report.

use std::fmt::Write as _;

use mpi_model::CommunicationMatrix;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::column::Column;
use super::section::{CsvTable, Section};

/// Largest number of pairs in the printed table.
const MAX_PRINTED: usize = 10;

/// Messages between ranks, or groups of neighbouring ranks, those of collective operations included: a sparse matrix, with one
/// entry of each column for each pair that has messages, in ascending order of senders and then of receivers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Communication {
    /// Number of ranks of a group: 1 if senders and receivers are ranks. Group `i` begins with rank `i * group_size`.
    pub group_size: u32,
    /// Number of groups: rows and columns of the matrix.
    pub groups: u32,
    /// Sending group.
    pub from: Column,
    /// Receiving group.
    pub to: Column,
    /// Payload \[B\].
    pub bytes: Column,
    /// Number of messages.
    pub messages: Column,
    /// Time in transfer \[ps\], summed over messages: from the send, or with the rendezvous protocol from when both sides are ready,
    /// to the arrival of the last byte.
    pub transfer_ps: Column,
}

impl Communication {
    fn of(matrix: &CommunicationMatrix, ranks: u32) -> Self {
        let cells = || matrix.cells.iter();
        Self {
            group_size: matrix.group_size,
            groups: ranks.div_ceil(matrix.group_size),
            from: cells().map(|(pair, _)| pair.0.into()).collect(),
            to: cells().map(|(pair, _)| pair.1.into()).collect(),
            bytes: cells().map(|(_, traffic)| traffic.bytes).collect(),
            messages: cells().map(|(_, traffic)| traffic.messages).collect(),
            // A sum of times above 213 days is not distinguished.
            transfer_ps: cells()
                .map(|(_, traffic)| traffic.transfer_ps.try_into().unwrap_or(u64::MAX))
                .collect(),
        }
    }

    fn columns(&self) -> [(&'static str, &Column); 5] {
        [
            ("from", &self.from),
            ("to", &self.to),
            ("bytes", &self.bytes),
            ("messages", &self.messages),
            ("transfer_ps", &self.transfer_ps),
        ]
    }

    /// Returns the name of a group: its rank, or its ranks.
    fn name(&self, group: u64) -> String {
        let (first, size) = (group * u64::from(self.group_size), u64::from(self.group_size));
        if size == 1 { first.to_string() } else { format!("{first}-{}", first + size - 1) }
    }
}

impl Section for Communication {
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        outcome.program().findings.matrix.as_ref().map(|matrix| Self::of(matrix, simulation.trace().ranks()))
    }

    /// Writes the pairs with most bytes.
    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        let mut order: Vec<usize> = (0..self.bytes.len()).collect();
        order.sort_by_key(|&pair| std::cmp::Reverse(self.bytes[pair]));
        order.truncate(MAX_PRINTED);
        writeln!(
            text,
            "\n{:<16} {:<16} {:>12} {:>18} {:>20}",
            "from", "to", "messages", "bytes", "in transfer"
        )?;
        for pair in order {
            writeln!(
                text,
                "{:<16} {:<16} {:>12} {:>18} {:>18.9} s",
                self.name(self.from[pair]),
                self.name(self.to[pair]),
                self.messages[pair],
                self.bytes[pair],
                self.transfer_ps[pair] as f64 / 1e12
            )?;
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let mut table = CsvTable::of_columns("matrix", &self.columns());
        if self.group_size > 1 {
            table.header[0] = "from_group".to_owned();
            table.header[1] = "to_group".to_owned();
        }
        vec![table]
    }
}
