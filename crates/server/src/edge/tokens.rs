//! Tokens are made, listed and revoked.

use model::{Millis, TenantId};
use proto::{Invalid, v1};
use store::Setting;
use tonic::Status;

use super::guard::Caller;
use super::{Door, answer};
use crate::limits::exceeded;
use crate::tokens::{Grant, Scope, TOKENS_MAX, Token, scopes};

impl Door {
    pub(crate) async fn make_token(
        &self,
        caller: Caller,
        mut request: v1::NewTokenRequest,
    ) -> Result<v1::NewTokenResponse, Status> {
        let invalid = |error: Invalid| answer::invalid(&error);
        let scopes = scopes(&request.scopes).map_err(invalid)?;
        if scopes.iter().all(|scope| scope.is_for_tenants()) {
            caller.own("tenant", &mut request.tenant)?;
        }
        proto::optional_name("tenant", &request.tenant).map_err(invalid)?;
        let tenant = (!request.tenant.is_empty()).then(|| TenantId::new(&request.tenant));
        let grant = Grant { tenant, scopes };
        if !caller.grant().covers(&grant) {
            return Err(Status::permission_denied(
                "nobody can give away more than they have: the token that asks has not all of \
                 these scopes",
            ));
        }
        let lasts = request.lasts_ms.map(|ms| Millis(i64::try_from(ms).unwrap_or(i64::MAX / 2)));
        let known = self.kept_tokens().await?;
        if known.len() >= TOKENS_MAX {
            let found = format!("there are {} tokens", known.len());
            return Err(exceeded(("tokens_max", TOKENS_MAX), found, "revoke some"));
        }
        if !self.tokens.is_on() && !grant.allows(Scope::Admin) {
            return Err(Status::failed_precondition(
                "there are no tokens yet, and from the first one on nobody gets in without; \
                 hint: make one with `--scope admin` first",
            ));
        }
        if !request.name.is_empty() && known.iter().any(|token| token.name == request.name) {
            let problem = format!("is `{}`, which another token has", request.name);
            return Err(answer::invalid(&Invalid::new("name", problem)));
        }
        let (secret, token) =
            Token::make(&request.name, grant, (self.store.now(), lasts)).map_err(invalid)?;
        self.change_tokens(token.setting()).await?;
        let secret = secret.reveal().to_owned();
        Ok(v1::NewTokenResponse { secret, token: Some(token.shown()) })
    }

    pub(crate) async fn remove_token(
        &self,
        caller: Caller,
        request: v1::RevokeTokenRequest,
    ) -> Result<v1::RevokeTokenResponse, Status> {
        let known = self.kept_tokens().await?;
        let is_meant = |token: &&Token| token.is_called(&request.token) && reaches(&caller, token);
        let Some(token) = known.iter().find(is_meant) else {
            return Err(Status::not_found(format!(
                "there is no token `{}`; hint: `maitre token list` has their ids and names",
                request.token
            )));
        };
        let is_admin = |token: &&Token| token.grant.allows(Scope::Admin);
        let others = known.iter().filter(|other| other.id() != token.id());
        let is_last = is_admin(&token) && !others.clone().any(|other| is_admin(&other));
        if is_last && others.count() > 0 {
            return Err(Status::failed_precondition(
                "this is the last token that may do everything, and there are others; hint: make \
                 another with `--scope admin`, or revoke the others first",
            ));
        }
        self.change_tokens(token.removal()).await?;
        Ok(v1::RevokeTokenResponse { token: Some(token.shown()) })
    }

    pub(crate) async fn list_tokens(&self, caller: Caller) -> Result<v1::TokensResponse, Status> {
        let known = self.kept_tokens().await?;
        let seen = known.iter().filter(|token| reaches(&caller, token));
        Ok(v1::TokensResponse { tokens: seen.map(Token::shown).collect() })
    }

    async fn kept_tokens(&self) -> Result<Vec<Token>, Status> {
        let settings = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        Ok(settings.iter().filter_map(Token::kept).collect())
    }

    async fn change_tokens(&self, setting: Setting) -> Result<(), Status> {
        let failed = |error: store::Error| answer::failed(&error);
        self.store.set(vec![setting]).await.map_err(failed)?;
        self.tokens.read(&self.store.settings().await.map_err(failed)?);
        Ok(())
    }
}

/// Tokens of others do not exist, as far as a tenant is concerned.
fn reaches(caller: &Caller, token: &Token) -> bool {
    caller.tenant().is_none_or(|own| token.grant.tenant.as_ref() == Some(own))
}
