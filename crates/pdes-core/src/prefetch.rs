//! Hints to the processor.
#![allow(unsafe_code)]

/// Says that what lies at a place will be read soon, so that it is in the caches by then. It may lie nowhere.
///
/// For what many take turns to read, each in order: a processor finds out by itself only what few read. One instruction on
/// x86-64, nothing elsewhere.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    // SAFETY: the instruction is a hint. It never faults, whatever the address is, and changes nothing but the caches.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
