//! The questions, each as the requests that answer it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answer::{Reader, likeliest};
use crate::connection::RequestError;
use crate::error::QueryError;
use crate::query::{Answer, Kind, Position, Query, Target};
use crate::reply;
use crate::server::Server;
use crate::symbols;
use crate::text::Text;

/// How long a server that was started just now may take to say that it is at something.
const BEGINNING: Duration = Duration::from_millis(500);
/// How long after its start a server may still find that it has something to read.
const YOUTH: Duration = Duration::from_secs(5);
/// What is kept of the time for the answer itself while a server reads the project.
const RESERVE: Duration = Duration::from_secs(3);
/// How long it is waited before a server is asked again that has asked for that.
const AGAIN: Duration = Duration::from_millis(200);

/// What the protocol calls an answer that something else has overtaken.
const OVERTAKEN: [i64; 3] = [-32801, -32802, -32800];

impl Server {
    /// Answers a question about `path`, a file of the Workspace in `language`.
    ///
    /// # Errors
    ///
    /// There is no answer until then, and why.
    pub(crate) async fn ask(
        &self,
        query: &Query,
        path: &str,
        language: &str,
        until: Instant,
    ) -> Result<Answer, QueryError> {
        let kind = query.kind;
        let anew = kind == Kind::Diagnostics && !self.offers(kind);
        if !self.offers(kind) && kind != Kind::Diagnostics {
            return Err(QueryError::Unsupported {
                message: format!(
                    "The language server {} does not answer questions of the kind {}.",
                    self.name,
                    kind.as_str()
                ),
                hint: "Use grep instead.".to_owned(),
            });
        }
        let text = self.show(path, language, anew, until).await?;
        let most = query
            .max_results
            .map_or(usize::MAX, |most| most.max(1) as usize);
        let question = Question {
            server: self,
            path,
            text,
            until,
            most,
        };
        if self.started.elapsed() < BEGINNING {
            let begun = self.started + BEGINNING;
            self.heard.activity.begun(begun.min(until)).await;
        }
        let mut is_done;
        let answer = loop {
            is_done = self
                .heard
                .activity
                .settled(until - RESERVE.min(until - Instant::now()))
                .await;
            let answer = question.answer(query).await?;
            let is_empty = answer.locations.is_empty() && answer.text.is_none();
            let is_young = self.started.elapsed() < YOUTH && Instant::now() + RESERVE < until;
            let begins = is_empty && is_young && is_done && kind != Kind::Diagnostics;
            let soon = (Instant::now() + BEGINNING).min(until);
            if !begins || !self.heard.activity.begun(soon).await {
                break answer;
            }
        };
        Ok(if is_done {
            answer
        } else {
            self.unfinished(answer)
        })
    }

    /// An answer that may lack something.
    fn unfinished(&self, mut answer: Answer) -> Answer {
        let note = format!(
            "{} is still reading the project: ask again for all",
            self.name
        );
        answer.text = Some(match answer.text {
            Some(text) if answer.locations.is_empty() => format!("{text}\n[{note}]"),
            Some(text) => format!("{text}; {note}"),
            None => note,
        });
        answer
    }
}

/// A question with all that its requests need.
struct Question<'s> {
    server: &'s Server,
    path: &'s str,
    text: Arc<Text>,
    until: Instant,
    most: usize,
}

