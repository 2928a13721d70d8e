//! The merge queue of a Session: the model driver and every running tool put their messages in, and each is written to the Trace and
//! shown at that moment, one after the other. So the order of the stream is the order of the Trace, minus fragments.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floe_environment::{MessageSink, Secrets};
use floe_protocol::{Body, EventMsg, ModelMsg, OmniMessage, SessionMeta};
use floe_trace::{Head, TraceError, TraceWriter};

use crate::Observer;

/// Where all messages of a Session pass.
pub(crate) struct MessageQueue {
    observer: Arc<dyn Observer>,
    secrets: Secrets,
    /// Whether the stream carries the Session's meta and inputs too, for those who did not write them.
    echoes: bool,
    record: Mutex<Record>,
}

/// What is kept of the stream.
struct Record {
    writer: TraceWriter,
    /// Messages from before the first record, which is the Session's meta; none once that is written.
    before_meta: Option<Vec<OmniMessage>>,
    /// Why the last record could not be written, without a path: a model reads it.
    fault: Option<String>,
}

impl MessageQueue {
    pub(crate) fn new(
        writer: TraceWriter,
        observer: Arc<dyn Observer>,
        secrets: Secrets,
    ) -> MessageQueue {
        MessageQueue {
            observer,
            secrets,
            echoes: false,
            record: Mutex::new(Record {
                writer,
                before_meta: Some(Vec::new()),
                fault: None,
            }),
        }
    }

    /// The same queue, whose stream carries the meta and the inputs too: that of a child, whose inputs are its parent's.
    pub(crate) fn echoing(mut self) -> MessageQueue {
        self.echoes = true;
        self
    }

    /// Writes the Session's meta as the first record. Later calls do nothing; the stream carries it where it echoes.
    pub(crate) fn begin(&self, meta: impl FnOnce() -> SessionMeta) {
        let mut record = self.lock();
        let Some(earlier) = record.before_meta.take() else {
            return;
        };
        let meta = OmniMessage::new(Body::SessionMeta(meta()));
        let meta = self.without_secrets(Cow::Owned(meta));
        self.append(&mut record, &meta);
        if self.echoes {
            self.observer.message(&meta);
        }
        for message in &earlier {
            self.append(&mut record, message);
        }
    }

    /// Goes on with a Trace that has its first record already. Later calls do nothing.
    pub(crate) fn begin_again(&self) {
        let mut record = self.lock();
        for message in record.before_meta.take().unwrap_or_default() {
            self.append(&mut record, &message);
        }
    }

    /// Records an input. It is shown where the stream echoes: what the person said needs none.
    pub(crate) fn record(&self, message: &OmniMessage) {
        let message = self.without_secrets(Cow::Borrowed(message));
        let mut record = self.lock();
        self.append(&mut record, &message);
        if self.echoes {
            self.observer.message(&message);
        }
    }

    /// Records and shows messages between which nothing else may come.
    pub(crate) fn emit_together(&self, messages: impl IntoIterator<Item = OmniMessage>) {
        let mut record = self.lock();
        for message in messages {
            let message = self.without_secrets(Cow::Owned(message));
            self.append(&mut record, &message);
            self.observer.message(&message);
        }
    }

    /// Records and shows a message that the model is to read, and gives it back as it was recorded.
    pub(crate) fn emit_for_model(&self, message: ModelMsg) -> ModelMsg {
        let message = self
            .without_secrets(Cow::Owned(OmniMessage::model(message)))
            .into_owned();
        let mut record = self.lock();
        self.append(&mut record, &message);
        self.observer.message(&message);
        match message.body {
            Body::ModelMsg(message) => message,
            Body::SessionMeta(_) | Body::EventMsg(_) => unreachable!("it was one for the model"),
        }
    }

