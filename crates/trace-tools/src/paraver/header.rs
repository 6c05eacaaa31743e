//! The first line of a trace.

use trace_mmap::MAX_RANKS;

use super::fields::{excerpt, parse};
use super::{MAGIC, ParaverError};

/// The first line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number of tasks, at most [`MAX_RANKS`].
    pub(super) tasks: u32,
    /// Unit of times \[ns\].
    pub(super) unit: u64,
    /// End of the trace \[ns\].
    pub(super) end: u64,
}

impl Header {
    /// Reads the first line: `#Paraver (date):duration_ns:nodes:applications:tasks(threads:node,...),communicators`.
    pub(super) fn parse(line: &[u8]) -> Result<Self, ParaverError> {
        let date = line.strip_prefix(MAGIC).and_then(|rest| split(rest, b"):"));
        let (_, rest) = date.ok_or_else(|| error("date", line, "#Paraver (date)"))?;
        let (duration, rest) = field(rest, "duration", "a number with its unit, such as 500_ns")?;
        let (end, unit) = read_duration(duration)?;
        let (_, rest) = field(rest, "list of nodes", "their number, such as 1(4)")?;
        let (applications, rest) = field(rest, "number of applications", "1")?;
        if applications != b"1" {
            return Err(error("number of applications", applications, "1"));
        }
        Ok(Self { tasks: tasks(rest)?, unit, end })
    }
}

/// Reads the duration \[ns\] and its unit \[ns\], which is that of all times; without one it is microseconds.
fn read_duration(duration: &[u8]) -> Result<(u64, u64), ParaverError> {
    const EXPECTED: &str = "a number of nanoseconds (500_ns) or microseconds (500_us, 500)";
    let digits = duration.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = duration.split_at(digits);
    let unit = match unit {
        b"_ns" => Some(1),
        b"_us" | b"" => Some(1000),
        _ => None,
    };
    let read = parse(number).zip(unit).map(|(number, unit)| (number.saturating_mul(unit), unit));
    read.ok_or_else(|| error("duration", duration, EXPECTED))
}

/// Counts the tasks, which are listed with their numbers of threads and their nodes.
fn tasks(text: &[u8]) -> Result<u32, ParaverError> {
    const FIELD: &str = "list of tasks";
    let wrong = |expected| error(FIELD, text, expected);
    let (number, rest) = split(text, b"(").ok_or_else(|| wrong("their number and a list in brackets"))?;
    let (list, _) = split(rest, b")").ok_or_else(|| wrong("a closing bracket"))?;
    let number = parse(number).filter(|number| (1..=u64::from(MAX_RANKS)).contains(number));
    let number = number.ok_or_else(|| wrong("1 to 1048576 tasks"))?;
    let is_task = |task: &[u8]| {
        split(task, b":").is_some_and(|(threads, node)| parse(threads).and(parse(node)).is_some())
    };
    let listed = list.split(|&byte| byte == b',').filter(|task| is_task(task)).count() as u64;
    if listed == number { Ok(number as u32) } else { Err(wrong("threads:node of each task")) }
}

fn field<'a>(
    text: &'a [u8],
    field: &'static str,
    expected: &'static str,
) -> Result<(&'a [u8], &'a [u8]), ParaverError> {
    split(text, b":").ok_or_else(|| error(field, text, expected))
}

fn split<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let end = memchr::memmem::find(text, separator)?;
    Some((&text[..end], &text[end + separator.len()..]))
}

#[cold]
fn error(field: &'static str, found: &[u8], expected: &'static str) -> ParaverError {
    ParaverError::Header { field, found: excerpt(found), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_tasks_and_a_unit() {
        let headers: [(&str, u32, u64, u64); 3] = [
            ("#Paraver (09/10/2019 at 16:09):11528373565_ns:1(2):1:2(1:1,1:1),3", 2, 1, 11_528_373_565),
            ("#Paraver (01/01/01 at 00:00):7_us:0:1:1(1:0)", 1, 1000, 7000),
            ("#Paraver (01/01/01 at 00:00):7:2(4,4):1:3(4:1,4:1,4:2),1", 3, 1000, 7000),
        ];
        for (line, tasks, unit, end) in headers {
            assert_eq!(Header::parse(line.as_bytes()), Ok(Header { tasks, unit, end }), "{line}");
        }
    }

    #[test]
    fn wrong_headers_are_refused_by_their_part() {
        let headers = [
            ("#Paraver", "date"),
            ("#Paraver (01/01/01 at 00:00)", "date"),
            ("#Paraver (d):7", "duration"),
            ("#Paraver (d):_ns:1(1):1:1(1:1)", "duration"),
            ("#Paraver (d):7_h:1(1):1:1(1:1)", "duration"),
            ("#Paraver (d):7_ns:1(1)", "list of nodes"),
            ("#Paraver (d):7_ns:1(1):2:1(1:1),1:1(1:1),1", "number of applications"),
            ("#Paraver (d):7_ns:1(1):1:1", "list of tasks"),
            ("#Paraver (d):7_ns:1(1):1:1(1:1", "list of tasks"),
            ("#Paraver (d):7_ns:1(1):1:2(1:1)", "list of tasks"),
            ("#Paraver (d):7_ns:1(1):1:0()", "list of tasks"),
            ("#Paraver (d):7_ns:1(1):1:9999999(1:1)", "list of tasks"),
        ];
        for (line, expected) in headers {
            let found = Header::parse(line.as_bytes());
            assert!(
                matches!(&found, Err(ParaverError::Header { field, .. }) if *field == expected),
                "{line}: {found:?}"
            );
        }
    }
}
