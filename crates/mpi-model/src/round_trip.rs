//! Check that an encoded value comes back.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Checks that the encoding of a value is decoded to the same value, and that no shorter one is decoded.
pub(crate) fn assert_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let bytes = postcard::to_stdvec(value).expect("the value is encoded");
    for length in 0..bytes.len() {
        assert!(postcard::from_bytes::<T>(&bytes[..length]).is_err(), "too short");
    }
    let (found, rest) = postcard::take_from_bytes::<T>(&bytes).expect("the value is decoded");
    assert_eq!(&found, value);
    assert!(rest.is_empty());
}

/// Checks that bytes from elsewhere are either refused, or decoded to a value whose encoding comes back.
pub(crate) fn assert_refused_or_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    bytes: &[u8],
) {
    if let Ok((value, _)) = postcard::take_from_bytes::<T>(bytes) {
        assert_round_trip(&value);
    }
}
