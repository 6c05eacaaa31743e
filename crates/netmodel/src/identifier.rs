//! Identifiers of hosts, links and zones.

use std::fmt;

macro_rules! identifier {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, pdes_core::State)]
        $visibility struct $name(u32);

        impl $name {
            /// Makes the identifier with this number.
            $visibility const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Returns the number.
            $visibility const fn get(self) -> u32 {
                self.0
            }

            /// Returns the number as an index into the platform's array.
            $visibility const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

identifier! {
    /// A host by its position in [`Platform::hosts`](crate::Platform::hosts).
    pub HostId
}

identifier! {
    /// A link by its position in [`Platform::links`](crate::Platform::links).
    pub LinkId
}

identifier! {
    /// A storage device by its position in the platform's list.
    pub DeviceId
}

identifier! {
    /// A file system by its position in the platform's list.
    pub FileSystemId
}

identifier! {
    /// A zone by its position in the platform's list.
    pub(crate) ZoneId
}