    /// A message without secrets. The fragments of an output are passed over: the Environment took the secrets out where the text
    /// entered, wherever fragments part them.
    fn without_secrets<'message>(
        &self,
        message: Cow<'message, OmniMessage>,
    ) -> Cow<'message, OmniMessage> {
        let is_fragment_of_output = matches!(
            message.body,
            Body::ModelMsg(ModelMsg::PartialToolCallOutput { .. })
        );
        if self.secrets.is_empty() || is_fragment_of_output {
            return message;
        }
        let redacted = serde_json::to_value(&*message).and_then(|mut value| {
            let found = self.secrets.redact_json(&mut value);
            found.then(|| serde_json::from_value(value)).transpose()
        });
        match redacted {
            Ok(Some(redacted)) => Cow::Owned(redacted),
            // An error: the secret is a word of the message's own form, which is no secret.
            Ok(None) | Err(_) => message,
        }
    }

    /// Makes durable what was written so far, with its head. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The Trace cannot be written.
    pub(crate) fn sync(&self) -> Result<Option<Head>, TraceError> {
        let mut record = self.lock();
        let head = record.writer.sync();
        if let Err(error) = &head {
            record.fault = Some(error.without_path());
        }
        head
    }

    /// Tells the person something that is no message of the conversation.
    pub(crate) fn warn(&self, code: &str, message: String) {
        self.emit(OmniMessage::event(EventMsg::Warning {
            code: code.to_owned(),
            message,
        }));
    }

    /// The file that is being written.
    pub(crate) fn trace_path(&self) -> Option<PathBuf> {
        self.lock().writer.path().map(std::path::Path::to_owned)
    }

    fn append(&self, record: &mut Record, message: &OmniMessage) {
        if !message.is_recordable() {
            return;
        }
        if let Some(earlier) = &mut record.before_meta {
            earlier.push(message.clone());
            return;
        }
        match record.writer.append(message) {
            Ok(()) => record.fault = None,
            Err(error) => {
                if record.fault.replace(error.without_path()).is_none() {
                    // Shown only: that it is missing is what there is to say about the record.
                    self.observer
                        .message(&OmniMessage::event(EventMsg::Warning {
                            code: "trace_unavailable".into(),
                            message: format!(
                                "the Trace cannot be written, so tools above read-only do not run: {error}"
                            ),
                        }));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MessageSink for MessageQueue {
    fn emit(&self, message: OmniMessage) {
        self.emit_together([message]);
    }

    fn recording(&self) -> Result<(), String> {
        match &self.lock().fault {
            None => Ok(()),
            Some(reason) => Err(reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_protocol::{AgentId, ApprovalMode, Home, Mode, SessionId, now};
    use serde_json::Value;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<OmniMessage>>);

    impl Observer for Kept {
        fn message(&self, message: &OmniMessage) {
            self.0.lock().unwrap().push(message.clone());
        }
    }

    fn meta() -> SessionMeta {
        SessionMeta {
            session_id: "s".into(),
            provider: None,
            model_id: None,
            model_context_window: "unknown".into(),
            system_prompt: String::new(),
            agent_state: String::new(),
            workspace: String::new(),
            source: None,
            mode: Mode::Build,
            approval_mode: ApprovalMode::AllowAll,
        }
    }

    fn warning(code: &str) -> OmniMessage {
        OmniMessage::event(EventMsg::Warning {
            code: code.into(),
            message: now(),
        })
    }

    fn codes(messages: &[OmniMessage]) -> Vec<String> {
        messages
            .iter()
            .filter_map(|message| match &message.body {
                Body::EventMsg(EventMsg::Warning { code, .. }) => Some(code.clone()),
                Body::SessionMeta(_) => Some("meta".into()),
                _ => None,
            })
            .collect()
    }

    const KEY: &str = "sk-0123456789abcdef";

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.insert("OPENAI_API_KEY", KEY);
        secrets
    }

    struct Fixture {
        folder: tempfile::TempDir,
        observer: Arc<Kept>,
        queue: MessageQueue,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("home"));
        let writer = TraceWriter::create(&home, &AgentId::default(), &SessionId::generate());
        let observer = Arc::new(Kept::default());
        let queue = MessageQueue::new(
            writer,
            Arc::clone(&observer) as Arc<dyn Observer>,
            secrets(),
        );
        Fixture {
            folder,
            observer,
            queue,
        }
    }

    fn recorded(queue: &MessageQueue) -> Vec<OmniMessage> {
        let path = queue.trace_path().unwrap();
        floe_trace::read(&path)
            .unwrap()
            .map(|record| record.unwrap().message)
            .collect::<Vec<OmniMessage>>()
    }

    #[test]
    fn the_meta_is_the_first_record_and_never_in_the_stream() {
        let Fixture {
            observer, queue, ..
        } = &fixture();
        queue.emit(warning("early"));
        queue.begin(meta);
        queue.begin(|| unreachable!("written once"));
        queue.emit(warning("late"));
        assert_eq!(codes(&recorded(queue)), ["meta", "early", "late"]);
        assert_eq!(codes(&observer.0.lock().unwrap()), ["early", "late"]);
    }

    #[test]
    fn what_is_only_recorded_is_not_shown() {
        let Fixture {
            observer, queue, ..
        } = &fixture();
        queue.begin(meta);
        queue.record(&warning("quiet"));
        assert_eq!(codes(&recorded(queue)), ["meta", "quiet"]);
        assert!(observer.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_secret_is_neither_recorded_nor_shown_whatever_message_it_is_in() {
        let Fixture {
            observer, queue, ..
        } = &fixture();
        queue.begin(|| SessionMeta {
            system_prompt: format!("The key is {KEY}."),
            ..meta()
        });
        queue.record(&OmniMessage::model(ModelMsg::user_text(KEY)));
        queue.emit(OmniMessage::model(ModelMsg::ToolCall {
            name: "exec_command".into(),
            arguments: format!(r#"{{"cmd":"echo {KEY}"}}"#),
            tool_call_id: "c1".into(),
            stop_reason: floe_protocol::StopReason::Completed,
            fidelity: None,
        }));
        queue.emit(warning(KEY));
        let recorded = format!("{:?}", recorded(queue));
        assert_eq!(recorded.matches("[redacted:OPENAI_API_KEY]").count(), 4);
        let shown = format!("{:?}", observer.0.lock().unwrap());
        assert_eq!(shown.matches("[redacted:OPENAI_API_KEY]").count(), 2);
        assert!(!recorded.contains(KEY) && !shown.contains(KEY));
    }

    #[test]
    fn a_trace_that_cannot_be_written_is_told_once_and_its_gap_recorded_when_it_can_be() {
        let Fixture {
            folder,
            observer,
            queue,
        } = &fixture();
        let home = folder.path().join("home");
        std::fs::write(&home, "a file where the folder should be").unwrap();
        queue.begin(meta);
        queue.emit(warning("lost"));
        let reason = queue.recording().unwrap_err();
        assert!(!reason.contains('/'), "a model reads it: {reason}");
        assert_eq!(
            codes(&observer.0.lock().unwrap()),
            ["trace_unavailable", "lost"]
        );
        assert!(queue.sync().is_err());
        std::fs::remove_file(&home).unwrap();
        queue.emit(warning("kept"));
        assert!(queue.recording().is_ok());
        let records = recorded(queue);
        assert!(matches!(
            records[0].body,
            Body::EventMsg(EventMsg::TraceGap { records: 2, .. })
        ));
        assert_eq!(codes(&records), ["kept"]);
        let head: Value = serde_json::to_value(queue.sync().unwrap().unwrap()).unwrap();
        assert_eq!(head["seq"], 1);
    }
}
