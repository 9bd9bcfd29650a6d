//! The data types of the scheduler: job, worker, tenant, policy, event and action.
//!
//! **Invariant:** plain data without I/O, clock, randomness or serialisation. Crates that read or
//! write JSON, SQL or protobuf have types of their own, and convert them.

pub mod maxima;
pub mod id;
pub mod time;
pub mod fixed;
pub mod job;
pub mod spec;
pub mod life;
pub mod retry;
pub mod recent;
pub mod worker;
pub mod tenant;
pub mod fleet;
pub mod policy;
pub mod preset;
pub mod snapshot;
pub mod event;
pub mod action;
pub mod hold;

pub use action::{Action, Decision, Defer, Placement, Points, Preempt};
pub use event::{Ended, Event, Heartbeat};
pub use fixed::Fixed;
pub use fleet::{Attempt, Averages, Cluster, Eviction, JobType, Resource};
pub use hold::{Check, Hold, Reason};
pub use id::{JobId, Name, TenantId, WorkerId};
pub use job::{Ask, History, Inputs, Job, Trait, Traits};
pub use life::{Cause, Counts, Current, Ending, Measured, Progress, Record, State};
pub use policy::{Policy, Preset};
pub use recent::Recent;
pub use retry::{Next, Patience};
pub use snapshot::{Freed, Snapshot};
pub use spec::{IfFailed, Input, Retry, Spec};
pub use tenant::{Budget, Quota, Tenant};
pub use time::{Millis, Timestamp};
pub use worker::{Metrics, Worker};
