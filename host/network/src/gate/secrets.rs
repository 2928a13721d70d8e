//! Secrets that tools use without having them. A tool writes `{{secret:NAME}}` into the value of a header field; the gate puts the value in
//! on the way out, for the hosts that the secret is for and for no other, and takes it out of whatever comes back.

use std::fmt;

use http::header::{HeaderMap, HeaderValue};

use super::address::Address;
use super::error::GateError;
use super::scope::DomainList;

/// What a placeholder begins with.
pub(super) const PLACEHOLDER: &str = "{{secret:";
const END: &str = "}}";
/// Characters below which a value is too common to be looked for in what comes back.
const SHORTEST: usize = 8;

/// One secret.
#[derive(Clone)]
pub struct HostSecret {
    /// Its name, as placeholders write it.
    pub name: String,
    /// What it is, or why there is none, in words for the model.
    pub value: Result<String, String>,
    /// Where it may be sent.
    pub hosts: DomainList,
}

/// Never shows the value.
impl fmt::Debug for HostSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSecret")
            .field("name", &self.name)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

/// All secrets of a Session.
#[derive(Debug, Clone, Default)]
pub struct HostSecrets(Vec<HostSecret>);

impl HostSecrets {
    /// These, each under its own name. A value that could not be taken out of what comes back is none.
    pub fn new(mut secrets: Vec<HostSecret>) -> HostSecrets {
        for HostSecret { value, .. } in &mut secrets {
            if value
                .as_ref()
                .is_ok_and(|value| value.chars().count() < SHORTEST)
            {
                *value = Err(format!(
                    "has less than {SHORTEST} characters: too few to be recognised in what comes back"
                ));
            }
        }
        HostSecrets(secrets)
    }

    /// The secrets.
    pub fn iter(&self) -> impl Iterator<Item = &HostSecret> {
        self.0.iter()
    }

    /// Names and values of those that have one.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter_map(|secret| Some((&*secret.name, secret.value.as_deref().ok()?)))
    }

    /// Whether one of them may be sent to `to`, which may know it by then.
    pub(super) fn is_any_for(&self, to: &Address) -> bool {
        self.0
            .iter()
            .any(|secret| secret.value.is_ok() && secret.hosts.holds(&to.target.host))
    }

    /// Puts values in the place of placeholders. True where there was one.
    ///
    /// # Errors
    ///
    /// A name that there is no secret of, or a place that it is not for.
    pub(super) fn fill(
        &self,
        headers: &mut HeaderMap,
        to: &Address,
        is_private_to_the_machine: bool,
    ) -> Result<bool, GateError> {
        let mut any = false;
        for value in headers.values_mut() {
            let Some(text) = placeholder_in(value) else {
                continue;
            };
            any = true;
            if !to.is_secure && !is_private_to_the_machine {
                return Err(GateError::invalid(
                    "a secret is sent over https only; use an https URL",
                ));
            }
            let mut filled = HeaderValue::from_str(&self.filled(&text, to)?).map_err(|_| {
                GateError::invalid("the secret holds characters that no header field can have")
            })?;
            filled.set_sensitive(true);
            *value = filled;
        }
        Ok(any)
    }

    fn filled(&self, text: &str, to: &Address) -> Result<String, GateError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once(PLACEHOLDER) {
            let (name, after) = behind.split_once(END).ok_or_else(|| {
                GateError::invalid(format!("a placeholder is written {PLACEHOLDER}NAME{END}"))
            })?;
            filled.push_str(before);
            filled.push_str(self.value(name, to)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Whether a secret exists that is not for this host is not told apart from one that does not.
    fn value(&self, name: &str, to: &Address) -> Result<&str, GateError> {
        let host = &to.target.host;
        let of_host = |secret: &&HostSecret| secret.name == name && secret.hosts.holds(host);
        let secret = self.0.iter().find(of_host).ok_or_else(|| {
            let shown: String = name.chars().take(60).collect();
            GateError::invalid(format!(
                "there is no secret \"{}\" for {host}; the person sets them up under `secrets` in the configuration",
                shown.escape_debug()
            ))
        })?;
        secret
            .value
            .as_deref()
            .map_err(|reason| GateError::invalid(format!("the secret \"{name}\" {reason}")))
    }
}

fn placeholder_in(value: &HeaderValue) -> Option<String> {
    let text = String::from_utf8_lossy(value.as_bytes());
    text.contains(PLACEHOLDER).then(|| text.into_owned())
}
