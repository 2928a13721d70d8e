//! One server that runs: how it was greeted, what it can do, what it says of its own accord, and how it is let go.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::activity::Activity;
use crate::connection::{Connection, Receive, RequestError};
use crate::diagnostics::Diagnostics;
use crate::documents::{Documents, Step};
use crate::error::QueryError;
use crate::place::Places;
use crate::position::Encoding;
use crate::process::{self, Process, Started};
use crate::query::Kind;
use crate::settings::ServerSetting;
use crate::text::Text;

/// How long it is waited for the words of a process that has closed its output.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Announcements of one server that are kept.
const MOST_REGISTERED: usize = 256;
/// Bytes of the name or method of an announcement.
const LONGEST_NAME: usize = 256;

/// One server that runs.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) connection: Connection,
    process: Process,
    pub(crate) places: Arc<Places>,
    pub(crate) encoding: Encoding,
    capabilities: Value,
    pub(crate) heard: Arc<Heard>,
    pub(crate) documents: Arc<tokio::sync::Mutex<Documents>>,
    /// Folders of projects that it was told of.
    projects: tokio::sync::Mutex<HashSet<String>>,
    endings: Vec<String>,
    pub(crate) started: Instant,
    pub(crate) users: AtomicUsize,
    pub(crate) last_used: Mutex<Instant>,
}

/// What a server says of its own accord.
pub(crate) struct Heard {
    pub(crate) activity: Activity,
    pub(crate) diagnostics: Diagnostics,
    /// What it has announced after it was greeted: methods by the names of their announcements. One may be announced anew before the
    /// earlier announcement is withdrawn.
    registered: Mutex<HashMap<String, String>>,
    setting: ServerSetting,
    places: Arc<Places>,
    /// The folder that it was started for.
    project: String,
}

impl Receive for Heard {
    fn notified(&self, method: &str, params: &Value) {
        match method {
            "$/progress" => self.activity.progress(params),
            "experimental/serverStatus" => self.activity.status(params),
            "textDocument/publishDiagnostics" => {
                let uri = params["uri"].as_str();
                if let Some(path) = uri.and_then(|uri| self.places.relative(uri)) {
                    self.diagnostics.publish(&path, params);
                }
            }
            _ => {}
        }
    }

    fn asked(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "workspace/configuration" => {
                let items = params["items"].as_array()?.iter();
                let section = |item: &Value| {
                    let section = item["section"].as_str().unwrap_or_default();
                    self.setting.section(section)
                };
                Some(items.take(1000).map(section).collect())
            }
            "client/registerCapability" => {
                let mut registered = self.registered();
                for registration in params["registrations"].as_array()? {
                    let (id, method) = (&registration["id"], &registration["method"]);
                    if let (Some(id), Some(method)) = (id.as_str(), method.as_str())
                        && registered.len() < MOST_REGISTERED
                        && id.len().max(method.len()) <= LONGEST_NAME
                    {
                        registered.insert(id.to_owned(), method.to_owned());
                    }
                }
                Some(Value::Null)
            }
            "client/unregisterCapability" => {
                // The protocol has this misspelled name.
                for registration in params["unregisterations"].as_array()? {
                    if let Some(id) = registration["id"].as_str() {
                        self.registered().remove(id);
                    }
                }
                Some(Value::Null)
            }
            "workspace/workspaceFolders" => Some(json!([folder(&self.places, &self.project)])),
            // It only reads: what it wants changed it does not get.
            "workspace/applyEdit" => Some(json!({"applied": false, "failureReason": "read-only"})),
            "window/showDocument" => Some(json!({"success": false})),
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/diagnostic/refresh" => Some(Value::Null),
            _ => None,
        }
    }
}

