//! `maitre token`: who may do what.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::TenantId;
use proto::v1;
use serde_json::{Value, json};
use server::{Grant, Scope, Token};
use store::Options as StoreOptions;

use crate::client::{Target, refused, wait};
use crate::place::Place;
use crate::print::{self, Failure};
use crate::settings::Length;
use crate::view;

/// Options of `maitre token`.
#[derive(Args)]
#[command(after_help = "\
Scopes: `submit`, `read` and `cancel` (jobs), `tenant-admin` (these three, and
tokens), `work` (be a worker), `admin` (everything). With `--tenant`, a token is
for that tenant's jobs alone; others do not exist for it.

The running scheduler is asked, with your token. With `--data-dir`, the data of
a stopped one is changed: that is how the first token is made.

Examples:
  maitre token new --scope admin --data-dir /var/lib/maitre
  maitre token new --scope work --name fleet > worker.token
  maitre token new --tenant acme --scope submit --scope read --lasts 90days
  maitre token revoke fleet")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
    /// The data directory of a scheduler that does not run.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// For machines.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Make a token; it is shown once.
    New(NewOptions),
    /// Let a token open nothing any more.
    Revoke {
        /// Its id or name.
        token: String,
    },
    /// List tokens; what is listed opens nothing.
    List,
    /// Show the key with which a tenant checks what it is told of its jobs.
    WebhookKey {
        /// Whose; otherwise the token's own.
        #[arg(default_value = "", hide_default_value = true)]
        tenant: String,
    },
}

#[derive(Args)]
struct NewOptions {
    /// What it allows: submit, read, cancel, work, tenant-admin or admin; may be given several
    /// times.
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<String>,
    /// Whose jobs it is for; otherwise everybody's.
    #[arg(long, default_value = "", hide_default_value = true)]
    tenant: String,
    /// What it is called.
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    /// It is good for so long; otherwise until it is revoked.
    #[arg(long, value_name = "LENGTH")]
    lasts: Option<Length>,
}

/// Makes, revokes or lists tokens.
pub(crate) fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    wait(async {
        match &options.data_dir {
            Some(data_dir) => options.on_store(data_dir).await,
            None => options.ask(target).await,
        }
    })
}

impl Options {
    async fn ask(&self, target: &Target) -> Result<(), Failure> {
        let mut admin = target.admin().await?;
        let refused = |status: tonic::Status| refused(&status);
        match &self.command {
            Command::New(new) => {
                let request = v1::NewTokenRequest {
                    name: new.name.clone(),
                    tenant: new.tenant.clone(),
                    scopes: new.scopes.clone(),
                    lasts_ms: new.lasts.map(|lasts| lasts.millis().0.unsigned_abs()),
                };
                let made = admin.new_token(request).await.map_err(refused)?.into_inner();
                self.show_new(&made.secret, &made.token.unwrap_or_default())
            }
            Command::Revoke { token } => {
                let request = v1::RevokeTokenRequest { token: token.clone() };
                let gone = admin.revoke_token(request).await.map_err(refused)?.into_inner();
                self.show_revoked(&gone.token.unwrap_or_default())
            }
            Command::List => {
                let listed = admin.tokens(v1::TokensRequest {}).await.map_err(refused)?;
                self.show_list(&listed.into_inner().tokens, target.now_ms().await?)
            }
            Command::WebhookKey { tenant } => {
                let request = v1::WebhookKeyRequest { tenant: tenant.clone() };
                let key = admin.webhook_key(request).await.map_err(refused)?.into_inner().key;
                if self.json { print::json(&json!({ "key": key })) } else { print::data(&key) }
            }
        }
    }

