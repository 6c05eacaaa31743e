//! The part of OTF2 that its reader and its writer have in common.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::ffi::{CStr, c_char, c_int};

/// Declares opaque handles of the library.
macro_rules! handles {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(crate) struct $name {
            private: [u8; 0],
        }
    )*};
}
pub(crate) use handles;

handles!(AttributeList);

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const LOCATION_TYPE_CPU_THREAD: u8 = 1;
pub(crate) const GROUP_TYPE_COMM_LOCATIONS: u8 = 4;
pub(crate) const GROUP_TYPE_COMM_GROUP: u8 = 5;
pub(crate) const PARADIGM_MPI: u8 = 4;
pub(crate) const UNDEFINED_U32: u32 = u32::MAX;
pub(crate) const TYPE_UINT64: u8 = 4;
pub(crate) const TYPE_INT64: u8 = 8;
pub(crate) const BASE_DECIMAL: u8 = 1;
/// Mode of a metric that counts from the start of the measurement.
pub(crate) const ACCUMULATED_START: u8 = 0;

#[link(name = "otf2")]
unsafe extern "C" {
    fn OTF2_Error_GetDescription(error: c_int) -> *const c_char;
}

/// Returns the library's description of an error.
pub(crate) fn describe(error: c_int) -> String {
    // SAFETY: the function takes any number and returns a static string, or null where it knows none.
    let description = unsafe { OTF2_Error_GetDescription(error) };
    if description.is_null() {
        return format!("error {error}");
    }
    // SAFETY: it is not null, hence a static string that ends in zero.
    unsafe { CStr::from_ptr(description) }.to_string_lossy().into_owned()
}
