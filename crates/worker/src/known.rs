//! Configurations and the context, as the server sent them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::v1;
use serde_json::Value;

use crate::lock::lock;

/// The configuration of a type. Both are objects, and empty if the type has no descriptor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// The settings of operators.
    pub admin: Value,
    /// Further settings for workers.
    pub worker: Value,
}

/// The context that is published to all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Increases with every change. 0 means that there is none.
    pub version: u64,
    /// A JSON object, or null.
    pub value: Value,
}

/// The newest configurations and the newest context.
#[derive(Debug, Default)]
pub(crate) struct Told {
    configurations: Mutex<BTreeMap<String, Arc<Configuration>>>,
    context: Mutex<Arc<Context>>,
}

impl Told {
    pub(crate) fn configured(&self, configured: &v1::Configured) {
        let read = |json: &str| serde_json::from_str(json).unwrap_or_default();
        let configuration =
            Configuration { admin: read(&configured.admin), worker: read(&configured.worker) };
        lock(&self.configurations).insert(configured.r#type.clone(), Arc::new(configuration));
    }

    pub(crate) fn published(&self, context: &v1::Context) {
        let value = serde_json::from_str(&context.json).unwrap_or_default();
        *lock(&self.context) = Arc::new(Context { version: context.version, value });
    }

    pub(crate) fn configuration(&self, kind: &str) -> Arc<Configuration> {
        lock(&self.configurations).get(kind).map(Arc::clone).unwrap_or_default()
    }

    pub(crate) fn context(&self) -> Arc<Context> {
        Arc::clone(&lock(&self.context))
    }
}
