//! How a worker is put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proto::{Bearer, v1};
use tonic::transport::Endpoint;

use crate::detection::{Detector, Scout};
use crate::{Descriptor, Error, Handler, Inventory, Worker};

/// How long attempts may go on when the worker leaves.
const LEAVE_GRACE: Duration = Duration::from_secs(30);
/// How long an attempt has to end by itself once the worker asks it to.
const STOP_GRACE: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that is silent for longer than the two together is dead, whatever TCP thinks.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// Puts a worker together.
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

/// What a worker is, once it is put together.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) endpoint: Endpoint,
    /// All of the hello but the attempts.
    pub(crate) hello: v1::Hello,
    pub(crate) types: BTreeMap<String, Type>,
    pub(crate) scouts: BTreeMap<String, Scout>,
    pub(crate) descriptors: BTreeMap<String, Descriptor>,
    pub(crate) leave_grace: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) bearer: Bearer,
}

/// How jobs of one type are done here.
pub(crate) struct Type {
    /// 0 means as many as there are slots.
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

    /// The token that lets it in.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.bearer = Bearer::new(Some(token));
        self
    }

    /// Who vouches for the server, beside those that the system trusts: certificates, as PEM.
    #[must_use]
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.ca_pem = Some(pem.to_owned());
        self
    }

    /// What it is called: the same after every restart, and unlike every other worker.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.hello.worker);
        self
    }

    /// The pool it belongs to; otherwise `default`.
    #[must_use]
    pub fn pool(mut self, pool: &str) -> Self {
        pool.clone_into(&mut self.hello.pool);
        self
    }

    /// How many slots it has; otherwise 1.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.hello.slots = slots;
        self
    }

    /// It does jobs of this type, at most `execute_max` at once; 0 means as many as it has slots.
    #[must_use]
    pub fn type_(mut self, name: &str, execute_max: u32, handler: impl Handler) -> Self {
        let handler: Arc<dyn Handler> = Arc::new(handler);
        self.types.insert(name.to_owned(), Type { execute_max, handler });
        self
    }

    /// It looks for work of this type when it is asked to, at most `detect_max` times at once. It
    /// need not do jobs of it too.
    #[must_use]
    pub fn detect(mut self, name: &str, detect_max: u32, detector: impl Detector) -> Self {
        let scout = Scout { detect_max: detect_max.max(1), detector: Arc::new(detector) };
        self.scouts.insert(name.to_owned(), scout);
        self
    }

    /// What it says about a type: how it is configured, and the policy that suits it.
    #[must_use]
    pub fn describe(mut self, name: &str, descriptor: Descriptor) -> Self {
        self.descriptors.insert(name.to_owned(), descriptor);
        self
    }

    /// It offers this value under this key, next to others.
    #[must_use]
    pub fn has(mut self, key: &str, value: &str) -> Self {
        let values = self.hello.has.entry(key.to_owned()).or_default();
        values.values.push(value.to_owned());
        self
    }

    /// It has so much of this: `ram_mb`, `gpu`, …
    #[must_use]
    pub fn amount(mut self, name: &str, amount: u64) -> Self {
        self.hello.amounts.insert(name.to_owned(), amount);
        self
    }

    /// Its place in the operator's order; lower is preferred, and otherwise it is 0.
    #[must_use]
    pub fn rank(mut self, rank: i32) -> Self {
        self.hello.rank = rank;
        self
    }

    /// It has this locality label, next to others.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.hello.hints.push(hint.to_owned());
        self
    }

    /// The program and its version, for people.
    #[must_use]
    pub fn software(mut self, software: &str) -> Self {
        software.clone_into(&mut self.hello.software);
        self
    }

    /// How long attempts may go on when the worker leaves; otherwise 30 seconds.
    #[must_use]
    pub fn leave_grace(mut self, grace: Duration) -> Self {
        self.leave_grace = grace;
        self
    }

    /// How long an attempt that ran out of time, or that the worker takes leave of, has to end by
    /// itself; otherwise 10 seconds. When the server stops an attempt, it says how long.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.stop_grace = grace;
        self
    }

    /// It can tell which inputs it holds.
    #[must_use]
    pub fn inventory(mut self, inventory: impl Inventory) -> Self {
        self.inventory = Some(Arc::new(inventory));
        self
    }

    /// Checks what was given.
    pub fn build(mut self) -> Result<Worker, Error> {
        if self.types.is_empty() && self.scouts.is_empty() {
            // To the server, a list without types means any type.
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
    /// What it does and what it looks for, as it says in its hello.
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

/// A name for this process that no other has.
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
    fn what_the_server_would_refuse_is_refused_here() {
        assert!(builder().build().is_ok());
        assert_eq!(problem(builder().name("")), "`worker` is missing");
        assert_eq!(problem(builder().slots(0)), "`slots` is 0, which is not between 1 and 100000");
        let idle = Builder::new("127.0.0.1:1").name("w");
        assert_eq!(problem(idle), "`types` is empty: there is nothing to do");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        let mut builder = builder();
        builder.address = "not an address".to_owned();
        assert_eq!(problem(builder), "`not an address` is not the address of a server");
    }

    #[test]
    fn no_two_processes_have_one_instance() {
        assert_ne!(instance().unwrap(), instance().unwrap());
    }
}
