//! Where a Session meets the requests of its client: the output of each call goes to the request that waits for it, and a question
//! about a call, or of one, to the person behind that request, in the way that the client knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use floe_environment::{Answer, Approver, Question};
use floe_protocol::{AskedQuestion, Body, DecidedBy, EventMsg, ModelMsg, OmniMessage, Phase};
use floe_session::{Clarifier, Observer, Reply};
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitResult, ProtocolVersion,
    RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use tokio::sync::watch;

use crate::ask::{self, OpenQuestion};
use crate::clarify;
use crate::connection::Describe;
use crate::progress::Progress;

/// The calls of a connection that somebody waits for.
pub(crate) struct Desk {
    calls: Mutex<HashMap<String, Arc<LiveCall>>>,
    observer: Arc<dyn Observer>,
    describe: Describe,
}

/// A call that was made and has not ended.
pub(crate) struct LiveCall {
    asking: Asking,
    /// The open question, where the request that made the call is answered with it.
    asked: watch::Sender<Option<OpenQuestion>>,
    /// Of the request that waits now.
    progress: Mutex<Arc<Progress>>,
    /// Why nobody could be asked.
    unasked: Mutex<Option<String>>,
}

/// How this client asks its person.
enum Asking {
    /// By a request of the host, while the call's own request waits.
    Now(Peer<RoleServer>),
    /// By a result of the call's request; the client makes it again with the answer.
    Later,
    /// Not at all.
    Never,
}

impl Asking {
    fn of(context: &RequestContext<RoleServer>) -> Asking {
        let elicitation = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation);
        // A client that names neither form means the one with fields.
        let has_forms = elicitation
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        let is_stateless = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        match (has_forms, is_stateless) {
            (false, _) => Asking::Never,
            (true, true) => Asking::Later,
            (true, false) => Asking::Now(context.peer.clone()),
        }
    }
}

/// What a model reads beside a denial that nobody was asked about.
const NEVER: &str = "Nobody could be asked: this client does not support elicitation. The person who set it up can allow such calls: with \
                     `--approve allow-all` or `--approve read-only` behind `floe mcp`, or by the key `approve` in Floe's config.yaml.";

impl LiveCall {
    fn new(context: &RequestContext<RoleServer>) -> LiveCall {
        LiveCall {
            asking: Asking::of(context),
            asked: watch::Sender::new(None),
            progress: Mutex::default(),
            unasked: Mutex::default(),
        }
    }

    /// The question that waits for another request, if there is one.
    pub(crate) fn open(&self) -> Option<OpenQuestion> {
        self.asked.borrow().clone()
    }

    /// The question that waits for another request. Pending where there is none.
    pub(crate) async fn asked(&self) -> OpenQuestion {
        let mut asked = self.asked.subscribe();
        loop {
            if let Some(question) = &*asked.borrow_and_update() {
                return question.clone();
            }
            if asked.changed().await.is_err() {
                // The sender lives as long as this call.
                return std::future::pending().await;
            }
        }
    }

    /// The question was answered.
    pub(crate) fn answered(&self) {
        self.asked.send_replace(None);
    }

    /// What the running request tells of the output; it takes the place of that of the request before.
    pub(crate) fn follow(&self) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        *lock(&self.progress) = Arc::clone(&progress);
        progress
    }

    /// Why nobody could be asked, where that is so.
    pub(crate) fn unasked(&self) -> Option<String> {
        lock(&self.unasked).clone()
    }
}

impl Desk {
    pub(crate) fn new(observer: Arc<dyn Observer>, describe: Describe) -> Desk {
        Desk {
            calls: Mutex::default(),
            observer,
            describe,
        }
    }

