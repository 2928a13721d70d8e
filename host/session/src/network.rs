//! What the commands of a Session reach over the network: its proxy, started when the first command needs it, and what was
//! refused there, told to the Trace and to the call that ran at the time.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use floe_command::{CommandError, NetworkAccess, Pass};
use floe_network::{
    GrantError, HostGrants, ObserveNetwork, Proxy, ProxyOptions, Refusal, SystemResolver,
};
use floe_sandbox::{Network, Sandbox, Tier};
use tokio::sync::OnceCell;

use crate::message_queue::MessageQueue;

/// Refusals that one call is told of.
const MOST_TOLD: usize = 16;

/// The network of a Session's commands.
pub(crate) struct SessionNetwork {
    network: Network,
    sandbox: Arc<Sandbox>,
    proxy: Arc<Proxy>,
    refusals: Arc<Refusals>,
    /// Whether the proxy serves; false where the sandbox has no network of its own to serve in.
    serving: OnceCell<bool>,
}

impl SessionNetwork {
    /// Nothing is started.
    ///
    /// # Errors
    ///
    /// A host of the policy is none.
    pub(crate) fn new(
        network: Network,
        hosts: &[String],
        sandbox: Arc<Sandbox>,
        queue: &Arc<MessageQueue>,
    ) -> Result<SessionNetwork, GrantError> {
        let granted = HostGrants::parse(hosts)?;
        let refusals = Arc::new(Refusals::new(Arc::downgrade(queue)));
        let proxy = Proxy::new(ProxyOptions {
            grants: match network {
                Network::Proxy => granted,
                // Where it is off, a list grants nothing; where it is the machine's own, there is no proxy.
                Network::Off | Network::Host => HostGrants::default(),
            },
            resolver: Arc::new(SystemResolver),
            observer: Arc::clone(&refusals) as _,
            ..ProxyOptions::default()
        });
        Ok(SessionNetwork {
            network,
            sandbox,
            proxy,
            refusals,
            serving: OnceCell::new(),
        })
    }

    /// What commands reach without a grant.
    pub(crate) fn mode(&self) -> Network {
        self.network
    }

    /// The hosts that every command may reach.
    pub(crate) fn granted(&self) -> HostGrants {
        self.proxy.grants().clone()
    }

    /// What was refused while calls run.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Ends the proxy, and with it every connection through it.
    pub(crate) fn close(&self) {
        self.proxy.close();
    }

    /// Starts the proxy in the Session's network, once.
    async fn serve(&self) -> Result<bool, CommandError> {
        let start = || async {
            let sandbox = Arc::clone(&self.sandbox);
            let listener = tokio::task::spawn_blocking(move || sandbox.proxy_listener())
                .await
                .map_err(|_| unusable(&io::ErrorKind::Other.into()))??;
            let Some(listener) = listener else {
                // Without walls there is nothing that would have to be led anywhere.
                if self.sandbox.confinement().tier != Tier::Unconfined {
                    self.refusals.warn(
                        "network_unavailable",
                        "Commands reach no allowed host: their walls give them no network of their own that a proxy could serve"
                            .to_owned(),
                    );
                }
                return Ok(false);
            };
            self.proxy
                .serve(listener)
                .map_err(|error| unusable(&error))?;
            Ok(true)
        };
        self.serving.get_or_try_init(start).await.copied()
    }
}

impl SessionNetwork {
    /// What a command needs that has the machine's own network.
    async fn admit_to_everything(&self) -> Result<Pass, CommandError> {
        let sandbox = Arc::clone(&self.sandbox);
        let tier = tokio::task::spawn_blocking(move || sandbox.settled_tier())
            .await
            .map_err(|_| unusable(&io::ErrorKind::Other.into()))??;
        // Elsewhere its home lies at another place.
        let has_home = matches!(tier, Tier::Native | Tier::Bwrap);
        Ok(Pass {
            environment: has_home.then(cargo_home).into_iter().collect(),
            hold: None,
        })
    }
}

fn unusable(error: &io::Error) -> CommandError {
    CommandError::Network {
        message: format!(
            "what leads commands to the network cannot be started: {}",
            error.kind()
        ),
    }
}

/// Where cargo puts what it downloads: it can only use a home that it can write to, and the person's own, whose packages
/// commands use as they are, is not such a one. So where cargo's registry may be reached it has a home in the Session's.
fn cargo_home() -> (String, String) {
    ("CARGO_HOME".to_owned(), format!("{}/.cargo", Sandbox::HOME))
}

/// Whether these are all the hosts that cargo's registry consists of.
fn reach_cargo_registry(granted: &HostGrants) -> bool {
    const REGISTRY: [&str; 2] = ["index.crates.io", "static.crates.io"];
    HostGrants::parse(&REGISTRY).is_ok_and(|registry| granted.covers(&registry))
}

