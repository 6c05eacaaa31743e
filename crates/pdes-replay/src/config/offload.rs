//! Entries of `compute.offload`: regions of programs that accelerators compute.

use netmodel::quantity::Size;
use pdes_core::Bytes;
use replay::Offload;
use schemars::JsonSchema;
use serde::Deserialize;

/// Regions of programs, and the hosts of the platform that compute there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OffloadSection {
    /// Name of the regions or call sites, in which `*` stands for any text.
    region: String,
    /// Name of the accelerators, hosts of the platform, in which `*` stands for any text and, before that, `{host}` for the host of the rank. The
    /// ranks of a host have these in turn.
    to: String,
    /// Size of the data that are copied to the accelerator where a region begins.
    #[serde(default)]
    #[schemars(extend("default" = 0))]
    copy_in: Option<Size>,
    /// Size of the data that are copied back where it ends.
    #[serde(default)]
    #[schemars(extend("default" = 0))]
    copy_out: Option<Size>,
}

impl From<OffloadSection> for Offload {
    fn from(OffloadSection { region, to, copy_in, copy_out }: OffloadSection) -> Self {
        let bytes = |size: Option<Size>| size.map_or(Bytes::ZERO, |Size(bytes)| Bytes::new(bytes as u64));
        Self { region, to, copy_in: bytes(copy_in), copy_out: bytes(copy_out) }
    }
}
