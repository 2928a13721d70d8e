//! The requests of a client. A call of the protocol is a call of the Session; it ends with its request, unless a person has to be asked in
//! the newer way of the protocol: then the call is parked under its id until the client comes back with the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe_environment::{CallOutcome, ToolCallOutput};
use floe_session::Session;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorData,
    Implementation, InputResponses, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::ask::OpenQuestion;
use crate::desk::{Desk, LiveCall};
use crate::progress::{Progress, Step};
use crate::{ask, clarify, listing, result};

/// Calls of one connection at once, those that wait included.
const MOST_CALLS: usize = 256;
/// How long a call waits for its client to come back with an answer. Later calls are decided behind it.
const PARKED: Duration = Duration::from_secs(600);

/// Serves one connection.
pub(crate) struct Server {
    session: Arc<Session>,
    desk: Arc<Desk>,
    /// Ends all calls.
    ended: CancellationToken,
    /// The client has closed an end of its pipe: nothing but results can be written any more.
    gone: CancellationToken,
    /// Whether commands have a network.
    commands_reach_out: bool,
    room: Semaphore,
    parked: Arc<Mutex<HashMap<String, Call>>>,
}

/// A call that runs or waits.
struct Call {
    id: String,
    tool: String,
    arguments: Option<JsonObject>,
    live: Arc<LiveCall>,
    cancel: CancellationToken,
    output: BoxFuture<'static, ToolCallOutput>,
    /// How often it was parked.
    round: u32,
}

impl Server {
    pub(crate) fn new(
        session: Arc<Session>,
        desk: Arc<Desk>,
        (ended, gone): (CancellationToken, CancellationToken),
        commands_reach_out: bool,
    ) -> Server {
        Server {
            session,
            desk,
            ended,
            gone,
            commands_reach_out,
            room: Semaphore::new(MOST_CALLS),
            parked: Arc::default(),
        }
    }

    fn begin(&self, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Call {
        let arguments = request
            .arguments
            .as_ref()
            .map_or_else(|| "{}".to_owned(), object_text);
        let call = self.session.name_call(&request.name, &arguments);
        let id = call.tool_call_id.clone();
        let live = self.desk.enter(&id, context);
        let cancel = self.ended.child_token();
        Call {
            output: self.session.start_call(call, cancel.clone()).boxed(),
            id,
            tool: request.name.into_owned(),
            arguments: request.arguments,
            live,
            cancel,
            round: 0,
        }
    }

    /// Runs a call on for a request, to its end or to a question.
    async fn follow(
        &self,
        mut call: Call,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let progress = call.live.follow();
        let telling = tell(&progress, &context);
        tokio::pin!(telling);
        let mut told = false;
        loop {
            tokio::select! {
                output = &mut call.output => {
                    self.desk.leave(&call.id);
                    progress.close();
                    if !told && !call.cancel.is_cancelled() {
                        tokio::select! {
                            () = &mut telling => {}
                            () = call.cancel.cancelled() => {}
                            () = self.gone.cancelled() => {}
                            () = context.ct.cancelled() => {}
                        }
                    }
                    let remark = match output.end {
                        CallOutcome::Denied => call.live.unasked(),
                        _ => None,
                    };
                    return result::result(output, remark).into();
                }
                question = call.live.asked() => {
                    progress.close();
                    let waiting = ask::input_required(question, &call.id);
                    self.park(call);
                    return waiting.into();
                }
                () = context.ct.cancelled(), if !call.cancel.is_cancelled() => call.cancel.cancel(),
                () = &mut telling, if !told => told = true,
            }
        }
    }

    /// Keeps a call until its client comes back; not forever, because later calls are decided behind it.
    fn park(&self, mut call: Call) {
        call.round += 1;
        let (id, round) = (call.id.clone(), call.round);
        let (parked, desk) = (Arc::clone(&self.parked), Arc::clone(&self.desk));
        self.parked().insert(id.clone(), call);
        let ended = self.ended.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(PARKED) => {}
                () = ended.cancelled() => {}
            }
            let mut parked = parked.lock().unwrap_or_else(PoisonError::into_inner);
            if parked.get(&id).is_some_and(|call| call.round == round)
                && let Some(call) = parked.remove(&id)
            {
                call.cancel.cancel();
                desk.leave(&id);
            }
        });
    }

    /// Goes on with a parked call.
    async fn resume(
        &self,
        state: &str,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let call = self.take(state, &request);
        let Some(call) = call else {
            return result::refused(
                "The question about this call is no longer open. Make the call again, without a requestState.",
            )
            .into();
        };
        self.answer(&call, request.input_responses.as_ref());
        // Where nothing was answered the question is still open, and the client is asked again.
        self.follow(call, context).await
    }

    /// Passes the answer on to the question that waits, where it came with the request.
    fn answer(&self, call: &Call, responses: Option<&InputResponses>) {
        match call.live.open() {
            Some(OpenQuestion::Approval(_)) => {
                if let Some(answer) = ask::answer_in(responses) {
                    call.live.answered();
                    self.session.environment().answer(&call.id, answer);
                }
            }
            Some(OpenQuestion::Clarification(question)) => {
                if let Some(reply) = clarify::reply_in(responses, &question) {
                    call.live.answered();
                    self.session.answer_question(&call.id, reply);
                }
            }
            None => {}
        }
    }

    /// The parked call of this state, if it is the one that is made again.
    fn take(&self, state: &str, request: &CallToolRequestParams) -> Option<Call> {
        let mut parked = self.parked();
        let call = parked.get(state)?;
        if call.tool != request.name || call.arguments != request.arguments {
            return None;
        }
        parked.remove(state)
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Call>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arguments as the text that the gates judge.
fn object_text(arguments: &JsonObject) -> String {
    // A map of JSON values always has a text.
    serde_json::to_string(arguments).unwrap_or_default()
}

/// Tells the client of output, where it asked for that.
async fn tell(progress: &Progress, context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    progress
        .run(|Step { characters, text }| {
            // Numbers of the protocol are those of JavaScript.
            #[expect(
                clippy::cast_precision_loss,
                reason = "a count of more than 2^53 characters is none"
            )]
            let mut notification = ProgressNotificationParam::new(token.clone(), characters as f64);
            notification.message = (!text.is_empty()).then_some(text);
            let told = context.peer.notify_progress(notification);
            async move { told.await.is_ok() }
        })
        .await;
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut floe = Implementation::new("floe", env!("CARGO_PKG_VERSION"));
        floe.title = Some("Floe".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(floe)
            .with_instructions(
                "Tools that run in a sandbox. Paths are relative to the Workspace, which is also /workspace; commands are confined \
                 to it. A command that is left running lives until this connection ends.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.session.tools().into_iter();
        let tools = tools.map(|tool| listing::tool(tool, self.commands_reach_out));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.room.try_acquire() else {
            return Ok(result::refused(format!(
                "Too many calls at once (limit {MOST_CALLS}). Wait until one has ended."
            ))
            .into());
        };
        Ok(match request.request_state.take() {
            Some(state) => self.resume(&state, request, context).await,
            None => {
                let call = self.begin(request, &context);
                self.follow(call, context).await
            }
        })
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method arrives here where its parameters are not those of the method.
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "tools/call takes {\"name\": string, \"arguments\": object}",
                None,
            ),
            method @ ("initialize" | "ping" | "tools/list") => {
                ErrorData::invalid_params(format!("these are no parameters of {method}"), None)
            }
            method => ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {method}"),
                None,
            ),
        })
    }
}