impl Heard {
    fn registered(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A folder of the Workspace as servers are told of one.
fn folder(places: &Places, project: &str) -> Value {
    let name = project.rsplit('/').next().unwrap_or(project);
    let name = if name == "." { "workspace" } else { name };
    json!({"uri": places.uri(project), "name": name})
}

/// What we can do, so that a server says things as they are read here.
fn capabilities() -> Value {
    let kinds: Vec<u8> = (1..=26).collect();
    let tag = json!({"valueSet": [1]});
    json!({
        "general": {"positionEncodings": Encoding::OFFERED},
        // What clangd asked for before the protocol had a word for it.
        "offsetEncoding": Encoding::OFFERED,
        "window": {"workDoneProgress": true},
        "experimental": {"serverStatusNotification": true},
        "workspace": {
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": {"dynamicRegistration": false},
            "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": true},
            "symbol": {"symbolKind": {"valueSet": kinds}, "tagSupport": tag},
        },
        "textDocument": {
            "synchronization": {"didSave": true},
            "definition": {"linkSupport": true},
            "references": {},
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "completion": {
                "completionItem": {"snippetSupport": false, "documentationFormat": ["plaintext"]},
                "contextSupport": true,
            },
            "documentSymbol": {
                "hierarchicalDocumentSymbolSupport": true,
                "symbolKind": {"valueSet": kinds},
                "tagSupport": tag,
            },
            "publishDiagnostics": {"versionSupport": true, "relatedInformation": false},
            "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": false},
        },
    })
}