    /// A call is about to be made for a request.
    pub(crate) fn enter(
        &self,
        tool_call_id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Arc<LiveCall> {
        let live = Arc::new(LiveCall::new(context));
        lock(&self.calls).insert(tool_call_id.to_owned(), Arc::clone(&live));
        live
    }

    /// A call has ended.
    pub(crate) fn leave(&self, tool_call_id: &str) {
        lock(&self.calls).remove(tool_call_id);
    }

    fn find(&self, tool_call_id: &str) -> Option<Arc<LiveCall>> {
        lock(&self.calls).get(tool_call_id).cloned()
    }

    fn progress(&self, tool_call_id: &str) -> Option<Arc<Progress>> {
        Some(Arc::clone(&*lock(&self.find(tool_call_id)?.progress)))
    }
}

impl Observer for Desk {
    fn message(&self, message: &OmniMessage) {
        if !message.origin.is_empty() {
            // Of a child, whose calls are named apart from those of the client.
            return self.observer.message(message);
        }
        match &message.body {
            Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                event_type: Phase::Delta,
                output,
                tool_call_id,
                ..
            }) if !output.is_empty() => {
                if let Some(progress) = self.progress(tool_call_id) {
                    progress.wrote(output);
                }
            }
            Body::EventMsg(EventMsg::ToolProgress {
                tool_call_id,
                characters,
            }) => {
                if let Some(progress) = self.progress(tool_call_id) {
                    progress.counted(*characters);
                }
            }
            _ => {}
        }
        self.observer.message(message);
    }
}

#[async_trait]
impl Approver for Desk {
    async fn decide(&self, question: &Question) -> Answer {
        let Some(live) = self.find(&question.tool_call_id) else {
            return Answer::Unavailable("no request of the client belongs to this call".into());
        };
        match &live.asking {
            Asking::Now(peer) => match ask_now(peer, ask::form((self.describe)(question))).await {
                Ok(result) => ask::answer(&result),
                Err(reason) => Answer::Unavailable(reason),
            },
            Asking::Later => {
                let open = OpenQuestion::Approval((self.describe)(question));
                live.asked.send_replace(Some(open));
                // Answered through the Environment, by the call's id.
                std::future::pending().await
            }
            Asking::Never => {
                // A widening is denied in words that say already what the person can do.
                if question.widening.is_none() {
                    *lock(&live.unasked) = Some(NEVER.to_owned());
                }
                Answer::Unavailable("the client does not support elicitation".into())
            }
        }
    }

    /// The protocol asks clients to put such questions to a person.
    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Person
    }
}

#[async_trait]
impl Clarifier for Desk {
    async fn clarify(&self, question: &AskedQuestion) -> Reply {
        let Some(live) = self.find(&question.tool_call_id) else {
            return Reply::Unavailable("No request of the client belongs to this call.".into());
        };
        match &live.asking {
            Asking::Now(peer) => match ask_now(peer, clarify::form(question)).await {
                Ok(result) => clarify::reply(&result, question),
                Err(reason) => Reply::Unavailable(format!("Nobody could be asked: {reason}.")),
            },
            Asking::Later => {
                let open = OpenQuestion::Clarification(question.clone());
                live.asked.send_replace(Some(open));
                // Answered through the Session, by the call's id.
                std::future::pending().await
            }
            Asking::Never => Reply::Unavailable(
                "Nobody could be asked: this client does not support elicitation.".into(),
            ),
        }
    }
}

/// Asks the client; the error says why it did not.
async fn ask_now(peer: &Peer<RoleServer>, form: ElicitRequest) -> Result<ElicitResult, String> {
    let request = ServerRequest::ElicitRequest(form);
    let asked = peer
        .send_cancellable_request(request, PeerRequestOptions::no_options())
        .await;
    let handle = match asked {
        Ok(handle) => handle,
        Err(error) => return Err(format!("the client cannot be asked: {error}")),
    };
    let mut open = ShownQuestion {
        peer,
        id: Some(handle.id.clone()),
    };
    let response = handle.await_response().await;
    open.id = None;
    match response {
        Ok(ClientResult::ElicitResult(result)) => Ok(result),
        Ok(_) => Err("the client answered something else".into()),
        Err(error) => Err(format!("the client did not ask: {error}")),
    }
}

/// A question that the client shows. Dropped unanswered, because its call was interrupted or its time is up, it is taken back.
struct ShownQuestion<'peer> {
    peer: &'peer Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(host)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        host.spawn(async move {
            let cancelled = CancelledNotificationParam::new(
                Some(id),
                Some("the call is no longer waiting".into()),
            );
            let _ = peer.notify_cancelled(cancelled).await;
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
