//! Named fields of a line, `key=value`.

use crate::text::verb::nearest;
use crate::text::{Fields, TextError};

macro_rules! keys {
    ($($variant:ident = $name:literal,)*) => {
        /// The key of a named field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Key {
            $($variant,)*
        }

        impl Key {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            pub(super) fn find(name: &[u8]) -> Option<Self> {
                Self::ALL.iter().find(|key| key.name().as_bytes() == name).copied()
            }

            /// Returns the key of a field, if it has a known one.
            pub(super) fn of(field: &[u8]) -> Option<Self> {
                let equals = field.iter().position(|byte| *byte == b'=')?;
                Self::find(&field[..equals])
            }

            /// Returns the name.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

keys! {
    Comm = "comm",
    Req = "req",
    Done = "done",
    Source = "source",
    Stag = "stag",
    Rtag = "rtag",
    New = "new",
    Members = "members",
    To = "to",
    From = "from",
    Scounts = "scounts",
    Rcounts = "rcounts",
    CbNodes = "cb_nodes",
    CbBufferSize = "cb_buffer_size",
    IndRdBufferSize = "ind_rd_buffer_size",
    IndWrBufferSize = "ind_wr_buffer_size",
    StripingFactor = "striping_factor",
    StripingUnit = "striping_unit",
    CbRead = "romio_cb_read",
    CbWrite = "romio_cb_write",
    DsRead = "romio_ds_read",
    DsWrite = "romio_ds_write",
}

/// The values of the named fields of a line.
pub(super) struct Keys<'a> {
    action: &'static str,
    values: [Option<&'a [u8]>; Key::ALL.len()],
}

impl<'a> Keys<'a> {
    /// Finds the named fields among all fields.
    pub(super) fn read(action: &'static str, fields: Fields<'a>) -> Result<Self, TextError> {
        let mut values = [None; Key::ALL.len()];
        for field in fields {
            let Some(equals) = field.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = (&field[..equals], &field[equals + 1..]);
            let Some(key) = Key::find(name) else {
                let found = String::from_utf8_lossy(name).into_owned();
                let nearest = nearest(&found, Key::ALL.iter().map(|key| key.name()));
                return Err(TextError::UnknownKey { action, found, nearest });
            };
            if values[key as usize].replace(value).is_some() {
                return Err(TextError::RepeatedKey { action, key: key.name() });
            }
        }
        Ok(Self { action, values })
    }

    /// Returns whether the line has a field that was not yet taken.
    pub(super) fn has(&self, key: Key) -> bool {
        self.values[key as usize].is_some()
    }

    /// Takes the value of a field.
    pub(super) fn take(&mut self, key: Key) -> Option<&'a [u8]> {
        self.values[key as usize].take()
    }

    /// Checks that all fields were taken.
    pub(super) fn finish(&self) -> Result<(), TextError> {
        match Key::ALL.iter().find(|key| self.has(**key)) {
            Some(key) => Err(TextError::UnusedKey { action: self.action, key: key.name() }),
            None => Ok(()),
        }
    }
}