impl Server {
    /// Greets a server that was started for the project in the folder `project` of the Workspace.
    ///
    /// # Errors
    ///
    /// It went away, said nothing until then, or wants what we cannot do; in words.
    pub(crate) async fn greet(
        name: &str,
        setting: &ServerSetting,
        started: Started,
        places: Arc<Places>,
        project: &str,
        until: Instant,
    ) -> Result<Server, QueryError> {
        let heard = Arc::new(Heard {
            activity: Activity::new(),
            diagnostics: Diagnostics::new(),
            registered: Mutex::default(),
            setting: setting.clone(),
            places: Arc::clone(&places),
            project: project.to_owned(),
        });
        let connection = Connection::open(started.stdin, started.stdout, Arc::clone(&heard) as _);
        let endings = setting.languages.values().flatten();
        let endings = endings.map(|ending| format!(".{ending}"));
        let mut server = Server {
            name: name.to_owned(),
            connection,
            process: started.process,
            encoding: Encoding::Utf16,
            capabilities: Value::Null,
            documents: Arc::default(),
            projects: tokio::sync::Mutex::new(HashSet::from([project.to_owned()])),
            endings: endings
                .chain(setting.root_markers.iter().cloned())
                .collect(),
            started: Instant::now(),
            users: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            heard,
            places,
        };
        let root = folder(&server.places, project);
        let params = json!({
            // The server sees other process numbers than ours, and would take itself for an orphan.
            "processId": null,
            "clientInfo": {"name": "floe", "version": env!("CARGO_PKG_VERSION")},
            "rootPath": server.places.path(project),
            "rootUri": root["uri"],
            "workspaceFolders": [root],
            "capabilities": capabilities(),
            "initializationOptions": setting.section(""),
            "trace": "off",
        });
        let answer = server.connection.request("initialize", params, until).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(server.explain(error, "start").await),
        };
        server.encoding = match encoding(&answer) {
            Ok(encoding) => encoding,
            Err(unknown) => {
                return Err(QueryError::Server(format!(
                    "The language server {name} counts characters in a way that was not offered: {unknown}."
                )));
            }
        };
        server.capabilities = answer["capabilities"].take();
        for (method, params) in [
            ("initialized", json!({})),
            (
                "workspace/didChangeConfiguration",
                json!({"settings": setting.section("")}),
            ),
        ] {
            if let Err(error) = server.connection.notify(method, params, until).await {
                return Err(server.explain(error, "start").await);
            }
        }
        server.started = Instant::now();
        Ok(server)
    }

    /// Whether it answers such questions.
    pub(crate) fn offers(&self, kind: Kind) -> bool {
        let provider = &self.capabilities[kind.provider()];
        let is_static = !matches!(provider, Value::Null | Value::Bool(false));
        let registered = self.heard.registered();
        is_static || registered.values().any(|method| method == kind.method())
    }

    /// Shows it the file at `path` as it is on disk, and what has changed beside it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the server takes nothing more.
    pub(crate) async fn show(
        &self,
        path: &str,
        language: &str,
        anew: bool,
        until: Instant,
    ) -> Result<Arc<Text>, QueryError> {
        let mut documents = Arc::clone(&self.documents).lock_owned().await;
        let (places, endings) = (Arc::clone(&self.places), self.endings.clone());
        let (path, language) = (path.to_owned(), language.to_owned());
        let looked = tokio::task::spawn_blocking(move || {
            let looked = documents.look(places.workspace(), &path, &language, &endings);
            if anew && looked.is_ok() && documents.is_outdated(&path) {
                documents.reopen(&path);
            }
            (documents, looked)
        });
        let broke_off = |_| QueryError::Server("The host broke off.".to_owned());
        let (mut documents, looked) = looked.await.map_err(broke_off)?;
        let text = looked?;
        while let Some(step) = documents.unsent().front() {
            if let Err(error) = self.tell(step, until).await {
                drop(documents);
                return Err(self.explain(error, "take in a file").await);
            }
            documents.unsent().pop_front();
        }
        Ok(text)
    }

    async fn tell(&self, step: &Step, until: Instant) -> Result<(), RequestError> {
        let diagnostics = &self.heard.diagnostics;
        let (method, params) = match step {
            Step::Open {
                path,
                language,
                version,
                text,
            } => {
                diagnostics.expect(path, *version);
                let document = json!({
                    "uri": self.places.uri(path), "languageId": language, "version": version, "text": text.content(),
                });
                ("textDocument/didOpen", json!({"textDocument": document}))
            }
            Step::Change {
                path,
                version,
                text,
            } => {
                diagnostics.expect(path, *version);
                let params = json!({
                    "textDocument": {"uri": self.places.uri(path), "version": version},
                    "contentChanges": [{"text": text.content()}],
                });
                self.connection
                    .notify("textDocument/didChange", params, until)
                    .await?;
                if self.capabilities["textDocumentSync"]["save"].is_null() {
                    return Ok(());
                }
                let saved = json!({"textDocument": {"uri": self.places.uri(path)}});
                ("textDocument/didSave", saved)
            }
            Step::Close { path } => {
                diagnostics.forget(path);
                let closed = json!({"textDocument": {"uri": self.places.uri(path)}});
                ("textDocument/didClose", closed)
            }
            Step::Watched(changes) => {
                let changes: Vec<Value> = changes
                    .iter()
                    .map(|(path, kind)| json!({"uri": self.places.uri(path), "type": kind}))
                    .collect();
                let params = json!({"changes": changes});
                ("workspace/didChangeWatchedFiles", params)
            }
        };
        self.connection.notify(method, params, until).await
    }

    /// Tells it of a further project in the Workspace, where it can have several.
    pub(crate) async fn join(&self, project: &str, until: Instant) -> Result<(), RequestError> {
        let folders = &self.capabilities["workspace"]["workspaceFolders"];
        if folders["supported"] != true || folders["changeNotifications"] == Value::Null {
            return Ok(());
        }
        let mut projects = self.projects.lock().await;
        if projects.contains(project) {
            return Ok(());
        }
        let event = json!({"added": [folder(&self.places, project)], "removed": []});
        self.connection
            .notify(
                "workspace/didChangeWorkspaceFolders",
                json!({"event": event}),
                until,
            )
            .await?;
        projects.insert(project.to_owned());
        Ok(())
    }

    /// Why it does not answer, in words for a model.
    pub(crate) async fn explain(&self, error: RequestError, doing: &str) -> QueryError {
        let name = &self.name;
        match error {
            RequestError::Timeout if self.heard.activity.is_busy() => QueryError::Timeout(format!(
                "The language server {name} did not {doing} in time: it is still reading the project."
            )),
            RequestError::Timeout => QueryError::Timeout(format!(
                "The language server {name} did not {doing} in time.{}",
                self.last_words()
            )),
            RequestError::Refused(refusal) => QueryError::Server(format!(
                "The language server {name} refused to {doing}: {} (code {}).",
                self.places.shown(refusal.message.trim_end_matches('.')),
                refusal.code
            )),
            RequestError::Ended => QueryError::Server(self.obituary().await),
        }
    }

    /// How it went away.
    pub(crate) async fn obituary(&self) -> String {
        let reason = self.connection.end().unwrap_or_default();
        let event = self.process.ended(LAST_WORDS).await;
        let end = match &event {
            // What it did came before how it ended.
            None => reason,
            Some(_) if reason.contains("wrote") || reason.contains("asks") => reason,
            event => process::told(event.as_ref()),
        };
        // A server that says what is no message is not spoken to again.
        self.process.kill();
        format!(
            "The language server {} is gone: {end}.{}",
            self.name,
            self.last_words()
        )
    }

    fn last_words(&self) -> String {
        match self.process.last_words() {
            words if words.is_empty() => String::new(),
            words => format!(" It wrote:\n{}", self.places.shown(&words)),
        }
    }

    /// Asks it to end, and ends it.
    pub(crate) async fn stop(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let shut = self.connection.request("shutdown", Value::Null, until);
        if shut.await.is_ok() {
            let exit = self.connection.notify("exit", Value::Null, until);
            if exit.await.is_ok() {
                let left = until.saturating_duration_since(Instant::now());
                self.process.ended(left).await;
            }
        }
        self.process.kill();
    }

    /// Whether somebody has asked it since then, or is asking.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let last = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (self.users.load(Ordering::SeqCst) == 0).then_some(last)
    }
}