#[async_trait]
impl NetworkAccess for SessionNetwork {
    async fn admit(&self, hosts: &[String]) -> Result<Pass, CommandError> {
        let own = HostGrants::parse_names(hosts).map_err(|error| CommandError::Network {
            message: error.to_string(),
        })?;
        let nothing_granted = own.is_empty() && self.proxy.grants().is_empty();
        let wanted = match self.network {
            Network::Host => return self.admit_to_everything().await,
            Network::Off => !nothing_granted,
            // With nothing granted, what is refused is still told by name.
            Network::Proxy => true,
        };
        if !wanted || !self.serve().await? {
            return Ok(Pass::default());
        }
        let mut all = self.proxy.grants().clone();
        all.extend(&own);
        let token = match own.is_empty() {
            true => None,
            false => Some(self.proxy.admit(&own).map_err(|error| unusable(&error))?),
        };
        let mut environment = self.proxy.environment(token.as_ref());
        if reach_cargo_registry(&all) {
            environment.push(cargo_home());
        }
        Ok(Pass {
            environment,
            hold: token.map(|token| Box::new(token) as _),
        })
    }
}

/// What was refused, for the calls that ran at the time.
pub(crate) struct Refusals {
    /// Weak, because connections may outlive the Session by a moment.
    queue: Weak<MessageQueue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the id of the call.
    running: BTreeMap<String, Told>,
    /// What came while no call ran: the next one is told.
    between: Told,
}

/// The lines for one call.
#[derive(Clone, Default)]
struct Told {
    lines: Vec<String>,
    more: bool,
}

impl Told {
    /// Whether `line` is new to the call and still fits.
    fn add(&mut self, line: &str) -> bool {
        let known = self.lines.iter().any(|told| told == line);
        let fits = self.lines.len() < MOST_TOLD;
        self.more |= !known && !fits;
        if !known && fits {
            self.lines.push(line.to_owned());
        }
        !known && fits
    }
}

impl Refusals {
    fn new(queue: Weak<MessageQueue>) -> Refusals {
        Refusals {
            queue,
            state: Mutex::default(),
        }
    }

    /// A call begins that may run commands.
    pub(crate) fn begin(&self, call: &str) {
        let state = &mut *self.state();
        let between = std::mem::take(&mut state.between);
        state.running.insert(call.to_owned(), between);
    }

    /// The call ends: what was refused meanwhile, as lines for the model.
    pub(crate) fn end(&self, call: &str) -> Vec<String> {
        let told = self.state().running.remove(call).unwrap_or_default();
        let line = |line: &String| format!("[network: {line}]");
        let mut lines: Vec<_> = told.lines.iter().map(line).collect();
        if told.more {
            lines.push("[network: further hosts were refused]".to_owned());
        }
        lines
    }

    fn warn(&self, code: &str, message: String) {
        if let Some(queue) = self.queue.upgrade() {
            queue.warn(code, message);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObserveNetwork for Refusals {
    /// A command may ask for the same host as often as it likes: it is told once per call.
    fn refused(&self, refusal: &Refusal) {
        let line = refusal.to_string();
        let is_new = {
            let State { running, between } = &mut *self.state();
            if running.is_empty() {
                between.add(&line)
            } else {
                let calls = running.values_mut();
                calls.fold(false, |is_new, told| told.add(&line) | is_new)
            }
        };
        if is_new {
            self.warn("host_refused", line);
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_network::Reason;

    use super::*;

    fn refusal(number: usize) -> Refusal {
        Refusal {
            target: format!("{number}.test:443"),
            reason: Reason::NotGranted,
        }
    }

    const LINE: &str =
        "[network: 1.test:443 refused: not among the allowed hosts; ask with widen.hosts]";

    #[test]
    fn each_host_is_told_once_to_each_call_that_ran_at_the_time() {
        let refusals = Refusals::new(Weak::new());
        refusals.begin("one");
        refusals.refused(&refusal(1));
        refusals.begin("two");
        refusals.refused(&refusal(1));
        refusals.refused(&refusal(1));
        assert_eq!(refusals.end("one"), [LINE]);
        assert_eq!(refusals.end("two"), [LINE]);
        refusals.begin("three");
        assert!(refusals.end("three").is_empty());
        assert!(refusals.end("never begun").is_empty());
    }

    #[test]
    fn what_was_refused_between_two_calls_is_told_to_the_next() {
        let refusals = Refusals::new(Weak::new());
        refusals.refused(&refusal(1));
        refusals.begin("one");
        assert_eq!(refusals.end("one"), [LINE]);
    }

    #[test]
    fn a_flood_of_hosts_is_cut_and_that_is_said() {
        let refusals = Refusals::new(Weak::new());
        refusals.begin("one");
        for number in 0..10_000 {
            refusals.refused(&refusal(number));
        }
        let lines = refusals.end("one");
        assert_eq!(lines.len(), MOST_TOLD + 1);
        assert_eq!(lines[MOST_TOLD], "[network: further hosts were refused]");
    }
}
