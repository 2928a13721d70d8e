//! What tools reach over HTTP, and the secrets that they use without having them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use floe_network::{
    DomainList, DomainPattern, GateOptions, GrantError, HostGrant, HostGrants, HostSecret,
    HostSecrets, Scope,
};
use serde::{Deserialize, Serialize};

use super::entries;

/// The longest file that can be a secret.
const LONGEST_SECRET: usize = 16 << 10;

/// What tools reach over HTTP. Commands have their own, in `shell`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolNetwork {
    /// Hosts that may be read.
    #[serde(deserialize_with = "entries::<_, DomainPattern>")]
    pub(crate) allowed_domains: Vec<String>,
    /// Hosts of these that may be written to as well.
    #[serde(deserialize_with = "entries::<_, DomainPattern>")]
    pub(crate) write_domains: Vec<String>,
    /// Hosts that are never reached.
    #[serde(deserialize_with = "entries::<_, DomainPattern>")]
    pub(crate) blocked_domains: Vec<String>,
    /// Ports that may be asked for.
    pub(crate) ports: Vec<u16>,
    /// Hosts that are granted for every method, each with its port.
    #[serde(deserialize_with = "entries::<_, HostGrant>")]
    pub(crate) hosts: Vec<String>,
}

impl Default for ToolNetwork {
    fn default() -> ToolNetwork {
        let scope = Scope::default();
        let texts = |list: &DomainList| list.iter().map(ToString::to_string).collect();
        ToolNetwork {
            allowed_domains: texts(&scope.allowed),
            write_domains: texts(&scope.write),
            blocked_domains: texts(&scope.blocked),
            ports: scope.ports,
            hosts: Vec::new(),
        }
    }
}

/// Where a secret comes from and where it may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretSource {
    /// The environment variable that holds it.
    pub(crate) env: Option<String>,
    /// The file that holds it.
    pub(crate) file: Option<PathBuf>,
    /// The hosts that it may be sent to.
    #[serde(deserialize_with = "entries::<_, DomainPattern>")]
    pub(crate) hosts: Vec<String>,
}

/// Secrets by name.
pub(crate) type Secrets = BTreeMap<String, SecretSource>;

impl ToolNetwork {
    /// What the person grants for one run.
    pub(crate) fn allow(&mut self, hosts: &[HostGrant]) {
        self.hosts.extend(hosts.iter().map(ToString::to_string));
    }

    /// What may be reached without a grant.
    ///
    /// # Errors
    ///
    /// An entry of a list cannot be understood.
    pub(crate) fn scope(&self) -> Result<Scope, GrantError> {
        Ok(Scope {
            allowed: DomainList::parse(&self.allowed_domains)?,
            write: DomainList::parse(&self.write_domains)?,
            blocked: DomainList::parse(&self.blocked_domains)?,
            ports: self.ports.clone(),
        })
    }

    /// What the gate of a Session is made from.
    ///
    /// # Errors
    ///
    /// An entry of a list cannot be understood.
    pub(crate) fn gate(&self, secrets: HostSecrets) -> Result<GateOptions, GrantError> {
        Ok(GateOptions {
            scope: self.scope()?,
            grants: HostGrants::parse(&self.hosts)?,
            secrets,
            ..GateOptions::default()
        })
    }
}

impl SecretSource {
    /// What is wrong with it under `name`, if something is.
    pub(super) fn fault(&self, name: &str) -> Option<&'static str> {
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if !is_name {
            return Some("has a name that is not of letters, digits, `_`, `-` and dots.");
        }
        if self.env.is_some() == self.file.is_some() {
            return Some("comes from `env` or from `file`, and from one of them.");
        }
        if self.hosts.is_empty() {
            return Some("names no `hosts` that it may be sent to.");
        }
        let is_everywhere = self.hosts.iter().any(|host| host == "*");
        is_everywhere.then_some("cannot be for every host; name them.")
    }

    fn value(&self) -> Result<String, String> {
        let text = match (&self.env, &self.file) {
            (Some(variable), _) => std::env::var(variable)
                .map_err(|_| format!("is not there: the variable {variable} is not set"))?,
            (None, Some(file)) => {
                read(file).ok_or_else(|| "is not there: its file cannot be read".to_owned())?
            }
            (None, None) => return Err("is not there".to_owned()),
        };
        let text = text.trim_end_matches(['\r', '\n']);
        match text.is_empty() {
            true => Err("is empty".to_owned()),
            false => Ok(text.to_owned()),
        }
    }
}

/// Everything that a Session knows of secrets. What is not there is told to whoever uses it, so that a Session which does not is
/// not kept from starting.
pub(crate) fn host_secrets(secrets: &Secrets) -> HostSecrets {
    let each = secrets.iter().map(|(name, source)| HostSecret {
        name: name.clone(),
        value: source.value(),
        hosts: DomainList::parse(&source.hosts).unwrap_or_default(),
    });
    HostSecrets::new(each.collect())
}

fn read(file: &Path) -> Option<String> {
    let metadata = std::fs::metadata(file).ok()?;
    let fits = metadata.is_file() && metadata.len() <= LONGEST_SECRET as u64;
    fits.then(|| std::fs::read_to_string(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_where_it_lies_without_the_end_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, content).unwrap();
            SecretSource {
                file: Some(file),
                hosts: vec!["a.example".into()],
                ..SecretSource::default()
            }
        };
        let missing = SecretSource {
            file: Some(folder.path().join("missing")),
            ..SecretSource::default()
        };
        let unset = SecretSource {
            env: Some("FLOE_TEST_OF_A_VARIABLE_THAT_IS_NOT_SET".into()),
            ..SecretSource::default()
        };
        assert_eq!(file("a", "value\r\n").value().unwrap(), "value");
        assert_eq!(file("b", "\n").value().unwrap_err(), "is empty");
        assert!(file("c", &"x".repeat(LONGEST_SECRET + 1)).value().is_err());
        assert!(missing.value().unwrap_err().starts_with("is not there"));
        assert!(unset.value().unwrap_err().ends_with("is not set"));
    }

    #[test]
    fn the_command_line_grants_a_host_for_one_run_with_its_address() {
        let mut network = ToolNetwork::default();
        network.allow(&["a.test:80=127.0.0.1:8080".parse().unwrap()]);
        assert_eq!(network.hosts, ["a.test:80=127.0.0.1:8080"]);
        assert!(network.gate(HostSecrets::default()).is_ok());
    }
}
