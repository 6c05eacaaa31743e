//! Definitions: what events name by number.
#![expect(unsafe_code, reason = "the library is one of C")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::slice;

use super::archive::{Otf2Error, Reader};
use super::ending::Kind;
use super::ffi;

/// The definitions of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// Ticks of the clock per second; 0 if the archive does not tell.
    pub ticks_per_second: u64,
    /// Locations in the order of the archive.
    pub locations: Vec<Location>,
    /// Regions by number.
    pub regions: BTreeMap<u32, Region>,
    /// Groups by number.
    pub groups: BTreeMap<u32, Group>,
    /// Communicators by number.
    pub communicators: BTreeMap<u32, Communicator>,
    /// The number of the communicator of each window, by number.
    pub windows: BTreeMap<u32, u32>,
    /// Metrics that count from the start of the measurement, in whole numbers.
    pub counters: Vec<Counter>,
}

/// A counter of threads, such as one of PAPI.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// The number of the metric in events.
    pub metric: u32,
    /// The index of the value in these.
    pub index: u8,
    /// Amount for which a unit of the value stands.
    pub scale: f64,
}

/// A location: a thread, a stream of an accelerator, or a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its identifier.
    pub id: u64,
    /// True if it is a thread of a processor.
    pub is_thread: bool,
    /// Number of its events.
    pub events: u64,
}

/// A region of code, such as a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// True if it is a function of MPI.
    pub is_mpi: bool,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its kind.
    pub kind: GroupKind,
    /// True if it belongs to MPI.
    pub is_mpi: bool,
    /// Its members: locations, or indices of the group of all locations of MPI.
    pub members: Vec<u64>,
}

/// Kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// All locations that communicate, in the order of their ranks.
    Locations,
    /// The members of a communicator, as indices of those locations.
    Members,
    /// The process itself.
    Own,
    /// A group that belongs to no communicator.
    Other,
}

/// A communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// The number of its group.
    pub group: u32,
}

/// Definitions as they are read.
#[derive(Default)]
struct Collected {
    definitions: Definitions,
    strings: BTreeMap<u32, String>,
    /// The number of the name of each region.
    names: Vec<(u32, u32)>,
    /// The number of the name and the scale of each counter.
    members: BTreeMap<u32, (u32, f64)>,
    /// The members of each metric.
    metrics: Vec<(u32, Vec<u32>)>,
}

impl Definitions {
    /// Reads the definitions of an archive, given its anchor.
    ///
    /// # Errors
    /// Fails if the library cannot read them.
    pub fn read(anchor: &Path) -> Result<Self, Otf2Error> {
        const WHAT: &str = "the global definitions";
        let reader = Reader::open(anchor)?;
        reader.check_whole(WHAT, Kind::Definitions, &anchor.with_extension("def"))?;
        let mut collected = Collected::default();
        let mut read = 0;
        // SAFETY: reader, definitions and callbacks live until the last call; the callbacks get a pointer to `collected`, which nothing
        // else uses meanwhile.
        unsafe {
            let definitions = reader.handle(WHAT, ffi::OTF2_Reader_GetGlobalDefReader(reader.raw()))?;
            let callbacks = reader.handle(WHAT, ffi::OTF2_GlobalDefReaderCallbacks_New())?;
            ffi::OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, on_clock);
            ffi::OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, on_string);
            ffi::OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
            ffi::OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, on_region);
            ffi::OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, on_group);
            ffi::OTF2_GlobalDefReaderCallbacks_SetCommCallback(callbacks, on_communicator);
            ffi::OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(callbacks, on_window);
            ffi::OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(callbacks, on_metric_member);
            ffi::OTF2_GlobalDefReaderCallbacks_SetMetricClassCallback(callbacks, on_metric_class);
            let data = (&raw mut collected).cast();
            let registered =
                ffi::OTF2_Reader_RegisterGlobalDefCallbacks(reader.raw(), definitions, callbacks, data);
            ffi::OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
            reader.check(WHAT, registered)?;
            reader.check(
                WHAT,
                ffi::OTF2_Reader_ReadAllGlobalDefinitions(reader.raw(), definitions, &raw mut read),
            )?;
        }
        let Collected { mut definitions, strings, names, members, metrics } = collected;
        for (metric, of_metric) in metrics {
            for (index, member) in (0..).zip(of_metric) {
                if let Some((name, scale)) = members.get(&member) {
                    let name = strings.get(name).cloned().unwrap_or_default();
                    definitions.counters.push(Counter { name, metric, index, scale: *scale });
                }
            }
        }
        for (region, name) in names {
            if let (Some(region), Some(name)) = (definitions.regions.get_mut(&region), strings.get(&name)) {
                region.name.clone_from(name);
            }
        }
        Ok(definitions)
    }
}

