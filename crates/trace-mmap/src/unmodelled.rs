//! MPI calls that the replay does not model, kept with their arguments.

use std::fmt;

const NAME: &str = "name of the call";
const ARGUMENT: &str = "argument of the call";

/// Key of the argument with the amount of data that a call moves \[B\].
const BYTES: &str = "bytes";

/// Reserved key, not an argument: in a line it is the measured time of the call.
const TIME: &str = "time";

/// A call that the replay does not model, such as `MPI_Put`: its name and its recorded arguments, each `key=value`.
///
/// Only the argument `bytes`, the amount of data that the call moves, is interpreted. Cutting a trace therefore keeps all arguments
/// unchanged, even ranks among them.
///
/// ```
/// use trace_mmap::Unmodelled;
/// let call = Unmodelled::new("MPI_Put target=3 disp=128 bytes=800 win=0")?;
/// assert_eq!((call.name(), call.bytes()), ("MPI_Put", 800));
/// assert_eq!(call.arguments().nth(1), Some(("disp", "128")));
/// assert!(Unmodelled::new("MPI_Put 3 128").is_err());
/// # Ok::<(), trace_mmap::UnmodelledError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct Unmodelled(Box<str>);

impl Unmodelled {
    /// Parses the name and the arguments of a call: printable ASCII, separated by single spaces.
    ///
    /// # Errors
    /// The name has an equals sign, or an argument has none; the key of an argument is missing, or is `time`; `bytes` occurs
    /// twice, or is not a whole number below 2^63.
    pub fn new(text: &str) -> Result<Self, UnmodelledError> {
        let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
        if name.contains('=') || !is_printable(name) {
            return Err(invalid(NAME, name, "the name of a function of MPI, such as MPI_Put"));
        }
        let mut has_bytes = false;
        for argument in arguments.split(' ').filter(|_| text.len() > name.len()) {
            let Some((key, value)) = argument.split_once('=').filter(|_| is_printable(argument)) else {
                return Err(invalid(ARGUMENT, argument, "key=value in printable ASCII"));
            };
            match key {
                "" | TIME => return Err(invalid(ARGUMENT, argument, "a key that is not \"time\"")),
                BYTES if std::mem::replace(&mut has_bytes, true) => {
                    return Err(UnmodelledError::RepeatedBytes);
                }
                BYTES if parse_bytes(value).is_none() => {
                    return Err(invalid(ARGUMENT, argument, "a whole number of bytes below 2^63"));
                }
                _ => {}
            }
        }
        Ok(Self(text.into()))
    }

    /// The name of the action in a trace.
    pub const ACTION: &'static str = "unmodelled";

    /// Returns the name of the function.
    pub fn name(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// Yields the arguments as pairs of key and value.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(' ').skip(1).filter_map(|argument| argument.split_once('='))
    }

    /// Returns the amount of data that the call moves \[B\]; 0 if it moves none or if the amount is unknown.
    pub fn bytes(&self) -> u64 {
        let value = self.arguments().find(|(key, _)| *key == BYTES).map(|(_, value)| value);
        value.and_then(parse_bytes).unwrap_or(0)
    }

    /// Returns the name and the arguments as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Unmodelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_printable(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())
}

fn parse_bytes(value: &str) -> Option<u64> {
    let is_decimal = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|bytes| is_decimal && *bytes < 1 << 63)
}

/// The text of a call that the replay does not model is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmodelledError {
    /// The name or an argument is wrong.
    #[error("the {field} is \"{found}\", expected {expected}")]
    Invalid {
        /// Description of the field.
        field: &'static str,
        /// The text found.
        found: String,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// The amount of data occurs twice.
    #[error("unmodelled: the field \"bytes=\" is there twice")]
    RepeatedBytes,
}

#[cold]
fn invalid(field: &'static str, found: &str, expected: &'static str) -> UnmodelledError {
    UnmodelledError::Invalid { field, found: found.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arguments_are_separated() {
        for text in ["MPI_Win_test", "MPI_File_open file=/a%20b mode=create+rdwr comm=self", "f a= bytes=0"] {
            let call = Unmodelled::new(text).expect("a call");
            assert_eq!(call.to_string(), text);
            assert_eq!(call.arguments().count(), text.matches(' ').count());
        }
        let wrong = [
            "",
            " ",
            "a=b",
            "MPI_Put ",
            "MPI_Put  a=b",
            "MPI_Put b",
            "MPI_Put =b",
            "MPI_Put time=5",
            "é a=b",
            "f a=\t",
            "f bytes=-1",
            "f bytes=+1",
            "f bytes=",
            "f bytes=9223372036854775808",
            "f bytes=1 bytes=1",
        ];
        for text in wrong {
            assert!(Unmodelled::new(text).is_err(), "{text:?}");
        }
        assert_eq!(
            Unmodelled::new("f a=1 bytes=9223372036854775807").map(|call| call.bytes()),
            Ok((1 << 63) - 1)
        );
    }
}
