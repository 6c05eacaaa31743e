//! An I/O server: its queue, its cache, and what it has on its device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;

use pdes_core::{SimTime, State};
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::scheduler::Queued;
use super::usage::ServerUsage;
use super::{Access, Direction, FileSystem};
use crate::HostId;

/// Number of a transfer between a client and a server.
pub(super) type TransferId = u32;

/// An I/O server.
#[derive(Clone, Debug, State)]
#[state(in_place)]
pub(super) struct Server {
    #[state(skip = "a parameter")]
    pub(super) host: HostId,
    /// Accesses that wait for the device.
    queue: VecDeque<Queued>,
    /// Purposes of accesses in the queue or on the device, by their numbers.
    #[state(plain)]
    purposes: BTreeMap<u64, Purpose>,
    /// Accesses on the device and their begin, by the number of the access that they make up.
    running: Vec<Option<(SimTime, Vec<Queued>)>>,
    busy: u32,
    numbers: u64,
    /// File and position at which the last access on the device ends.
    #[state(plain)]
    last: Option<(u32, u64)>,
    cache: Cache,
    /// Amount that is in the cache or on its way there, and not yet on the device \[B\].
    dirty: u64,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<(TransferId, u64)>,
    /// Numbers of the writes of each file that are not yet on the device.
    #[state(plain)]
    unwritten: BTreeMap<u32, BTreeSet<u64>>,
    /// Transfers that wait until the writes of a file before a number are on the device.
    syncs: Vec<(TransferId, u32, u64)>,
    /// End of the last read of each file.
    read_to: BTreeMap<u32, u64>,
    pub(super) usage: ServerUsage,
}

/// Purpose of an access to the device.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Purpose {
    /// Transfers that wait for the data.
    Read { waiting: Vec<TransferId> },
    /// The transfer that waits for the end of the write.
    Write { waiting: TransferId },
    /// Data that were acknowledged.
    Flush,
}

/// An event that a server causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The server has room for the data of a write.
    Granted(TransferId),
    /// A transfer is complete at the server: the data of a read are there, or a write or a sync is done.
    Done(TransferId),
    /// An access begins on the device.
    Access { access: Access, running: u32 },
}

impl Server {
    pub(super) fn new(host: HostId) -> Self {
        Self {
            host,
            queue: VecDeque::new(),
            purposes: BTreeMap::new(),
            running: Vec::new(),
            busy: 0,
            numbers: 0,
            last: None,
            cache: Cache::default(),
            dirty: 0,
            waiting: VecDeque::new(),
            unwritten: BTreeMap::new(),
            syncs: Vec::new(),
            read_to: BTreeMap::new(),
            usage: ServerUsage::default(),
        }
    }

    /// Receives the request of a write, and grants it when there is room.
    pub(super) fn write_requested(
        &mut self,
        system: &FileSystem,
        (transfer, bytes): (TransferId, u64),
        effects: &mut Vec<Effect>,
    ) {
        match system.cache {
            Some(cache) if cache.dirty_bytes > 0 => {
                self.waiting.push_back((transfer, bytes));
                self.admit(cache.dirty_bytes, effects);
            }
            _ => effects.push(Effect::Granted(transfer)),
        }
    }

    /// Grants writes in their order, while there is room; what exceeds all room is granted when nothing else is dirty.
    fn admit(&mut self, limit: u64, effects: &mut Vec<Effect>) {
        while let Some(&(transfer, bytes)) = self.waiting.front()
            && (self.dirty == 0 || self.dirty + bytes <= limit)
        {
            self.waiting.pop_front();
            self.dirty += bytes;
            effects.push(Effect::Granted(transfer));
        }
    }

    /// Receives the data of a write.
    pub(super) fn written(
        &mut self,
        system: &FileSystem,
        now: SimTime,
        (transfer, access): (TransferId, Access),
        effects: &mut Vec<Effect>,
    ) {
        let is_cached = system.cache.is_some_and(|cache| cache.dirty_bytes > 0);
        if let Some(cache) = system.cache {
            self.cache.add(access.file, access.offset, access.end(), cache.bytes);
        }
        if is_cached {
            effects.push(Effect::Done(transfer));
        }
        self.unwritten.entry(access.file).or_default().insert(self.numbers);
        let purpose = if is_cached { Purpose::Flush } else { Purpose::Write { waiting: transfer } };
        self.enqueue(system, now, access, purpose, effects);
    }

    /// Receives the request of a read, within the part of the file that the server has, up to `size`.
    pub(super) fn read_requested(
        &mut self,
        system: &FileSystem,
        now: SimTime,
        (transfer, access): (TransferId, Access),
        size: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let is_sequential = self.read_to.insert(access.file, access.end()) == Some(access.offset);
        let Some(cache) = system.cache else {
            let purpose = Purpose::Read { waiting: vec![transfer] };
            return self.enqueue(system, now, access, purpose, effects);
        };
        let is_hit = self.cache.read(access.file, access.offset, access.end());
        self.usage.looked_up(access.bytes, is_hit);
        if is_hit {
            effects.push(Effect::Done(transfer));
            return;
        }
        if self.join_read(transfer, &access) {
            return;
        }
        let ahead = if is_sequential { cache.read_ahead } else { 0 };
        let end = access.end().saturating_add(ahead).min(size.unwrap_or(u64::MAX)).max(access.end());
        let access = Access { bytes: end - access.offset, ..access };
        self.enqueue(system, now, access, Purpose::Read { waiting: vec![transfer] }, effects);
    }

