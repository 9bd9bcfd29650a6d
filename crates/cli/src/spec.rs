//! What a job is, on the command line: shared by `submit` and `run`.

use std::collections::BTreeMap;

use clap::Args;
use proto::v1;

use crate::print::Failure;
use crate::settings::Length;

/// The type of jobs that are commands.
pub(crate) const EXEC: &str = "exec";

/// What to submit.
#[derive(Args, Clone)]
pub(crate) struct JobOptions {
    /// Whose it is; otherwise the token's, or `default`.
    #[arg(long, env = "MAITRE_TENANT", default_value = "", hide_default_value = true)]
    tenant: String,
    /// Its type; a command after `--` is of type `exec`.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// What the worker gets to read, for types that are not commands.
    #[arg(long, conflicts_with = "command")]
    payload: Option<String>,
    /// Higher is sooner, from -1000 to 1000.
    #[arg(long, short, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// The pool it must run in.
    #[arg(long)]
    pool: Option<String>,
    /// What it needs of a worker; several values are alternatives: `--need os=linux,bsd`.
    #[arg(long = "need", value_name = "KEY=VALUE")]
    needs: Vec<String>,
    /// Slots that it takes.
    #[arg(long, default_value_t = 1)]
    slots: u32,
    /// Amounts that it takes: `--amount ram_mb=2048`.
    #[arg(long = "amount", value_name = "NAME=NUMBER")]
    amounts: Vec<String>,
    /// The locality label that it wants.
    #[arg(long)]
    hint: Option<String>,
    /// An input that it reads, and its size: a worker that holds it is preferred.
    #[arg(long = "input", value_name = "DIGEST=BYTES")]
    inputs: Vec<String>,
    /// What it must hold alone while it runs; `*` for any free one of its tenant's.
    #[arg(long)]
    resource: Option<String>,
    /// Labels for people and filters.
    #[arg(long = "label", short, value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Its tenant has at most one unfinished job of this type and key.
    #[arg(long, value_name = "KEY")]
    dedupe: Option<String>,
    /// Not to start for so long.
    #[arg(long, value_name = "LENGTH")]
    delay: Option<Length>,
    /// Fail if it has not started after so long.
    #[arg(long, value_name = "LENGTH")]
    start_within: Option<Length>,
    /// The longest an attempt may run.
    #[arg(long, value_name = "LENGTH")]
    timeout: Option<Length>,
    /// The longest an attempt may go without a word.
    #[arg(long, value_name = "LENGTH")]
    silence_timeout: Option<Length>,
    /// How often to try.
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// How long it is expected to run.
    #[arg(long, value_name = "LENGTH")]
    estimate: Option<Length>,
    /// What it is expected to cost.
    #[arg(long)]
    cost: Option<f64>,
    /// Jobs that belong together.
    #[arg(long)]
    group: Option<String>,
    /// The job that it came from.
    #[arg(long, value_name = "ID")]
    parent: Option<u64>,
    /// Jobs of one type, tenant and key are expected to use what earlier ones used.
    #[arg(long, value_name = "KEY")]
    history_key: Option<String>,
    /// Tell this address when the job is final: `https://a.example/done`.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Environment of a command.
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", requires = "command")]
    environment: Vec<String>,
    /// Working directory of a command; by default one of its own, which is removed afterwards.
    #[arg(long, value_name = "DIR", requires = "command")]
    dir: Option<String>,
    /// What a command reads from its standard input.
    #[arg(long, requires = "command")]
    stdin: Option<String>,
    /// A command and its arguments.
    #[arg(last = true)]
    command: Vec<String>,
}

