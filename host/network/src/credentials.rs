//! Tokens: what a command shows that a person granted more than the rest of the Session has. A token is known for the life of
//! its command; when it is taken back, what still runs on it is cut.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::grants::HostGrants;

/// The user that all tokens belong to.
pub(crate) const USER: &str = "floe";

/// What a client showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// A password of [`USER`].
    Token(String),
    /// Anything else.
    Other,
}

/// What a client that showed something has beside the Session's hosts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admission {
    pub(crate) grants: HostGrants,
    /// Cancelled when the token is taken back.
    pub(crate) ended: CancellationToken,
}

/// The tokens that are known now.
#[derive(Debug, Default)]
pub(crate) struct Credentials(Mutex<HashMap<String, Admission>>);

impl Credentials {
    /// Makes a token.
    ///
    /// # Errors
    ///
    /// There is no randomness to make it of.
    pub(crate) fn add(&self, grants: HostGrants) -> io::Result<String> {
        let token = random()?;
        let admission = Admission {
            grants,
            ended: CancellationToken::new(),
        };
        self.lock().insert(token.clone(), admission);
        Ok(token)
    }

    /// Takes it back.
    pub(crate) fn remove(&self, token: &str) {
        if let Some(admission) = self.lock().remove(token) {
            admission.ended.cancel();
        }
    }

    /// What `shown` gives; none where it is not known, or no longer.
    pub(crate) fn admission(&self, shown: &Shown) -> Option<Admission> {
        match shown {
            Shown::Nothing => Some(Admission::default()),
            Shown::Token(token) => self.lock().get(token).cloned(),
            Shown::Other => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Admission>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 bits that nobody guesses.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_until_it_is_taken_back() {
        let credentials = Credentials::default();
        let grants = HostGrants::parse(&["a.test"]).unwrap();
        let token = credentials.add(grants.clone()).unwrap();
        assert_ne!(token, credentials.add(grants.clone()).unwrap());
        let shown = Shown::Token(token.clone());
        let admission = credentials.admission(&shown).unwrap();
        assert_eq!(admission.grants, grants);
        credentials.remove(&token);
        assert!(admission.ended.is_cancelled());
        assert!(credentials.admission(&shown).is_none());
        assert!(credentials.admission(&Shown::Other).is_none());
        assert!(
            credentials
                .admission(&Shown::Nothing)
                .unwrap()
                .grants
                .is_empty()
        );
    }
}
