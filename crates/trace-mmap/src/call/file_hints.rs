//! Hints to ROMIO, the library of MPI-IO.

use std::num::NonZeroU32;

macro_rules! hints {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All hints, in the order of text.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns the name of the hint.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

hints! {
    /// Hint whose value is a number or a size \[B\].
    NumberHint {
        /// Number of aggregators of collective accesses, by default one on each host.
        CbNodes = "cb_nodes",
        /// Size of the buffer of an aggregator, by default 16 MiB.
        CbBufferSize = "cb_buffer_size",
        /// Size of the buffer of data sieving for reads, by default 4 MiB.
        IndRdBufferSize = "ind_rd_buffer_size",
        /// Size of the buffer of data sieving for writes, by default 512 KiB.
        IndWrBufferSize = "ind_wr_buffer_size",
        /// Number of servers of the file.
        StripingFactor = "striping_factor",
        /// Size of the stripes of the file, with whose limits the parts of aggregators are aligned.
        StripingUnit = "striping_unit",
    }
}

hints! {
    /// Hint that switches something on or off.
    SwitchHint {
        /// Two phases of collective reads.
        CbRead = "romio_cb_read",
        /// Two phases of collective writes.
        CbWrite = "romio_cb_write",
        /// Data sieving for independent reads.
        DsRead = "romio_ds_read",
        /// Data sieving for independent writes.
        DsWrite = "romio_ds_write",
    }
}

/// Value of a switch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub enum Switch {
    /// As the library decides.
    #[default]
    Automatic,
    /// On.
    Enable,
    /// Off.
    Disable,
}

impl Switch {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Automatic, Self::Enable, Self::Disable];

    /// Returns the name in hints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// Hints with which a file is opened.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct FileHints {
    numbers: [Option<NonZeroU32>; NumberHint::ALL.len()],
    switches: [Switch; SwitchHint::ALL.len()],
}

impl FileHints {
    /// Largest value: those of ROMIO are of type `int`.
    pub const MAX: u64 = i32::MAX as u64;

    /// Returns the value of a hint that is a number, if there is one.
    pub fn number(&self, hint: NumberHint) -> Option<u64> {
        self.numbers[hint as usize].map(|value| value.get().into())
    }

    /// Returns the value of a switch.
    pub fn switch(&self, hint: SwitchHint) -> Switch {
        self.switches[hint as usize]
    }

    /// Sets a number; returns false if it is not from 1 to [`MAX`](Self::MAX).
    #[must_use]
    pub fn set_number(&mut self, hint: NumberHint, value: u64) -> bool {
        self.numbers[hint as usize] = NonZeroU32::new(value.min(Self::MAX) as u32);
        (1..=Self::MAX).contains(&value)
    }

    /// Sets a switch.
    pub fn set_switch(&mut self, hint: SwitchHint, value: Switch) {
        self.switches[hint as usize] = value;
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.numbers.iter().flatten().all(|value| u64::from(value.get()) <= Self::MAX)
    }
}
