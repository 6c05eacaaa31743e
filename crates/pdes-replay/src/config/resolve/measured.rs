//! Measured times of collective operations, as nccl-tests print them (`all_reduce_perf` and others, <https://github.com/NVIDIA/nccl-tests>).

use std::path::Path;

use mpi_model::collective::{MeasuredTimes, Operation};
use pdes_core::SimDuration;

/// Operations that nccl-tests measure, with the names of the programs.
pub(super) const PROGRAMS: [(Operation, &str); 8] = [
    (Operation::Bcast, "broadcast_perf"),
    (Operation::Reduce, "reduce_perf"),
    (Operation::Allreduce, "all_reduce_perf"),
    (Operation::Gather, "gather_perf"),
    (Operation::Scatter, "scatter_perf"),
    (Operation::Allgather, "all_gather_perf"),
    (Operation::Alltoall, "alltoall_perf"),
    (Operation::ReduceScatter, "reduce_scatter_perf"),
];

/// Column of the time out of place in a row: after size, count, type, redop and root.
const TIME: usize = 5;

/// Adds the measurements of a file.
///
/// # Errors
/// Returns what is wrong with it, and where.
pub(super) fn add(times: &mut MeasuredTimes, operation: Operation, file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(times, operation, &text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Adds the rows of a table; lines that begin with neither a number nor `#` are output of other programs.
fn parse(times: &mut MeasuredTimes, operation: Operation, text: &str) -> Result<(), String> {
    check_program(operation, text)?;
    let is_device = |line: &&str| line.trim_start_matches('#').trim_start().starts_with("Rank ");
    let ranks = text.lines().filter(|line| line.starts_with('#')).filter(is_device).count() as u32;
    if ranks == 0 {
        return Err("found no line \"#  Rank ...\", expected one of each device: give the whole output of a program of nccl-tests".to_owned());
    }
    // The size is that of all blocks.
    let is_of_blocks = matches!(
        operation,
        Operation::Gather | Operation::Scatter | Operation::Allgather | Operation::Alltoall
    );
    let mut rows = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(size) = fields.first().and_then(|size| size.parse::<u64>().ok()) else { continue };
        let micros = fields.get(TIME).and_then(|time| time.parse::<f64>().ok());
        let time = micros.and_then(|micros| SimDuration::try_from_secs_f64(micros * 1e-6));
        let Some(time) = time else {
            let found = fields.get(TIME).unwrap_or(&"the end of the line");
            return Err(format!(
                "line {number}: found {found}, expected the time out of place [us] in column {}",
                TIME + 1
            ));
        };
        let bytes = if is_of_blocks { size / u64::from(ranks) } else { size };
        if !times.add(ranks, bytes, time) {
            return Err(format!(
                "line {number}: found {size} B on {ranks} ranks a second time, expected one measurement of each size"
            ));
        }
        rows += 1;
    }
    if rows == 0 { Err("found no row of measurements".to_owned()) } else { Ok(()) }
}

/// Checks that a file which names its program is of this operation.
fn check_program(operation: Operation, text: &str) -> Result<(), String> {
    let found = text.lines().find_map(|line| line.strip_prefix("# Collective test starting: "));
    let found = found.and_then(|path| path.trim().rsplit('/').next());
    let expected = PROGRAMS.iter().find(|(known, _)| *known == operation).map(|(_, program)| *program);
    match (found, expected) {
        (Some(found), Some(expected)) if found != expected => {
            Err(format!("found the output of {found}, expected that of {expected}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# nccl-tests version 2.17.4 nccl-headers=22706 nccl-library=22706
# Collective test starting: all_gather_perf
# nThread 1 nGpus 2 minBytes 64 maxBytes 256 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 123456 on     node00 device  0 [0000:07:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid 123456 on     node00 device  1 [0000:0f:00] NVIDIA A100-SXM4-80GB
node00:123456:123456 [0] NCCL INFO Bootstrap : Using ib0
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
          64             8     float    none      -1    10.50    0.01    0.00      0     9.51    0.01    0.00      0
         256            32     float    none      -1    12.00    0.02    0.01      0    11.20    0.02    0.01    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0051
";

    fn read(operation: Operation, text: &str) -> Result<MeasuredTimes, String> {
        let mut times = MeasuredTimes::default();
        parse(&mut times, operation, text).map(|()| times)
    }

    #[test]
    fn rows_are_times_out_of_place_by_block() {
        let times = read(Operation::Allgather, TEXT).unwrap();
        let time = |bytes| times.time(Operation::Allgather, 2, bytes).unwrap().as_picos();
        assert_eq!([32, 80, 128].map(time), [10_500_000, 11_250_000, 12_000_000]);
        // Older versions do not tell their name.
        let nameless = TEXT.replace("# Collective test starting: all_gather_perf\n", "");
        let times = read(Operation::Allreduce, &nameless).unwrap();
        assert_eq!(times.time(Operation::Allreduce, 2, 256).unwrap().as_picos(), 12_000_000);
    }

    #[test]
    fn other_files_are_refused_by_name_and_line() {
        let cases = [
            (TEXT.replace("#  Rank", "#  Device"), "found no line \"#  Rank"),
            (TEXT.replace("12.00", "N/A"), "line 14: found N/A, expected the time"),
            (TEXT.replace("         256 ", "          64 "), "line 14: found 64 B on 2 ranks a second time"),
            (
                TEXT.replace("all_gather_perf", "reduce_perf"),
                "found the output of reduce_perf, expected that of all_gather_perf",
            ),
            ("#  Rank 0\n".to_owned(), "found no row"),
        ];
        for (text, expected) in cases {
            let error = read(Operation::Allgather, &text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
