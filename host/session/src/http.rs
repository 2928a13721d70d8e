//! What the tools of a Session reach over HTTP: its gate, as far as each call may use it, and what was refused there, told to the
//! Trace.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use floe_environment::CallSite;
use floe_network::{Denial, Gate, GateOptions, HostGrants, Reach};
use floe_runtime::capability::http::{GatedHttp, Http, ObserveDenials};

use crate::message_queue::MessageQueue;

/// Refusals of one call that the Trace is told of.
const MOST_TOLD: usize = 16;

/// The HTTP of a Session's tools.
pub(crate) struct SessionHttp {
    gate: Gate,
    /// Weak, because a call may outlive the Session by a moment.
    queue: Weak<MessageQueue>,
}

impl SessionHttp {
    /// Nothing is opened.
    pub(crate) fn new(options: GateOptions, queue: &Arc<MessageQueue>) -> SessionHttp {
        SessionHttp {
            gate: Gate::new(options),
            queue: Arc::downgrade(queue),
        }
    }

    /// The gate itself, for what the host asks on its own account.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// What one call reaches. In plan mode, and where the call was decided as one that only reads, nothing is sent that could
    /// change anything.
    pub(crate) fn for_call(&self, call: &CallSite) -> Arc<dyn Http> {
        let reach = Reach {
            reads_only: call.reads_only(),
            // What cannot be read was never granted.
            hosts: HostGrants::parse_names(&call.widening.hosts).unwrap_or_default(),
        };
        let denials = Denials {
            queue: self.queue.clone(),
            told: Mutex::default(),
        };
        Arc::new(GatedHttp::new(self.gate.clone(), reach, Arc::new(denials)))
    }
}

/// The refusals of one call. A tool may try the same host as often as it likes: it is told once.
struct Denials {
    queue: Weak<MessageQueue>,
    told: Mutex<Vec<String>>,
}

impl ObserveDenials for Denials {
    fn denied(&self, denial: &Denial) {
        let line = format!("{}:{} refused: {denial}", denial.host, denial.port);
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() >= MOST_TOLD || told.contains(&line) {
                return;
            }
            told.push(line.clone());
        }
        if let Some(queue) = self.queue.upgrade() {
            queue.warn("host_refused", line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use floe_environment::Secrets;
    use floe_network::Resolve;
    use floe_protocol::{AgentId, Body, EventMsg, Home, Mode, OmniMessage, Permission, SessionId};
    use floe_runtime::capability::http::Request;
    use floe_runtime::{Capability, CapabilitySet};
    use floe_sandbox::{Widening, WorkspaceMode};
    use floe_trace::TraceWriter;
    use futures_util::future::BoxFuture;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::observer::Observer;

    #[derive(Default)]
    struct Kept(Mutex<Vec<OmniMessage>>);

    impl Observer for Kept {
        fn message(&self, message: &OmniMessage) {
            self.0.lock().unwrap().push(message.clone());
        }
    }

    impl Kept {
        fn warnings(&self) -> Vec<String> {
            let messages = self.0.lock().unwrap();
            let warning = |message: &OmniMessage| match &message.body {
                Body::EventMsg(EventMsg::Warning { code, message }) => {
                    Some(format!("{code}: {message}"))
                }
                _ => None,
            };
            messages.iter().filter_map(warning).collect()
        }
    }

    /// Knows nobody, so that whatever is let through ends there.
    struct Nobody;

    impl Resolve for Nobody {
        fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
        }
    }

    struct Stage {
        http: SessionHttp,
        kept: Arc<Kept>,
        _queue: Arc<MessageQueue>,
        _home: tempfile::TempDir,
    }

    fn stage() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let writer = TraceWriter::create(&home, &AgentId::default(), &SessionId::generate());
        let kept = Arc::new(Kept::default());
        let observer = Arc::clone(&kept) as Arc<dyn Observer>;
        let queue = Arc::new(MessageQueue::new(writer, observer, Secrets::default()));
        let options = GateOptions {
            resolver: Arc::new(Nobody),
            ..GateOptions::default()
        };
        Stage {
            http: SessionHttp::new(options, &queue),
            kept,
            _queue: queue,
            _home: folder,
        }
    }

    fn call(mode: Mode, permission: Permission, hosts: &[&str]) -> CallSite {
        CallSite {
            tool_call_id: "1".into(),
            tool: "http_request".into(),
            capabilities: CapabilitySet::EMPTY.with(Capability::Http),
            mode,
            permission,
            workspace: WorkspaceMode::ReadOnly,
            widening: Widening {
                hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
                ..Widening::default()
            },
            cancel: CancellationToken::new(),
        }
    }

    async fn sent(http: &Arc<dyn Http>, method: &str, url: &str) -> (String, String) {
        let request = Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
            max_redirects: None,
        };
        let Err(failure) = http.send(request).await else {
            panic!("{url} was reached")
        };
        (failure.code, failure.message)
    }

    #[tokio::test]
    async fn a_call_writes_in_build_mode_with_a_permission_to_write_and_a_host_that_allows_it() {
        let stage = stage();
        for (mode, permission, hosts, words) in [
            (
                Mode::Plan,
                Permission::Write,
                &["a.example:80"][..],
                "may only read",
            ),
            (
                Mode::Build,
                Permission::ReadOnly,
                &["a.example:80"],
                "may only read",
            ),
            (Mode::Build, Permission::Write, &[], "network.write_domains"),
            (
                Mode::Build,
                Permission::Write,
                &["a.example:80"],
                "cannot be resolved",
            ),
        ] {
            let http = stage.http.for_call(&call(mode, permission, hosts));
            let (_, message) = sent(&http, "POST", "http://a.example/").await;
            assert!(
                message.contains(words),
                "{mode:?} {permission:?}: {message}"
            );
            let (code, _) = sent(&http, "GET", "http://a.example/").await;
            assert_eq!(code, "io");
        }
    }

    #[tokio::test]
    async fn a_widening_is_the_calls_own() {
        let stage = stage();
        let widened = call(Mode::Build, Permission::ReadOnly, &["a.example:8080"]);
        let with = stage.http.for_call(&widened);
        let without = stage
            .http
            .for_call(&call(Mode::Build, Permission::ReadOnly, &[]));
        assert_eq!(sent(&with, "GET", "http://a.example:8080/").await.0, "io");
        assert_eq!(
            sent(&without, "GET", "http://a.example:8080/").await.0,
            "denied-host"
        );
    }

    #[tokio::test]
    async fn a_refused_host_is_an_event_once_per_call() {
        let stage = stage();
        for _ in 0..2 {
            let http = stage
                .http
                .for_call(&call(Mode::Build, Permission::ReadOnly, &[]));
            for _ in 0..3 {
                let (code, _) = sent(&http, "GET", "http://localhost/").await;
                assert_eq!(code, "denied-host");
            }
        }
        let line = "host_refused: localhost:80 refused: Blocked local/private host: localhost";
        assert_eq!(stage.kept.warnings(), [line, line]);
        let http = stage
            .http
            .for_call(&call(Mode::Build, Permission::ReadOnly, &[]));
        for number in 0..100 {
            sent(&http, "GET", &format!("http://a{number}.local/")).await;
        }
        assert_eq!(stage.kept.warnings().len(), 2 + MOST_TOLD);
    }
}
