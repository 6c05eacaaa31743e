//! Cache of the phrases that the shard of a process defines.

use rustc_hash::FxHashMap;

/// Maximum number of cached phrases; when it is reached, all are dropped.
const MAX_PHRASES: u32 = 4096;

/// Maximum size of a cached phrase \[B\].
const MAX_PHRASE_LEN: usize = 1024;

/// Numbers of the phrases that are defined in the shard; at most 4 MiB of them, whatever the program does.
#[derive(Debug, Default)]
pub(crate) struct Phrases {
    by_bytes: FxHashMap<Box<[u8]>, u32>,
    by_channel: FxHashMap<Channel, u32>,
    numbered: u32,
}

/// Peer, tag and communicator of messages.
pub(crate) type Channel = (i32, i32, u32);

impl Phrases {
    /// Finds a phrase.
    #[inline]
    pub(crate) fn find(&self, phrase: &[u8]) -> Option<u32> {
        self.by_bytes.get(phrase).copied()
    }

    /// Finds a channel.
    #[inline]
    pub(crate) fn channel(&self, channel: Channel) -> Option<u32> {
        self.by_channel.get(&channel).copied()
    }

    /// Assigns a number to a phrase; that of a long phrase is for a single use.
    pub(crate) fn add(&mut self, phrase: &[u8]) -> u32 {
        if phrase.len() > MAX_PHRASE_LEN {
            return MAX_PHRASES;
        }
        let number = self.next();
        self.by_bytes.insert(phrase.into(), number);
        number
    }

    /// Assigns a number to a channel.
    pub(crate) fn add_channel(&mut self, channel: Channel) -> u32 {
        let number = self.next();
        self.by_channel.insert(channel, number);
        number
    }

    fn next(&mut self) -> u32 {
        if self.numbered == MAX_PHRASES {
            self.by_bytes.clear();
            self.by_channel.clear();
            self.numbered = 0;
        }
        self.numbered += 1;
        self.numbered - 1
    }
}