/// Returns the definitions of a callback.
///
/// # Safety
/// `data` is the pointer that `Definitions::read` has registered.
unsafe fn collected<'a>(data: *mut c_void) -> &'a mut Collected {
    // SAFETY: by the caller.
    unsafe { &mut *data.cast() }
}

extern "C" fn on_clock(data: *mut c_void, resolution: u64, _: u64, _: u64, _: u64) -> c_int {
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.definitions.ticks_per_second = resolution;
    ffi::SUCCESS
}

extern "C" fn on_string(data: *mut c_void, own: u32, string: *const c_char) -> c_int {
    // SAFETY: the library passes what was registered, and a string of C.
    let (collected, string) = unsafe { (collected(data), CStr::from_ptr(string)) };
    collected.strings.insert(own, string.to_string_lossy().into_owned());
    ffi::SUCCESS
}

extern "C" fn on_location(data: *mut c_void, id: u64, _: u32, kind: u8, events: u64, _: u32) -> c_int {
    let location = Location { id, is_thread: kind == ffi::LOCATION_TYPE_CPU_THREAD, events };
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.definitions.locations.push(location);
    ffi::SUCCESS
}

extern "C" fn on_region(
    data: *mut c_void,
    own: u32,
    name: u32,
    _: u32,
    _: u32,
    _: u8,
    paradigm: u8,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> c_int {
    // SAFETY: the library passes what was registered.
    let collected = unsafe { collected(data) };
    let region = Region { name: String::new(), is_mpi: paradigm == ffi::PARADIGM_MPI };
    collected.definitions.regions.insert(own, region);
    collected.names.push((own, name));
    ffi::SUCCESS
}

extern "C" fn on_group(
    data: *mut c_void,
    own: u32,
    _: u32,
    kind: u8,
    paradigm: u8,
    _: u32,
    count: u32,
    members: *const u64,
) -> c_int {
    let kind = match kind {
        ffi::GROUP_TYPE_COMM_LOCATIONS => GroupKind::Locations,
        ffi::GROUP_TYPE_COMM_GROUP => GroupKind::Members,
        ffi::GROUP_TYPE_COMM_SELF => GroupKind::Own,
        _ => GroupKind::Other,
    };
    // SAFETY: the library passes so many members; the pointer of none may be null.
    let members = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(members, count as usize) } };
    let group = Group { kind, is_mpi: paradigm == ffi::PARADIGM_MPI, members: members.to_vec() };
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.definitions.groups.insert(own, group);
    ffi::SUCCESS
}

extern "C" fn on_communicator(data: *mut c_void, own: u32, _: u32, group: u32, _: u32, _: u32) -> c_int {
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.definitions.communicators.insert(own, Communicator { group });
    ffi::SUCCESS
}

extern "C" fn on_window(data: *mut c_void, own: u32, _: u32, communicator: u32, _: u32) -> c_int {
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.definitions.windows.insert(own, communicator);
    ffi::SUCCESS
}

extern "C" fn on_metric_member(
    data: *mut c_void,
    own: u32,
    name: u32,
    _: u32,
    _: u8,
    mode: u8,
    kind: u8,
    base: u8,
    exponent: i64,
    _: u32,
) -> c_int {
    if mode == ffi::ACCUMULATED_START && matches!(kind, ffi::TYPE_INT64 | ffi::TYPE_UINT64) {
        let base: f64 = if base == ffi::BASE_DECIMAL { 10.0 } else { 2.0 };
        let scale = base.powi(exponent.clamp(-1000, 1000) as i32);
        // SAFETY: the library passes what was registered.
        unsafe { collected(data) }.members.insert(own, (name, scale));
    }
    ffi::SUCCESS
}

extern "C" fn on_metric_class(
    data: *mut c_void,
    own: u32,
    count: u8,
    members: *const u32,
    _: u8,
    _: u8,
) -> c_int {
    // SAFETY: the library passes so many members; the pointer of none may be null.
    let members = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(members, count.into()) } };
    // SAFETY: the library passes what was registered.
    unsafe { collected(data) }.metrics.push((own, members.to_vec()));
    ffi::SUCCESS
}
