//! The encoding of what members of a cluster send to each other.

use serde::{Deserialize, Serialize};

/// Appends the encoding of a value.
pub(crate) fn append<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) {
    let all = postcard::to_extend(value, std::mem::take(bytes));
    *bytes = all.expect("a vector grows, and the lengths of all lists are known");
}

/// Takes a value from the front of the bytes and advances them; `None` if they do not begin with one.
pub(crate) fn take<'de, T: Deserialize<'de>>(bytes: &mut &'de [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    *bytes = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_each_other() {
        let mut bytes = vec![7];
        append(&(300_u32, Some("text")), &mut bytes);
        append(&u64::MAX, &mut bytes);
        let rest = &mut &bytes[1..];
        assert_eq!(take(rest), Some((300_u32, Some("text"))));
        assert_eq!(take::<u64>(&mut &rest[..rest.len() - 1]), None, "too short");
        assert_eq!(take(rest), Some(u64::MAX));
        assert_eq!(take::<u8>(rest), None);
    }
}
