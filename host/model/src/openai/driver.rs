//! Ties request, transport and answer together.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use floe_protocol::ModelMsg;
use futures_util::StreamExt;
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, Url, redirect};
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::failure;
use super::request::{self, ResultImages};
use super::transport::{self, Patience};
use crate::{
    ApiKey, ModelAnswer, ModelDriver, ModelError, ModelErrorKind, ModelOpenError, ModelRequest,
    ModelSettings,
};

/// The public service.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
/// How long a connection may take to come up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A model behind a Chat Completions service.
pub struct OpenAiDriver {
    model: String,
    address: Url,
    /// The address as messages show it: without a user, a password or a query.
    service: String,
    key: Option<ApiKey>,
    settings: ModelSettings,
    client: Client,
    /// Set once the service has refused images in a tool message.
    refuses_result_images: AtomicBool,
}

impl OpenAiDriver {
    /// A driver for the model called `model`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The base URL or the key cannot be used, or the public service is meant and there is no key.
    pub fn new(
        model: impl Into<String>,
        settings: &ModelSettings,
    ) -> Result<OpenAiDriver, ModelOpenError> {
        let model = model.into();
        let key = settings
            .api_key
            .clone()
            .filter(|key| !key.expose().is_empty());
        if settings.base_url.is_none() && key.is_none() {
            return Err(ModelOpenError::MissingKey { model });
        }
        if let Some(key) = &key
            && HeaderValue::from_str(key.expose()).is_err()
        {
            return Err(ModelOpenError::InvalidKey);
        }
        let base_url = settings.base_url.as_deref().unwrap_or(DEFAULT_BASE_URL);
        let address = endpoint(base_url)?;
        Ok(OpenAiDriver {
            model,
            service: shown(&address),
            client: client(&address)?,
            address,
            key,
            settings: settings.clone(),
            refuses_result_images: AtomicBool::new(false),
        })
    }

    /// Sends the request. A service that refuses a request with images in a tool message is asked once more with the images in a
    /// user message, and if that helps, always from then on.
    async fn send(
        &self,
        request: &ModelRequest,
        patience: Patience<'_>,
    ) -> Result<Response, ModelError> {
        let known_to_refuse = self.refuses_result_images.load(Ordering::Relaxed);
        let first = if known_to_refuse {
            ResultImages::InUserMessage
        } else {
            ResultImages::InToolMessage
        };
        let refusal = match self.send_once(request, first, patience).await? {
            Ok(response) => return Ok(response),
            Err(refusal) => refusal,
        };
        let may_be_the_images = refusal.kind == ModelErrorKind::Failed
            && !known_to_refuse
            && request::has_result_images(&request.history);
        if !may_be_the_images {
            return Err(refusal);
        }
        let response = self
            .send_once(request, ResultImages::InUserMessage, patience)
            .await??;
        self.refuses_result_images.store(true, Ordering::Relaxed);
        Ok(response)
    }

    /// The outer error is one of the way there, the inner one is the service's refusal.
    async fn send_once(
        &self,
        request: &ModelRequest,
        images: ResultImages,
        patience: Patience<'_>,
    ) -> Result<Result<Response, ModelError>, ModelError> {
        let body = request::body(&self.model, request, images);
        let response = transport::send(
            &self.client,
            &self.address,
            self.key.as_ref(),
            &body,
            patience,
        )
        .await?;
        let status = response.status();
        if status.is_success() {
            return Ok(Ok(response));
        }
        let body = transport::error_body(response, patience).await?;
        Ok(Err(failure::from_status(status, &body, &self.service)))
    }

    /// No message of a service may carry the key on, not even where the service repeats it.
    fn redact(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = &self.key {
            error.message = error
                .message
                .replace(key.expose(), "[redacted:OPENAI_API_KEY]");
        }
        error
    }

    async fn receive(
        &self,
        request: &ModelRequest,
        emit: &mut (dyn FnMut(ModelMsg) + Send),
        patience: Patience<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let response = self.send(request, patience).await?;
        let mut events = transport::events(response, patience);
        let mut answer = Answer::new(emit);
        while let Some(event) = events.next().await {
            match event {
                Ok(data) if data.trim() == "[DONE]" => return answer.done(),
                Ok(data) => {
                    if let Err(error) = answer.take(&data) {
                        return answer.broken(error);
                    }
                }
                Err(error) => return answer.broken(error),
            }
        }
        answer.closed()
    }
}

#[async_trait]
impl ModelDriver for OpenAiDriver {
    fn model_id(&self) -> &str {
        &self.model
    }

    fn provider(&self) -> &str {
        "openai"
    }

    fn context_window(&self) -> Option<u64> {
        self.settings.context_window
    }

    fn vision(&self) -> bool {
        self.settings.vision
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        emit: &mut (dyn FnMut(ModelMsg) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        let patience = Patience {
            idle_timeout: self.settings.idle_timeout,
            cancel,
        };
        self.receive(request, emit, patience)
            .await
            .map_err(|error| self.redact(error))
    }
}

/// The address of the endpoint below a base URL; a base URL that names the endpoint already is taken as it is.
fn endpoint(base_url: &str) -> Result<Url, ModelOpenError> {
    let invalid = |reason: &str| ModelOpenError::InvalidBaseUrl {
        given: base_url.to_owned(),
        reason: reason.to_owned(),
    };
    let mut url = Url::parse(base_url.trim()).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it starts with neither http:// nor https://"));
    }
    if !url
        .path()
        .trim_end_matches('/')
        .ends_with("/chat/completions")
    {
        url.path_segments_mut()
            .map_err(|()| invalid("it cannot be extended"))?
            .pop_if_empty()
            .extend(["chat", "completions"]);
    }
    Ok(url)
}

fn shown(address: &Url) -> String {
    let origin = address.origin().ascii_serialization();
    let path = address.path().trim_end_matches("/chat/completions");
    format!("{origin}{path}")
}

fn client(address: &Url) -> Result<Client, ModelOpenError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only where the program installed one before, which then is the one to use.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .user_agent(concat!("floe/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would carry the conversation to a place that nobody named.
        .redirect(redirect::Policy::none());
    let is_local = match address.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    if is_local {
        // No proxy can reach a service of this machine.
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| ModelOpenError::Client(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_lies_below_the_base_url() {
        for (base, expected) in [
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            (
                "http://h/v1/chat/completions",
                "http://h/v1/chat/completions",
            ),
            (
                "https://h/a?api-version=1",
                "https://h/a/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(endpoint(base).unwrap().as_str(), expected);
        }
        for base in ["", "h/v1", "ftp://h", "file:///v1", "localhost:8080"] {
            assert!(endpoint(base).is_err(), "{base}");
        }
    }

    #[test]
    fn the_address_is_shown_without_secrets() {
        let address = endpoint("https://user:pass@h:8443/v1?key=abc").unwrap();
        assert_eq!(shown(&address), "https://h:8443/v1");
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused() {
        let settings = ModelSettings {
            api_key: Some(ApiKey::new("a\nb")),
            ..ModelSettings::default()
        };
        assert!(matches!(
            OpenAiDriver::new("m", &settings),
            Err(ModelOpenError::InvalidKey)
        ));
    }
}
