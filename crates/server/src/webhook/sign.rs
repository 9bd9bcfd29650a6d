//! Signatures, as standardwebhooks.com has them: there are libraries that check them.

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::{TenantId, Timestamp};
use sha2::Sha256;

use crate::config::Webhooks;
use crate::secret::Secret;

/// What keys of tenants are drawn from the operator's secret for, and for nothing else.
const PURPOSE: &[u8] = b"maitre webhook key of tenant ";
/// What a key begins with where it is shown.
const PREFIX: &str = "whsec_";

/// The key of a tenant: who knows one cannot sign for another.
pub(crate) fn tenant_key(webhooks: &Webhooks, tenant: &TenantId) -> Option<Secret> {
    let secret = webhooks.secret.as_ref()?;
    let key = hmac(secret.reveal().as_bytes(), &[PURPOSE, tenant.to_string().as_bytes()]);
    Some(Secret::new(format!("{PREFIX}{}", STANDARD.encode(key))))
}

/// The headers that go with a body.
pub(super) fn headers(
    key: &Secret,
    id: u64,
    now: Timestamp,
    body: &str,
) -> Vec<(&'static str, HeaderValue)> {
    let (id, seconds) = (format!("maitre-{id}"), (now.0 / 1_000).to_string());
    let signature = signature(key, &id, &seconds, body);
    let headers =
        [("webhook-id", id), ("webhook-timestamp", seconds), ("webhook-signature", signature)];
    let value =
        |(name, text): (&'static str, String)| Some((name, HeaderValue::try_from(text).ok()?));
    headers.into_iter().filter_map(value).collect()
}

fn signature(key: &Secret, id: &str, seconds: &str, body: &str) -> String {
    let key = key.reveal().trim_start_matches(PREFIX);
    let key = STANDARD.decode(key).unwrap_or_default();
    let parts = [id, ".", seconds, ".", body].map(str::as_bytes);
    format!("v1,{}", STANDARD.encode(hmac(&key, &parts)))
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    for part in parts {
        hmac.update(part);
    }
    hmac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_as_the_standard_says() {
        // The example of the standard's own libraries.
        let key = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let body = r#"{"test": 2432232314}"#;
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn tenants_have_keys_of_their_own() {
        let secret = Some(Secret::new("0".repeat(32)));
        let webhooks = Webhooks { secret, ..Webhooks::default() };
        let key = |tenant| tenant_key(&webhooks, &TenantId::new(tenant)).unwrap();
        assert_eq!(key("a"), key("a"));
        assert_ne!(key("a"), key("b"));
        assert!(!format!("{:?}", key("a")).contains("whsec"));
    }
}