    async fn on_store(&self, data_dir: &Path) -> Result<(), Failure> {
        let kept = Place::Directory(data_dir.to_owned()).open(StoreOptions::default()).await?;
        let store = &kept.store;
        let failed = |error: store::Error| Failure::Other(error.into());
        let settings = store.settings().await.map_err(failed)?;
        let known: Vec<Token> = settings.iter().filter_map(Token::kept).collect();
        match &self.command {
            Command::New(new) => {
                let (secret, token) = new.make(&known, store.now())?;
                store.set(vec![token.setting()]).await.map_err(failed)?;
                self.show_new(secret.reveal(), &token.shown())
            }
            Command::Revoke { token } => {
                let found = known.iter().find(|known| known.is_called(token));
                let found = found.ok_or_else(|| Failure::Input {
                    error: format!("there is no token `{token}`"),
                    hint: Some("`maitre token list` has their ids and names".to_owned()),
                })?;
                store.set(vec![found.removal()]).await.map_err(failed)?;
                self.show_revoked(&found.shown())
            }
            Command::List => {
                let tokens: Vec<v1::Token> = known.iter().map(Token::shown).collect();
                self.show_list(&tokens, store.now().0)
            }
            Command::WebhookKey { .. } => Err(Failure::Input {
                error: "only a scheduler that runs knows the key".to_owned(),
                hint: Some("leave `--data-dir` out".to_owned()),
            }),
        }
    }

    fn show_new(&self, secret: &str, token: &v1::Token) -> Result<(), Failure> {
        if self.json {
            let mut value = as_json(token);
            value["secret"] = json!(secret);
            return print::json(&value);
        }
        print::note(&format!(
            "token {} ({}); this is the only time that it is shown:",
            token.id,
            token.scopes.join(", ")
        ));
        print::data(secret)
    }

    fn show_revoked(&self, token: &v1::Token) -> Result<(), Failure> {
        if self.json {
            return print::json(&as_json(token));
        }
        let name = if token.name.is_empty() { String::new() } else { format!(" `{}`", token.name) };
        print::data(&format!("token {}{name} opens nothing any more", token.id))
    }

    fn show_list(&self, tokens: &[v1::Token], now_ms: i64) -> Result<(), Failure> {
        if self.json {
            return print::json(&tokens.iter().map(as_json).collect::<Vec<_>>());
        }
        if tokens.is_empty() {
            print::note("no tokens: whoever reaches the scheduler may do everything");
            return Ok(());
        }
        let row = |token: &v1::Token| {
            vec![
                token.id.clone(),
                token.name.clone(),
                if token.tenant.is_empty() { "(all)".to_owned() } else { token.tenant.clone() },
                token.scopes.join(", "),
                view::ago(token.created_ms, now_ms),
                token.expires_ms.map_or_else(|| "never".to_owned(), |at| view::ago(at, now_ms)),
            ]
        };
        let header = ["token", "name", "tenant", "scopes", "made", "ends"];
        print::data(&print::table(&header, tokens.iter().map(row).collect(), &[]))
    }
}

impl NewOptions {
    fn make(
        &self,
        known: &[Token],
        now: model::Timestamp,
    ) -> Result<(server::Secret, Token), Failure> {
        let wrong = |error: proto::Invalid| Failure::Input { error: error.to_string(), hint: None };
        let scopes = server::scopes(&self.scopes).map_err(wrong)?;
        if !self.name.is_empty() && known.iter().any(|token| token.name == self.name) {
            return Err(Failure::Input {
                error: format!("there is a token `{}` already", self.name),
                hint: Some("give this one another name, or revoke that one".to_owned()),
            });
        }
        if known.is_empty() && !scopes.contains(&Scope::Admin) {
            return Err(Failure::Input {
                error: "the first token must be one that may do everything".to_owned(),
                hint: Some("from it on nobody gets in without: `--scope admin`".to_owned()),
            });
        }
        let tenant = (!self.tenant.is_empty()).then(|| TenantId::new(&self.tenant));
        let lasts = self.lasts.map(Length::millis);
        Token::make(&self.name, Grant { tenant, scopes }, (now, lasts)).map_err(wrong)
    }
}

fn as_json(token: &v1::Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "tenant": (!token.tenant.is_empty()).then_some(&token.tenant),
        "scopes": token.scopes,
        "created_ms": token.created_ms,
        "expires_ms": token.expires_ms,
    })
}
