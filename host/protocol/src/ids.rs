//! Identifiers that become file names: checked once, trusted inside.

use serde::{Deserialize, Serialize};

/// A name that cannot be an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is no {what}; use 1 to 128 of the characters A-Z a-z 0-9 _ -",
    name.escape_debug()
)]
pub struct IdError {
    what: &'static str,
    name: String,
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(name: String) -> Result<Self, IdError> {
                if is_identifier(&name) {
                    Ok($name(name))
                } else {
                    Err(IdError { what: $what, name })
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(name: &str) -> Result<Self, IdError> {
                name.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

identifier!(
    /// The name of an agent's folder.
    AgentId,
    "agent id"
);
identifier!(
    /// A Session: `session-YYYY-MM-DD-HH-mm-ss-<8 hex>` in local time (spec/environment.md 1.11).
    SessionId,
    "session id"
);

impl Default for AgentId {
    /// The agent that is used where none is named.
    fn default() -> Self {
        AgentId("default_agent".into())
    }
}

impl SessionId {
    /// A fresh identifier of this moment.
    pub fn generate() -> SessionId {
        let now = jiff::ZonedDateTime::now();
        let random = getrandom::u32().unwrap_or_else(|_| std::process::id());
        SessionId(format!(
            "session-{}-{random:08x}",
            now.strftime("%Y-%m-%d-%H-%M-%S")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_separators_dots_or_spaces_are_refused() {
        for name in ["", "..", "a/b", "a b", "a\n", "ä", "a.b", "a "] {
            assert!(name.parse::<AgentId>().is_err(), "{name:?}");
        }
        assert!("Agent_1-x".parse::<AgentId>().is_ok());
    }

    #[test]
    fn a_fresh_session_id_has_the_form_of_the_contract() {
        let id = SessionId::generate();
        let parts: Vec<&str> = id.as_str().split('-').collect();
        assert_eq!(parts.len(), 8, "{id}");
        assert_eq!(parts[0], "session");
        assert_eq!(parts[7].len(), 8);
        assert!(id.as_str().parse::<SessionId>().is_ok());
    }
}
