//! The builder of a worker.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proto::{Bearer, v1};
use tonic::transport::Endpoint;

use crate::detection::{Detector, Scout};
use crate::{Descriptor, Error, Handler, Inventory, Worker};

/// Default time for which attempts may continue when the worker leaves.
const LEAVE_GRACE: Duration = Duration::from_secs(30);
/// Default grace period for an attempt that the worker stops.
const STOP_GRACE: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that answers no ping for the sum of the two is closed.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a worker.
#[derive(Debug)]
pub struct Builder {
    address: String,
    hello: v1::Hello,
    types: BTreeMap<String, Type>,
    scouts: BTreeMap<String, Scout>,
    descriptors: BTreeMap<String, Descriptor>,
    leave_grace: Duration,
    stop_grace: Duration,
    inventory: Option<Arc<dyn Inventory>>,
    bearer: Result<Bearer, proto::Invalid>,
    ca_pem: Option<Vec<u8>>,
}

/// The settings of a worker.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) endpoint: Endpoint,
    /// The hello without the attempts.
    pub(crate) hello: v1::Hello,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) scouts: BTreeMap<String, Scout>,
    pub(crate) descriptors: BTreeMap<String, Descriptor>,
    pub(crate) leave_grace: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) bearer: Bearer,
}

/// The handler of one type.
pub(crate) struct Type {
    /// 0 means the number of slots.
    pub(crate) execute_max: u32,
    pub(crate) handler: Arc<dyn Handler>,
}

impl Builder {
    pub(crate) fn new(address: &str) -> Self {
        let software = concat!("maitre-worker/", env!("CARGO_PKG_VERSION")).to_owned();
        let hello = v1::Hello {
            slots: 1,
            protocol: proto::PROTOCOL,
            protocol_oldest: proto::PROTOCOL_OLDEST,
            software,
            ..v1::Hello::default()
        };
        Self {
            address: address.to_owned(),
            hello,
            types: BTreeMap::new(),
            scouts: BTreeMap::new(),
            descriptors: BTreeMap::new(),
            leave_grace: LEAVE_GRACE,
            stop_grace: STOP_GRACE,
            inventory: None,
            bearer: Ok(Bearer::default()),
            ca_pem: None,
        }
    }

    /// The token of the worker.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.bearer = Bearer::new(Some(token));
        self
    }

    /// Certificates that the worker trusts in addition to those of the system, as PEM.
    #[must_use]
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.ca_pem = Some(pem.to_owned());
        self
    }

    /// The name of the worker: unique, and the same after every restart.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hello.worker);
        self
    }

    /// The pool of the worker. The default is `default`.
    #[must_use]
    pub fn pool(mut self, pool: &str) -> Self {
        pool.clone_into(&mut self.hello.pool);
        self
    }

    /// The number of slots. The default is 1.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.hello.slots = slots;
        self
    }

    /// Runs jobs of this type, at most `execute_max` at once. 0 means the number of slots.
    #[must_use]
    pub fn type_(mut self, name: &str, execute_max: u32, handler: impl Handler) -> Self {
        let handler: Arc<dyn Handler> = Arc::new(handler);
        self.types.insert(name.to_owned(), Type { execute_max, handler });
        self
    }

    /// Detects work of this type on request, at most `detect_max` times at once. The worker need
    /// not run jobs of the type.
    #[must_use]
    pub fn detect(mut self, name: &str, detect_max: u32, detector: impl Detector) -> Self {
        let scout = Scout { detect_max: detect_max.max(1), detector: Arc::new(detector) };
        self.scouts.insert(name.to_owned(), scout);
        self
    }

    /// The descriptor of a type: its configuration fields and a suggested policy.
    #[must_use]
    pub fn describe(mut self, name: &str, descriptor: Descriptor) -> Self {
        self.descriptors.insert(name.to_owned(), descriptor);
        self
    }

    /// Adds a worker attribute.
    #[must_use]
    pub fn has(mut self, key: &str, value: &str) -> Self {
        let values = self.hello.has.entry(key.to_owned()).or_default();
        values.values.push(value.to_owned());
        self
    }

    /// The amount of a consumable resource: `ram_mb`, `gpu`, …
    #[must_use]
    pub fn amount(mut self, name: &str, amount: u64) -> Self {
        self.hello.amounts.insert(name.to_owned(), amount);
        self
    }

    /// The rank in the operator's order: lower is preferred. The default is 0.
    #[must_use]
    pub fn rank(mut self, rank: i32) -> Self {
        self.hello.rank = rank;
        self
    }

    /// Adds a locality label.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.hello.hints.push(hint.to_owned());
        self
    }

    /// The program and its version, for users.
    #[must_use]
    pub fn software(mut self, software: &str) -> Self {
        software.clone_into(&mut self.hello.software);
        self
    }

    /// The time for which attempts may continue when the worker leaves. The default is 30 seconds.
    #[must_use]
    pub fn leave_grace(mut self, grace: Duration) -> Self {
        self.leave_grace = grace;
        self
    }

    /// The grace period of an attempt that timed out, or that the worker stops because it leaves.
    /// The default is 10 seconds. If the server stops an attempt, it sets the grace period.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.stop_grace = grace;
        self
    }

    /// The source of the worker's inventory.
    #[must_use]
    pub fn inventory(mut self, inventory: impl Inventory) -> Self {
        self.inventory = Some(Arc::new(inventory));
        self
    }

    /// Checks the settings.
    pub fn build(mut self) -> Result<Worker, Error> {
        if self.types.is_empty() && self.scouts.is_empty() {
            // For the server, a hello without types means any type.
            return Err(proto::Invalid::new("types", "is empty: there is nothing to do").into());
        }
        for (name, descriptor) in &self.descriptors {
            descriptor.check().map_err(|problem| {
                proto::Invalid::new(&format!("{name}.{}", problem.field), problem.problem)
            })?;
        }
        self.hello.types = self.worker_types();
        self.hello.has_inventory = self.inventory.is_some();
        self.hello.instance = instance()?;
        self.hello.checked()?;
        let settings = Settings {
            endpoint: endpoint(&self.address, self.ca_pem.as_deref())?,
            hello: self.hello,
            types: self.types,
            scouts: self.scouts,
            descriptors: self.descriptors,
            leave_grace: self.leave_grace,
            stop_grace: self.stop_grace,
            inventory: self.inventory,
            bearer: self.bearer?,
        };
        Ok(Worker::new(settings))
    }
}

