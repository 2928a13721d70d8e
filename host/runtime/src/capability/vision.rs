//! `vision`: asks a vision model about an image.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::{Deny, Failure, Image, Recorder, Refusal};
use crate::bindings::floe::tool::vision as wit;
use crate::capability_set::Capability;
use crate::state::CallState;

/// Describes images. Runs on the host's runtime.
#[async_trait]
pub trait Vision: Send + Sync {
    /// Starts an answer about one image.
    async fn describe(
        &self,
        image: Image,
        prompt: Option<String>,
    ) -> Result<Box<dyn VisionAnswer>, Failure>;
}

/// An answer under way. Dropping it ends the request.
#[async_trait]
pub trait VisionAnswer: Send {
    /// The model that answers.
    fn model_name(&self) -> String;

    /// The next text; none at the end.
    async fn next_text(&mut self) -> Result<Option<String>, Failure>;
}

/// A guest's handle of an answer.
pub struct AnswerHandle {
    model_name: String,
    answer: Arc<Mutex<Box<dyn VisionAnswer>>>,
}

#[async_trait]
impl<R: Refusal> Vision for R {
    async fn describe(
        &self,
        _image: Image,
        _prompt: Option<String>,
    ) -> Result<Box<dyn VisionAnswer>, Failure> {
        Err(self.refuse(Capability::Vision))
    }
}

/// Describes every image with one text, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingVision {
    /// What was asked.
    pub requests: Recorder,
    /// The answer; taken by the first look at it.
    pub text: Option<String>,
}

#[async_trait]
impl Vision for RecordingVision {
    async fn describe(
        &self,
        image: Image,
        _prompt: Option<String>,
    ) -> Result<Box<dyn VisionAnswer>, Failure> {
        self.requests
            .record(format!("describe {} {}", image.mime_type, image.data.len()));
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl VisionAnswer for RecordingVision {
    fn model_name(&self) -> String {
        "recording".to_owned()
    }

    async fn next_text(&mut self) -> Result<Option<String>, Failure> {
        self.requests.record("next-text");
        Ok(self.text.take())
    }
}

impl wit::Host for CallState {
    async fn describe(
        &mut self,
        image: Image,
        prompt: Option<String>,
    ) -> wasmtime::Result<Result<Resource<AnswerHandle>, Failure>> {
        let vision = self.hosts.vision.clone();
        let answer = self
            .ask_host(async move { vision.describe(image, prompt).await })
            .await;
        self.keep(answer.map(|answer| AnswerHandle {
            model_name: answer.model_name(),
            answer: Arc::new(Mutex::new(answer)),
        }))
    }
}

impl wit::HostVisionAnswer for CallState {
    async fn model_name(&mut self, answer: Resource<AnswerHandle>) -> wasmtime::Result<String> {
        Ok(self.table.get(&answer)?.model_name.clone())
    }

    async fn next_text(
        &mut self,
        answer: Resource<AnswerHandle>,
    ) -> wasmtime::Result<Result<Option<String>, Failure>> {
        let answer = self.table.get(&answer)?.answer.clone();
        Ok(self
            .ask_host(async move { answer.lock().await.next_text().await })
            .await)
    }

    async fn drop(&mut self, answer: Resource<AnswerHandle>) -> wasmtime::Result<()> {
        self.table.delete(answer)?;
        Ok(())
    }
}

impl wit::Host for Deny {
    async fn describe(
        &mut self,
        _image: Image,
        _prompt: Option<String>,
    ) -> wasmtime::Result<Result<Resource<AnswerHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Vision)))
    }
}

impl wit::HostVisionAnswer for Deny {
    async fn model_name(&mut self, _answer: Resource<AnswerHandle>) -> wasmtime::Result<String> {
        Err(Deny.raise(Capability::Vision))
    }

    async fn next_text(
        &mut self,
        _answer: Resource<AnswerHandle>,
    ) -> wasmtime::Result<Result<Option<String>, Failure>> {
        Ok(Err(Failure::denied(Capability::Vision)))
    }

    async fn drop(&mut self, _answer: Resource<AnswerHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