/// The unit in which a server counts characters; its word for it where we know none.
fn encoding(answer: &Value) -> Result<Encoding, String> {
    let said = &answer["capabilities"]["positionEncoding"];
    let said = said.as_str().or(answer["offsetEncoding"].as_str());
    match said {
        None => Ok(Encoding::Utf16),
        Some(name) => Encoding::from_name(name).ok_or_else(|| name.chars().take(40).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_that_of_the_protocol_of_clangd_or_utf_16() {
        let told = |answer: Value| encoding(&answer);
        assert_eq!(told(json!({})), Ok(Encoding::Utf16));
        assert_eq!(told(json!({"offsetEncoding": "utf-8"})), Ok(Encoding::Utf8));
        let both =
            json!({"capabilities": {"positionEncoding": "utf-32"}, "offsetEncoding": "utf-8"});
        assert_eq!(told(both), Ok(Encoding::Utf32));
        let other = json!({"capabilities": {"positionEncoding": "ebcdic"}});
        assert_eq!(told(other), Err("ebcdic".to_owned()));
    }

    #[test]
    fn what_is_announced_anew_outlives_the_earlier_announcement() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = floe_workspace::Workspace::open(folder.path()).unwrap();
        let root = workspace.canonical_path().to_owned();
        let heard = Heard {
            activity: Activity::new(),
            diagnostics: Diagnostics::new(),
            registered: Mutex::default(),
            setting: ServerSetting::default(),
            places: Arc::new(Places::new(workspace, &root, None)),
            project: ".".to_owned(),
        };
        let one = |id: &str| json!([{"id": id, "method": "textDocument/diagnostic"}]);
        let announce = |id| {
            heard.asked(
                "client/registerCapability",
                &json!({"registrations": one(id)}),
            )
        };
        let withdraw = |id| {
            heard.asked(
                "client/unregisterCapability",
                &json!({"unregisterations": one(id)}),
            )
        };
        announce("1");
        announce("2");
        withdraw("1");
        assert_eq!(heard.registered().len(), 1);
        withdraw("2");
        assert!(heard.registered().is_empty());
    }
}
