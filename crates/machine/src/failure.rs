//! Failures of hosts and links: at given instants, or at random ones by the mean time between failures of each component.
//!
//! Hosts and links that get slower, and links that are off, are [changes of resources](ResourceFailures) in the replay; messages go
//! [around](netmodel::Platform::add_detours) links that are off. A host that dies ends the job that has ranks there, or the job goes on from
//! its last checkpoint ([`FailingJob`]); several jobs lose their ranks in the course of the replay. Random numbers are keyed by the seed and the component, so that neither partition nor order matter.

mod component;
mod failing_job;
mod mortal_hosts;
mod resources;
mod section;
mod several_jobs;
mod work;

pub use component::{FailureError, cable_names};
pub use failing_job::{FailingJob, HostFailure, JobRun, JobRunError};
pub use resources::{ResourceFailure, ResourceFailures};
pub use section::{FailureList, FailureSection, FailuresSection, FailuresSectionError, Part, Recovery, Star};
pub use work::{Work, WorkError};
