//! The words: what a job, a worker, a tenant, a policy, an event and an action are.
//!
//! **Invariant:** plain data. No I/O, no clock, no chance, no serialisation. Whoever reads or
//! writes these as JSON, SQL or protobuf has types of its own and converts at the edge.

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
