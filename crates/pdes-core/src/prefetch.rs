//! Prefetch hints to the processor.
#![allow(unsafe_code)]

/// Prefetches the cache line at an address, which need not be valid.
///
/// It pays where many sequential readers are interleaved: hardware prefetchers follow a few streams only. One
/// instruction on x86-64, nothing elsewhere.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    // SAFETY: the instruction is a hint. It never faults, whatever the address is, and changes nothing but the caches.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