impl JobOptions {
    /// What goes to the scheduler; `now_ms` is its time.
    pub(crate) fn spec(&self, now_ms: i64) -> Result<v1::Spec, Failure> {
        let (kind, payload) = self.work()?;
        Ok(v1::Spec { r#type: kind, payload, ..self.base(now_ms)? })
    }

    /// The same, before there is anything to run.
    pub(crate) fn base(&self, now_ms: i64) -> Result<v1::Spec, Failure> {
        let later = |length: Length| now_ms.saturating_add(length.millis().0);
        let mut needs = std::collections::HashMap::new();
        for (key, value) in pairs("--need", &self.needs)? {
            let values = value.split(',').map(str::to_owned).collect();
            needs.insert(key, v1::Values { values });
        }
        let mut amounts = std::collections::HashMap::new();
        for (name, amount) in pairs("--amount", &self.amounts)? {
            let number = amount.parse().map_err(|_| Failure::Input {
                error: format!("`--amount {name}={amount}` is not a whole number"),
                hint: None,
            })?;
            amounts.insert(name, number);
        }
        Ok(v1::Spec {
            tenant: self.tenant.clone(),
            r#type: self.kind.clone().unwrap_or_default(),
            pool: self.pool.clone().unwrap_or_default(),
            needs,
            slots: self.slots,
            amounts,
            priority: self.priority,
            hint: self.hint.clone().unwrap_or_default(),
            inputs: self.inputs.iter().map(|text| input(text)).collect::<Result<_, _>>()?,
            resource: self.resource.clone().unwrap_or_default(),
            dedupe_key: self.dedupe.clone().unwrap_or_default(),
            not_before_ms: self.delay.map(later),
            start_before_ms: self.start_within.map(later),
            run_timeout_ms: self.timeout.map(unsigned),
            silence_timeout_ms: self.silence_timeout.map(unsigned),
            retry: self
                .attempts
                .map(|attempts_max| v1::Retry { attempts_max, ..v1::Retry::default() }),
            labels: pairs("--label", &self.labels)?.into_iter().collect(),
            estimate_ms: self.estimate.map(unsigned),
            cost: self.cost,
            group: self.group.clone().unwrap_or_default(),
            parent: self.parent.unwrap_or_default(),
            history_key: self.history_key.clone().unwrap_or_default(),
            webhook: self.webhook.clone().unwrap_or_default(),
            ..v1::Spec::default()
        })
    }

    fn work(&self) -> Result<(String, Vec<u8>), Failure> {
        if !self.command.is_empty() {
            return self.command_payload();
        }
        let payload = self.payload.clone().unwrap_or_default().into_bytes();
        match &self.kind {
            Some(kind) => Ok((kind.clone(), payload)),
            None => Err(Failure::Input {
                error: "there is nothing to run".to_owned(),
                hint: Some(
                    "give a command after `--`, or a `--type` with its `--payload`".to_owned(),
                ),
            }),
        }
    }

    fn command_payload(&self) -> Result<(String, Vec<u8>), Failure> {
        let kind = self.kind.clone().unwrap_or_else(|| EXEC.to_owned());
        let call = Call {
            argv: self.command.clone(),
            env: pairs("--env", &self.environment)?.into_iter().collect(),
            dir: self.dir.clone(),
            stdin: self.stdin.clone(),
        };
        let payload = call.payload(&kind);
        Ok((kind, payload))
    }
}

/// A command: of type `exec` it is all the job's; of another type the worker has the command, and
/// the job only the arguments.
pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) dir: Option<String>,
    pub(crate) stdin: Option<String>,
}

impl Call {
    /// What the worker gets to read.
    pub(crate) fn payload(&self, kind: &str) -> Vec<u8> {
        let list = if kind == EXEC { "argv" } else { "args" };
        let mut payload = serde_json::json!({ list: self.argv });
        if !self.env.is_empty() {
            payload["env"] = serde_json::json!(self.env);
        }
        if let Some(dir) = &self.dir {
            payload["dir"] = dir.as_str().into();
        }
        if let Some(stdin) = &self.stdin {
            payload["stdin"] = stdin.as_str().into();
        }
        payload.to_string().into_bytes()
    }
}

/// `DIGEST=BYTES`, taken apart at the last `=`: a digest may have some itself.
fn input(text: &str) -> Result<v1::Input, Failure> {
    let split = text.rsplit_once('=').filter(|(digest, _)| !digest.is_empty());
    let parsed = split.and_then(|(digest, bytes)| Some((digest, bytes.parse().ok()?)));
    let (digest, bytes) = parsed.ok_or_else(|| Failure::Input {
        error: format!("`--input {text}` is not `DIGEST=BYTES`"),
        hint: Some("BYTES is a whole number, such as `--input sha256-ab12=1048576`".to_owned()),
    })?;
    Ok(v1::Input { digest: digest.to_owned(), bytes })
}

/// `KEY=VALUE`, taken apart.
pub(crate) fn pairs(flag: &str, texts: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |text: &String| {
        let split = text.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = split.ok_or_else(|| Failure::Input {
            error: format!("`{flag} {text}` is not `KEY=VALUE`"),
            hint: Some("a name, `=` and a value, such as `os=linux`".to_owned()),
        })?;
        Ok((key.to_owned(), value.to_owned()))
    };
    texts.iter().map(pair).collect()
}

pub(crate) fn unsigned(length: Length) -> u64 {
    u64::try_from(length.millis().0).unwrap_or(0)
}
