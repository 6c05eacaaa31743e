//! Hints to the processor.
#![allow(unsafe_code)]

/// Says that what lies there will be read soon. It may lie nowhere.
#[inline(always)]
pub(crate) fn soon<T>(place: *const T) {
    // SAFETY: the instruction is a hint. It never faults, whatever the address is, and changes nothing but the caches.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
