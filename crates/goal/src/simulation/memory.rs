//! Large tables in memory.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::MmapMut;

/// A table of zeros that is filled later.
///
/// Where hosts take turns, each access is to another page: pages of 2 MiB, which Linux gives to those who ask, keep their
/// addresses within reach of the processor.
#[derive(Debug)]
pub(crate) struct Table<T> {
    map: MmapMut,
    len: usize,
    entries: PhantomData<T>,
}

impl<T: AnyBitPattern + NoUninit> Table<T> {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let map = MmapMut::map_anon((len * size_of::<T>()).max(1))?;
        // Systems that have no large pages refuse, which costs time only.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map, len, entries: PhantomData })
    }
}

impl<T: AnyBitPattern + NoUninit> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[..self.len * size_of::<T>()])
    }
}

impl<T: AnyBitPattern + NoUninit> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map[..self.len * size_of::<T>()])
    }
}