    /// Lets a transfer wait for a read of its data that is queued or on the device, if there is one.
    fn join_read(&mut self, transfer: TransferId, wanted: &Access) -> bool {
        let known = self.queue.iter().chain(self.running.iter().flatten().flat_map(|(_, accesses)| accesses));
        let has_all = |queued: &&Queued| {
            let access = &queued.access;
            (access.file, access.direction) == (wanted.file, Direction::Read)
                && access.offset <= wanted.offset
                && wanted.end() <= access.end()
        };
        let Some(number) = known.filter(has_all).map(|queued| queued.number).next() else { return false };
        let Some(Purpose::Read { waiting }) = self.purposes.get_mut(&number) else { return false };
        waiting.push(transfer);
        true
    }

    /// Receives the request to bring all writes of a file to the device.
    pub(super) fn sync_requested(&mut self, (transfer, file): (TransferId, u32), effects: &mut Vec<Effect>) {
        self.syncs.push((transfer, file, self.numbers));
        self.complete_syncs(effects);
    }

    fn complete_syncs(&mut self, effects: &mut Vec<Effect>) {
        let Self { syncs, unwritten, .. } = self;
        syncs.retain(|&(transfer, file, before)| {
            let first = unwritten.get(&file).and_then(BTreeSet::first);
            let waits = first.is_some_and(|first| *first < before);
            if !waits {
                effects.push(Effect::Done(transfer));
            }
            waits
        });
    }

    fn enqueue(
        &mut self,
        system: &FileSystem,
        now: SimTime,
        access: Access,
        purpose: Purpose,
        effects: &mut Vec<Effect>,
    ) {
        let number = self.numbers;
        self.numbers += 1;
        self.purposes.insert(number, purpose);
        self.queue.push_back(Queued { access, number });
        self.start_accesses(system, now, effects);
    }

    /// Starts accesses while the server has a thread for them.
    fn start_accesses(&mut self, system: &FileSystem, now: SimTime, effects: &mut Vec<Effect>) {
        while self.busy < system.threads && !self.queue.is_empty() {
            let picked = (system.scheduler.pick)(&mut self.queue, self.last);
            let begin = picked.iter().map(|queued| queued.access.offset).min().unwrap_or_default();
            let end = picked.iter().map(|queued| queued.access.end()).max().unwrap_or_default();
            let Some(first) = picked.first() else { break };
            let access = Access { offset: begin, bytes: end - begin, ..first.access };
            self.last = Some((access.file, end));
            self.busy += 1;
            let free = self.running.iter().position(Option::is_none).unwrap_or(self.running.len());
            if free == self.running.len() {
                self.running.push(None);
            }
            self.running[free] = Some((now, picked));
            effects.push(Effect::Access { access, running: free as u32 });
        }
        self.usage.queued(now, self.queue.len() as u64);
    }

    /// Gives one form to states with one future: the order of accesses matters, not their number.
    pub(super) fn settle(&mut self, now: SimTime) {
        self.usage.settle(now, self.busy == 0);
        let Self { queue, purposes, running, numbers, unwritten, syncs, .. } = self;
        let first = purposes.first_key_value().map_or(*numbers, |(number, _)| *number);
        let less = |number: u64| number.wrapping_sub(first);
        let running = running.iter_mut().flatten().flat_map(|(_, accesses)| accesses);
        queue.iter_mut().chain(running).for_each(|queued| queued.number = less(queued.number));
        *purposes = take(purposes).into_iter().map(|(number, purpose)| (less(number), purpose)).collect();
        for numbers in unwritten.values_mut() {
            *numbers = take(numbers).into_iter().map(less).collect();
        }
        syncs.iter_mut().for_each(|(.., before)| *before = less(*before));
        *numbers = less(*numbers);
    }

    /// Takes the end of an access on the device.
    pub(super) fn access_ended(
        &mut self,
        system: &FileSystem,
        now: SimTime,
        running: u32,
        effects: &mut Vec<Effect>,
    ) {
        // A forged state may have accesses that the server does not know.
        let Some((begin, ended)) = self.running.get_mut(running as usize).and_then(Option::take) else {
            return;
        };
        self.busy = self.busy.saturating_sub(1);
        for Queued { access, number } in ended {
            self.usage.accessed((begin, now), &access);
            if access.direction == Direction::Write
                && let Some(numbers) = self.unwritten.get_mut(&access.file)
            {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.unwritten.remove(&access.file);
                }
            }
            match self.purposes.remove(&number) {
                Some(Purpose::Read { waiting }) => {
                    if let Some(cache) = system.cache {
                        self.cache.add(access.file, access.offset, access.end(), cache.bytes);
                    }
                    effects.extend(waiting.into_iter().map(Effect::Done));
                }
                Some(Purpose::Write { waiting }) => effects.push(Effect::Done(waiting)),
                Some(Purpose::Flush) => self.dirty = self.dirty.saturating_sub(access.bytes),
                None => {}
            }
        }
        self.complete_syncs(effects);
        if let Some(cache) = system.cache {
            self.admit(cache.dirty_bytes, effects);
        }
        self.start_accesses(system, now, effects);
    }
}
