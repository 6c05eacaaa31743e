//! The Standard Workload Format, version 2.2: <https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>.

use super::{Builder, Workload, WorkloadError};
use crate::{Date, Span, Work};

/// Number of fields of a line.
const FIELDS: usize = 18;

/// Reads a workload in the Standard Workload Format. Of the fields are used: 1 the number of the job, 2 its submission, 4 its run time,
/// 5 its processors (8, the requested ones, if there are none), each of which is a node here, and 9 its requested time (its run time if
/// there is none), at which it ends at the latest. Jobs without a run time or processors are left out, with a warning.
///
/// # Errors
/// Returns an error if a line has not 18 numbers, or a number makes no sense.
pub fn read(text: &str) -> Result<Workload, WorkloadError> {
    let mut builder = Builder::default();
    let mut machine = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if let Some(comment) = text.strip_prefix(';') {
            machine = machine.or_else(|| header(comment, "MaxProcs"));
            continue;
        }
        if !text.is_empty() {
            read_job(&mut builder, text).map_err(|message| WorkloadError::Line { line, message })?;
        }
    }
    Ok(builder.build(machine))
}

/// Returns the value of a header comment, such as `MaxProcs: 128`.
fn header(comment: &str, key: &str) -> Option<u32> {
    let (found, value) = comment.split_once(':')?;
    (found.trim() == key).then(|| value.trim().parse().ok())?
}

fn read_job(builder: &mut Builder, text: &str) -> Result<(), String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS {
        return Err(format!("found {} fields, expected {FIELDS}", fields.len()));
    }
    // The first field is 1.
    let number = |field: usize| {
        let text = fields[field - 1];
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("found {text:?} in field {field}, expected a number"))
    };
    for field in 1..=FIELDS {
        number(field)?;
    }
    let span = |field: usize| match number(field)? {
        seconds if seconds <= 0.0 => Ok(None),
        seconds => Span::from_seconds(seconds)
            .map(Some)
            .ok_or_else(|| format!("found {seconds} s in field {field}, expected fewer than 9e12")),
    };
    let processors = |field: usize| match number(field)? {
        count if count <= 0.0 => Ok(None),
        count if count.fract() == 0.0 && count <= f64::from(u32::MAX) => Ok(Some(count as u32)),
        count => Err(format!("found {count} processors in field {field}, expected a whole number")),
    };
    let submitted = Date::from_seconds(number(2)?).ok_or_else(|| {
        format!("found the submission {} in field 2, expected seconds since the start of the log", fields[1])
    })?;
    let name = fields[0].to_owned();
    let (runtime, estimate) = (span(4)?, span(9)?);
    match (runtime, processors(5)?.or(processors(8)?)) {
        (Some(runtime), Some(nodes)) => builder.add(name, submitted, nodes, estimate, (runtime, Work::Wait)),
        _ => builder.left_out.note(&name),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_substitutes() {
        let text = "; MaxProcs: 8\n\n\
            1 5 -1 20 -1 -1 -1 4 10 -1 1 -1 -1 -1 -1 -1 -1 -1\n\
            2 6 -1 30 2 -1 -1 9 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n\
            3 7 -1 -1 2 -1 -1 9 -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n";
        let workload = read(text).unwrap();
        let found = workload.jobs.iter().map(|job| {
            (&*job.name, job.nodes, job.submitted.seconds(), job.estimate.seconds(), job.runtime.seconds())
        });
        assert_eq!(found.collect::<Vec<_>>(), [("1", 4, 5.0, 10.0, 10.0), ("2", 2, 6.0, 30.0, 30.0)]);
        assert_eq!(workload.nodes, Some(8));
        let [left_out, cut, without] = &workload.warnings[..] else { panic!("{:?}", workload.warnings) };
        assert!(left_out.contains("job 3") && cut.contains("job 1") && without.contains("job 2"));
    }

    #[test]
    fn broken_lines_are_named() {
        let job = "1 5 -1 20 4 -1 -1 4 10 -1 1 -1 -1 -1 -1 -1 -1 -1";
        for (broken, word) in [
            (job.replace("20 4", "20 4.5"), "4.5 processors"),
            (job.replace("1 5", "1 -5"), "submission -5"),
            (job.replace("10 -1", "ten -1"), "\"ten\" in field 9"),
            (job.replace(" 20", ""), "17 fields"),
            (job.replace("20 4", "1e13 4"), "field 4"),
        ] {
            let error = read(&format!("{job}\n{broken}\n")).unwrap_err().to_string();
            assert!(error.starts_with("line 2: ") && error.contains(word), "{error}");
        }
    }
}
