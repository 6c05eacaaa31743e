//! The binary encoding of tokens for other processes of the operating system.

use crate::{Bytes, Rank, SimTime};

/// A value with a binary encoding of fixed size, the same on every host.
///
/// # Laws
/// 1. [`write`](Wire::write) appends exactly [`SIZE`](Wire::SIZE) bytes, and [`read`](Wire::read) takes that many.
/// 2. Reading the written bytes returns the value.
///
/// ```
/// use pdes_core::{SimTime, Wire};
///
/// #[derive(Debug, PartialEq)]
/// struct Token { from: u32, arrives: Option<SimTime> }
///
/// impl Wire for Token {
///     const SIZE: usize = u32::SIZE + Option::<SimTime>::SIZE;
///
///     fn write(&self, bytes: &mut Vec<u8>) {
///         self.from.write(bytes);
///         self.arrives.write(bytes);
///     }
///
///     fn read(bytes: &mut &[u8]) -> Option<Self> {
///         Some(Self { from: Wire::read(bytes)?, arrives: Wire::read(bytes)? })
///     }
/// }
///
/// let token = Token { from: 7, arrives: Some(SimTime::from_picos(12)) };
/// let mut bytes = Vec::new();
/// token.write(&mut bytes);
/// assert_eq!(bytes.len(), Token::SIZE);
/// assert_eq!(Token::read(&mut bytes.as_slice()), Some(token));
/// ```
pub trait Wire: Sized {
    /// Size of an encoded value \[B\].
    const SIZE: usize;

    /// Appends the value.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Decodes a value from the front of the bytes and advances them; `None` if they are too short or encode no value.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        /// Little-endian.
        impl Wire for $integer {
            const SIZE: usize = size_of::<Self>();

            #[inline]
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

/// A presence byte (0 or 1), then the value or zeros.
impl<T: Wire> Wire for Option<T> {
    const SIZE: usize = 1 + T::SIZE;

    #[inline]
    fn write(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + Self::SIZE;
        bytes.push(u8::from(self.is_some()));
        match self {
            Some(value) => value.write(bytes),
            None => bytes.resize(end, 0),
        }
    }

    #[inline]
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        match u8::read(bytes)? {
            0 => {
                *bytes = bytes.get(T::SIZE..)?;
                Some(None)
            }
            1 => T::read(bytes).map(Some),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        /// One after the other.
        impl<$($name: Wire),*> Wire for ($($name,)*) {
            const SIZE: usize = 0 $(+ $name::SIZE)*;

            #[inline]
            fn write(&self, bytes: &mut Vec<u8>) {
                $(self.$index.write(bytes);)*
            }

            #[inline]
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($name::read(bytes)?,)*))
            }
        }
    )*};
}

tuples! { (A 0, B 1) (A 0, B 1, C 2) }

macro_rules! wrappers {
    ($($wrapper:ty: $integer:ty, $make:path, $get:path;)*) => {$(
        impl Wire for $wrapper {
            const SIZE: usize = <$integer>::SIZE;

            #[inline]
            fn write(&self, bytes: &mut Vec<u8>) {
                $get(*self).write(bytes);
            }

            #[inline]
            fn read(bytes: &mut &[u8]) -> Option<Self> {
                <$integer>::read(bytes).map($make)
            }
        }
    )*};
}

wrappers! {
    Rank: u32, Rank::new, Rank::get;
    Bytes: u64, Bytes::new, Bytes::get;
    SimTime: u64, SimTime::from_picos, SimTime::as_picos;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn round_trip<T: Wire + PartialEq + Debug>(value: T) {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        assert_eq!(bytes.len(), T::SIZE);
        assert_eq!(T::read(&mut &bytes[..T::SIZE - 1]), None, "too short");
        assert_eq!(T::read(&mut bytes.as_slice()), Some(value));
    }

    #[test]
    fn values_come_back() {
        round_trip(0xA5_u8);
        round_trip(u64::MAX - 1);
        round_trip(Rank::new(77));
        round_trip(Some(SimTime::from_picos(9)));
        round_trip(None::<Bytes>);
        round_trip(Some(None::<u16>));
        round_trip((SimTime::from_picos(3), Rank::new(4), 5_u8));
    }

    #[test]
    fn invalid_presence_bytes_are_refused() {
        assert_eq!(Option::<u8>::read(&mut [2, 0].as_slice()), None);
    }
}