impl Builder {
    /// The types that it runs and detects, for the hello.
    fn worker_types(&self) -> Vec<v1::WorkerType> {
        let names: BTreeSet<&String> = self.types.keys().chain(self.scouts.keys()).collect();
        let kind = |name: &String| {
            let (does, looks) = (self.types.get(name), self.scouts.get(name));
            let descriptor = self.descriptors.get(name).cloned().unwrap_or_default();
            v1::WorkerType {
                name: name.clone(),
                execute_max: does.map_or(0, |kind| kind.execute_max),
                detect_max: looks.map_or(0, |scout| scout.detect_max),
                detects_only: does.is_none(),
                display_name: descriptor.display_name,
                description: descriptor.description,
            }
        };
        names.into_iter().map(kind).collect()
    }
}

/// A random name of this process.
fn instance() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|source| Error::System { what: "a random number", source: source.into() })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// `host:port` means plain HTTP.
fn endpoint(address: &str, ca_pem: Option<&[u8]>) -> Result<Endpoint, Error> {
    let url =
        if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = proto::endpoint(&url, ca_pem)
        .map_err(|source| Error::Address { address: address.to_owned(), source })?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true))
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Type").field("execute_max", &self.execute_max).finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inventory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attempt, Done};

    fn builder() -> Builder {
        let handler = |_: Attempt| async { Ok(Done::new()) };
        Builder::new("127.0.0.1:1").name("w").type_("a", 0, handler)
    }

    fn problem(builder: Builder) -> String {
        builder.build().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn builder_rejects_invalid_settings() {
        assert!(builder().build().is_ok());
        assert_eq!(problem(builder().name("")), "`worker` is missing");
        assert_eq!(problem(builder().slots(0)), "`slots` is 0, which is not between 1 and 100000");
        let idle = Builder::new("127.0.0.1:1").name("w");
        assert_eq!(problem(idle), "`types` is empty: there is nothing to do");
    }

    #[test]
    fn invalid_address_is_refused() {
        let mut builder = builder();
        builder.address = "not an address".to_owned();
        assert_eq!(problem(builder), "`not an address` is not the address of a server");
    }

    #[test]
    fn no_two_processes_have_one_instance() {
        assert_ne!(instance().unwrap(), instance().unwrap());
    }
}
