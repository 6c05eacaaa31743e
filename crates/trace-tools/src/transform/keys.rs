//! The keys of a transformation in a file of hypotheses.

use std::fmt;
use std::ops::RangeInclusive;

use toml::{Table, Value};

use super::TransformKind;
use super::key::{Key, KeyValues};

/// The keys of a transformation.
pub(super) struct Keys<'t> {
    kind: &'static TransformKind,
    table: &'t Table,
}

impl<'t> Keys<'t> {
    /// Checks that all keys are known, but for `kind`.
    pub(super) fn new(kind: &'static TransformKind, table: &'t Table) -> Result<Self, String> {
        let own = kind.keys.iter().map(|key| key.name);
        let known: Vec<&str> = own.chain(kind.subject.keys().iter().copied()).collect();
        let unknown = table.keys().find(|key| *key != "kind" && !known.contains(&key.as_str()));
        match unknown {
            None => Ok(Self { kind, table }),
            Some(key) => Err(format!("{} has no key {key:?}; {}", kind.key, suggest(key, known.into_iter()))),
        }
    }

    /// Returns whether there is a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns the values that a key takes.
    fn values(&self, key: &'static str) -> KeyValues {
        let own = self.kind.keys.iter().find(|own| own.name == key).copied();
        own.unwrap_or_else(|| Key::of_selector(key)).values
    }

    /// Reads a value, if there is one, that is among those that the key takes.
    pub(super) fn get<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let values = self.values(key);
        let found = || format!("{}: found {key} = {value}, expected {values}", self.kind.key);
        read(value).filter(|_| values.admit(value)).map(Some).ok_or_else(found)
    }

    /// Reads a value, which has to be there.
    pub(super) fn require<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, String> {
        let lacks = || format!("{} lacks {key}: {}", self.kind.key, self.values(key));
        self.get(key, read)?.ok_or_else(lacks)
    }
}

/// Reads a number.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|number| number as f64))
}

/// Reads a whole number of 0 or more.
pub(super) fn whole(value: &Value) -> Option<u64> {
    u64::try_from(value.as_integer()?).ok()
}

/// Returns a hint at the names nearest to one, the nearest first.
pub(super) fn suggest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    let names = nearest(name, known);
    match &names[..] {
        [only] => format!("expected {only:?}"),
        [first, others @ ..] => {
            let others: Vec<String> = others.iter().map(|name| format!("{name:?}")).collect();
            format!("did you mean {first:?}? There are also {}", others.join(", "))
        }
        [] => "there are none".to_owned(),
    }
}

/// Returns names in the order of their distance to one.
pub(super) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    let mut names: Vec<&str> = known.collect();
    names.sort_by_cached_key(|known| (strsim::osa_distance(known, name), known.to_string()));
    names
}

/// Patterns of names, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let name = |value: &Value| value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        match value {
            Value::Array(values) if !values.is_empty() => {
                Some(Self(values.iter().map(name).collect::<Option<_>>()?))
            }
            value => Some(Self(vec![name(value)?])),
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches_pattern(pattern.as_bytes(), name.as_bytes()))
    }

    pub(super) fn first(&self) -> &str {
        &self.0[0]
    }
}

impl From<&str> for Patterns {
    fn from(pattern: &str) -> Self {
        Self(vec![pattern.to_owned()])
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [only] => write!(f, "{only:?}"),
            several => write!(f, "{several:?}"),
        }
    }
}

/// Matches greedily, and backtracks to the last `*` only: linear in the pattern times the name.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut next, mut star) = (0, 0, None);
    while next < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, next));
            at += 1;
        } else if pattern.get(at) == Some(&name[next]) {
            (at, next) = (at + 1, next + 1);
        } else if let Some((place, taken)) = star {
            star = Some((place, taken + 1));
            (at, next) = (place + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|left| *left == b'*')
}

/// Numbers and ranges of numbers, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbers(Vec<RangeInclusive<u64>>);

impl Numbers {
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => {
                let number = u64::try_from(*number).ok()?;
                Some(Self(vec![number..=number]))
            }
            Value::Array(values) if !values.is_empty() => {
                let all = values.iter().map(Self::read).collect::<Option<Vec<_>>>()?;
                Some(Self(all.into_iter().flat_map(|numbers| numbers.0).collect()))
            }
            Value::String(text) => Some(Self(text.split(',').map(read_range).collect::<Option<_>>()?)),
            _ => None,
        }
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }

    /// Returns the first of the numbers around one that are all contained, or all not contained, and the first one behind them.
    pub(super) fn alike(&self, number: u64) -> (u64, u64) {
        let bounds = self.0.iter().flat_map(|range| [*range.start(), range.end().saturating_add(1)]);
        let (before, behind): (Vec<u64>, Vec<u64>) = bounds.partition(|bound| *bound <= number);
        (before.into_iter().max().unwrap_or(0), behind.into_iter().min().unwrap_or(u64::MAX))
    }

    /// Returns the largest number; `None` if a range has no end.
    pub(super) fn last(&self) -> Option<u64> {
        self.0.iter().map(|range| *range.end()).max().filter(|last| *last < u64::MAX)
    }
}

fn read_range(text: &str) -> Option<RangeInclusive<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, last)) if last.trim().is_empty() => (number(first)?, u64::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    (first <= last).then_some(first..=last)
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |range: &RangeInclusive<u64>| match (*range.start(), *range.end()) {
            (first, u64::MAX) => format!("{first}-"),
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        write!(f, "{:?}", self.0.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let cases = [
            ("foo", "foo", true),
            ("foo", "foobar", false),
            ("foo*", "foo", true),
            ("foo*", "foo/bar", true),
            ("*.c:1*", "a.c:12", true),
            ("*.c:1*", "a.c:21", false),
            ("a*b*c", "aXbbYc", true),
            ("a*b*c", "aXbbYcd", false),
            ("*", "", true),
            ("", "x", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Patterns::from(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        let numbers = Numbers::read(&Value::String("0-2, 5,9-".to_owned())).expect("three ranges");
        let found: Vec<u64> = (0..12).filter(|number| numbers.contains(*number)).collect();
        assert_eq!(found, [0, 1, 2, 5, 9, 10, 11]);
        assert_eq!((numbers.to_string(), numbers.last()), ("\"0-2,5,9-\"".to_owned(), None));
        for wrong in ["", "2-1", "-1", "a", "1,,2", "1-2-3"] {
            assert_eq!(Numbers::read(&Value::String(wrong.to_owned())), None, "{wrong}");
        }
        assert_eq!(Numbers::read(&Value::Integer(-1)), None);
    }
}
