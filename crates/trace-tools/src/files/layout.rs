//! Detection of the file layout of a trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use trace_mmap::{Location, TraceError, TraceSource};

use crate::error::InputError;
use crate::files::{merged, per_rank};
use crate::format::{Candidate, HEAD};
use crate::text::{Fields, Lines};

/// Opens a trace in text files: detects the layout by the names of files in a directory, else by the first line of the file.
pub(crate) fn detect(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    if path.is_dir() {
        return Ok(per_rank(path, rank_files(path)?));
    }
    let mut lines = Lines::open(path)?;
    match lines.next()? {
        None => Err(InputError::Empty { file: path.to_path_buf() }.into()),
        Some(line) if is_action_line(line.text) => merged(path),
        Some(_) => listed_files(path),
    }
}

/// Returns whether a line starts with a decimal number and has at least one more field.
fn is_action_line(line: &[u8]) -> bool {
    let mut fields = Fields::new(line);
    let is_number = fields.next().is_some_and(|field| field.iter().all(u8::is_ascii_digit));
    is_number && fields.next().is_some()
}

/// Opens the files of a list: a single one is a merged file, several ones are the files of the ranks.
fn listed_files(list: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    match read_list(list)?.as_slice() {
        [file] => merged(file),
        files => Ok(per_rank(list, files.to_vec())),
    }
}

/// Reads the names of files in a list.
fn read_list(list: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let dir = list.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    let mut lines = Lines::open(list)?;
    while let Some(line) = lines.next()? {
        let file = dir.join(String::from_utf8_lossy(line.text).as_ref());
        if !file.exists() {
            let list = Location { file: list.to_path_buf(), line: line.number };
            return Err(InputError::ListedFileMissing { list, file }.into());
        }
        files.push(file);
    }
    Ok(files)
}

/// Returns the files that a trace consists of, as far as they can be found: the path, the files in a directory or a list, the data files of
/// an archive, and those beside a Paraver trace.
pub fn trace_files(path: &Path) -> Vec<PathBuf> {
    let mut files = vec![path.to_path_buf()];
    if let Ok(entries) = fs::read_dir(path) {
        files.extend(entries.flatten().map(|entry| entry.path()));
        return files;
    }
    let with = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    files.extend((0..).map(|number: u32| with(&format!(".{number}"))).take_while(|file| file.exists()));
    if path.to_string_lossy().contains(".prv") {
        let stem = path.with_extension("");
        let stem =
            if stem.extension().is_some_and(|inner| inner == "prv") { stem.with_extension("") } else { stem };
        files.extend(["pcf", "row"].map(|sibling| stem.with_extension(sibling)));
    }
    // An archive is not text, and has no list.
    let is_text = fs::File::open(path).is_ok_and(|file| {
        let mut head = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, HEAD as u64), &mut head).is_ok()
            && !head.contains(&0)
    });
    let is_list =
        |mut lines: Lines<'_>| matches!(lines.next(), Ok(Some(first)) if !is_action_line(first.text));
    if is_text && Lines::open(path).is_ok_and(is_list) {
        files.extend(read_list(path).unwrap_or_default());
    }
    files
}

/// Finds `rank-N.txt`, plain or compressed, of all ranks in a directory.
fn rank_files(dir: &Path) -> Result<Vec<PathBuf>, InputError> {
    let error = |source| InputError::Io { file: dir.to_path_buf(), source };
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(error)? {
        let file = entry.map_err(error)?.path();
        if let Some(rank) = rank_of(&file)
            && let Some(other) = files.insert(rank, file.clone())
        {
            let (first, second) = if file < other { (file, other) } else { (other, file) };
            return Err(InputError::DuplicateRankFile { rank, first, second });
        }
    }
    let Some(highest) = files.keys().next_back().copied() else {
        return Err(InputError::NoRankFiles { dir: dir.to_path_buf() });
    };
    match (0..).zip(files.keys()).find(|(expected, rank)| expected != *rank) {
        Some((missing, _)) => Err(InputError::RankFileMissing { dir: dir.to_path_buf(), missing, highest }),
        None => Ok(files.into_values().collect()),
    }
}

/// Finds the files of all ranks, given one of them or their directory: their names differ in the number before an end, one of `ends`.
pub(crate) fn rank_family(candidate: &Candidate, ends: &[&str]) -> Result<Vec<PathBuf>, InputError> {
    let split = |file: &Path| {
        let name = file.file_name()?.to_str()?;
        let end = ends.iter().find(|end| name.ends_with(**end))?;
        let stem = name.strip_suffix(end)?;
        let prefix = stem.trim_end_matches(|digit: char| digit.is_ascii_digit());
        (prefix.len() < stem.len()).then(|| (prefix.to_owned(), (*end).to_owned()))
    };
    let path = candidate.path();
    let no_files = || InputError::NoNumberedFiles { path: path.to_path_buf(), ends: ends.join(" or ") };
    if !path.is_dir() {
        let (prefix, end) = split(path).ok_or_else(no_files)?;
        return same_family(candidate, &prefix, &end);
    }
    let mut families: Vec<_> = candidate.siblings().iter().filter_map(|file| split(file)).collect();
    families.sort_unstable();
    families.dedup();
    match &families[..] {
        [(prefix, end)] => same_family(candidate, prefix, end),
        [] => Err(no_files()),
        [(first, _), .., (last, _)] => {
            let names = [first, last].map(Clone::clone);
            Err(InputError::SeveralTraces { dir: path.to_path_buf(), names })
        }
    }
}

/// Finds the files of all ranks beside or in a candidate, whose names are a number between a begin and an end.
pub(crate) fn same_family(
    candidate: &Candidate,
    prefix: &str,
    end: &str,
) -> Result<Vec<PathBuf>, InputError> {
    let number = |file: &Path| -> Option<u64> {
        let digits = file.file_name()?.to_str()?.strip_prefix(prefix)?.strip_suffix(end)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let numbered = candidate.siblings().iter().filter_map(|file| Some((number(file)?, file)));
    let mut files: Vec<_> = numbered.collect();
    files.sort_unstable();
    let gap = (0..).zip(&files).find(|(expected, (number, _))| expected != number);
    match (gap, files.last()) {
        (None, Some(_)) => Ok(files.into_iter().map(|(_, file)| file.clone()).collect()),
        (gap, highest) => {
            let (name, rank) = (format!("{prefix}*{end}"), gap.map_or(0, |(expected, _)| expected));
            let (path, highest) = (candidate.path().to_path_buf(), highest.map(|(number, _)| *number));
            Err(InputError::NumberedFileMissing { path, name, rank, highest })
        }
    }
}

/// Returns the rank in the name of a rank file.
pub(crate) fn rank_of(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let digits = name.strip_prefix("rank-")?.strip_suffix(".txt")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_files_are_known_by_their_names() {
        let values = [
            ("rank-0.txt", Some(0)),
            ("d/rank-12.txt.gz", Some(12)),
            ("rank-7.txt.zst", Some(7)),
            ("rank-.txt", None),
            ("rank-+1.txt", None),
            ("rank-1.txt.bak", None),
            ("files.txt", None),
        ];
        for (file, expected) in values {
            assert_eq!(rank_of(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn a_merged_file_starts_with_a_number_and_goes_on() {
        for (line, expected) in
            [("0 init", true), ("12\tbarrier", true), ("0", false), ("rank-0.txt", false), ("0x a", false)]
        {
            assert_eq!(is_action_line(line.as_bytes()), expected, "{line}");
        }
    }
}