impl Question<'_> {
    async fn answer(&self, query: &Query) -> Result<Answer, QueryError> {
        match query.kind {
            Kind::Diagnostics => self.diagnostics().await,
            Kind::DocumentSymbols => {
                let result = self.request(query.kind, self.document()).await?;
                self.symbols(reply::symbols(&result)).await
            }
            Kind::WorkspaceSymbols => {
                let name = match &query.target {
                    Some(Target::Named(name)) => name,
                    _ => return Err(invalid("workspace-symbols needs a name, or a part of one.")),
                };
                let result = self.request(query.kind, json!({"query": name})).await?;
                let (found, all) = likeliest(reply::symbols(&result), name, self.most);
                let kept = found.len();
                let mut answer = self.symbols(found).await?;
                if all > kept {
                    answer.text = Some(format!("{kept} of {all} symbols"));
                }
                Ok(answer)
            }
            kind => match &query.target {
                Some(Target::At(position)) => self.at(kind, *position).await,
                Some(Target::Named(name)) if kind != Kind::Completion => {
                    self.named(kind, name).await
                }
                _ => Err(invalid(&format!(
                    "{} needs a place in the file.",
                    kind.as_str()
                ))),
            },
        }
    }

    /// About what stands at a place.
    async fn at(&self, kind: Kind, position: Position) -> Result<Answer, QueryError> {
        let offset = self.text.offset_of(position).map_err(QueryError::Invalid)?;
        self.at_byte(kind, offset).await
    }

    /// About what is called `name`: the first place that the server knows something of.
    async fn named(&self, kind: Kind, name: &str) -> Result<Answer, QueryError> {
        let server = self.server;
        let known = match server.offers(Kind::DocumentSymbols) {
            true => {
                let result = self.request(Kind::DocumentSymbols, self.document()).await?;
                reply::symbols(&result)
            }
            false => Vec::new(),
        };
        let places = symbols::candidates(name, &self.text, &known, server.encoding);
        if places.is_empty() {
            let message = format!("There is no `{name}` in \"{}\".", self.path);
            return Err(QueryError::NotFound(message));
        }
        let mut answer = Answer::default();
        for place in places {
            answer = self.at_byte(kind, place).await?;
            if !answer.locations.is_empty() || answer.text.is_some() {
                break;
            }
        }
        Ok(answer)
    }

    async fn at_byte(&self, kind: Kind, offset: usize) -> Result<Answer, QueryError> {
        let mut params = self.document();
        params["position"] = json!(self.text.to_wire(offset, self.server.encoding));
        match kind {
            Kind::References => params["context"] = json!({"includeDeclaration": true}),
            Kind::Completion => params["context"] = json!({"triggerKind": 1}),
            _ => {}
        }
        let result = self.request(kind, params).await?;
        let most = self.most;
        self.read(move |reader| match kind {
            Kind::Hover => reader.hover(&reply::hover(&result)),
            Kind::Completion => {
                let (found, more) = reply::completions(&result);
                reader.completions(&found, more, most)
            }
            _ => reader.locations(reply::locations(&result), most),
        })
        .await
    }

    async fn symbols(&self, found: Vec<reply::WireSymbol>) -> Result<Answer, QueryError> {
        let (path, most) = (self.path.to_owned(), self.most);
        self.read(move |reader| reader.symbols(found, &path, most))
            .await
    }

    async fn diagnostics(&self) -> Result<Answer, QueryError> {
        let server = self.server;
        let (path, most) = (self.path.to_owned(), self.most);
        let found = if server.offers(Kind::Diagnostics) {
            let result = self.request(Kind::Diagnostics, self.document()).await?;
            reply::diagnostics(&result["items"])
        } else {
            let published = &server.heard.diagnostics;
            let found = tokio::select! {
                found = published.settled(self.path, self.until) => found.ok_or(RequestError::Timeout),
                () = server.connection.ended() => Err(RequestError::Ended),
            };
            match found {
                Ok(found) => found,
                Err(error) => return Err(server.explain(error, "examine the file").await),
            }
        };
        self.read(move |reader| reader.diagnostics(found, &path, most))
            .await
    }

    fn document(&self) -> Value {
        json!({"textDocument": {"uri": self.server.places.uri(self.path)}})
    }

    /// One request; again where the server asks for that.
    async fn request(&self, kind: Kind, params: Value) -> Result<Value, QueryError> {
        let server = self.server;
        loop {
            let asked = server
                .connection
                .request(kind.method(), params.clone(), self.until);
            match asked.await {
                Ok(result) => return Ok(result),
                Err(RequestError::Refused(refusal))
                    if OVERTAKEN.contains(&refusal.code) && Instant::now() + AGAIN < self.until =>
                {
                    tokio::time::sleep(AGAIN).await;
                    server.heard.activity.settled(self.until).await;
                }
                Err(error) => return Err(server.explain(error, "answer").await),
            }
        }
    }

    async fn read(
        &self,
        read: impl FnOnce(&mut Reader) -> Answer + Send + 'static,
    ) -> Result<Answer, QueryError> {
        let mut reader = Reader::new(Arc::clone(&self.server.places), self.server.encoding);
        let read = tokio::task::spawn_blocking(move || read(&mut reader)).await;
        read.map_err(|_| QueryError::Server("The host broke off.".to_owned()))
    }
}

fn invalid(message: &str) -> QueryError {
    QueryError::Invalid(message.to_owned())
}
