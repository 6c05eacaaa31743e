//! Failures of hosts and links: at given instants, or at random ones by the mean time between failures of each component.
//!
//! Hosts and links that get slower, and links that are off, are [changes of resources](ResourceFailures) in the replay; messages go
//! [around](netmodel::Platform::add_detours) links that are off. A host that dies ends the job that has ranks there, or the job goes on from
//! its last checkpoint ([`FailingJob`]). Random numbers are keyed by the seed and the component, so that neither partition nor order matter.

mod component;
mod failing_job;
mod resources;
mod section;
mod work;

pub use component::{FailureError, cable_names};
pub use failing_job::{FailingJob, HostFailure, JobRun, JobRunError};
pub use resources::{ResourceFailure, ResourceFailures};
pub use section::{FailureList, FailureSection, FailuresSection, FailuresSectionError, Part, Recovery, Star};
pub use work::{Work, WorkError};
