//! Sends a request and reads its answer event by event, with an end to waiting. Knows nothing of what the events say.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryFutureExt, TryStreamExt};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use sse_stream::SseByteStream;
use tokio_util::sync::CancellationToken;

use crate::{ApiKey, ModelError, ModelErrorKind};

/// Bytes that one answer may have; far above any real one, and an end to a service that never stops.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Waits for a service, but neither past a cancel nor longer than its silence may last.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    pub(super) idle_timeout: Duration,
    pub(super) cancel: &'a CancellationToken,
}

impl Patience<'_> {
    /// # Errors
    ///
    /// `Aborted` or `Timeout`.
    pub(super) async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ModelError::aborted()),
            result = tokio::time::timeout(self.idle_timeout, work) => {
                result.map_err(|_| self.silence())
            }
        }
    }

    fn silence(self) -> ModelError {
        ModelError::new(
            ModelErrorKind::Timeout,
            format!(
                "The model service was silent for {} s.",
                self.idle_timeout.as_secs_f32()
            ),
        )
    }
}

/// Sends the body and waits for the head of the response, whatever its status.
///
/// # Errors
///
/// `Timeout` where the service cannot be reached or is silent, `Aborted` after a cancel.
pub(super) async fn send(
    client: &Client,
    address: &Url,
    key: Option<&ApiKey>,
    body: &Value,
    patience: Patience<'_>,
) -> Result<Response, ModelError> {
    let mut request = client
        .post(address.clone())
        .header("accept", "text/event-stream")
        .json(body);
    if let Some(key) = key {
        request = request.bearer_auth(key.expose());
    }
    patience
        .wait(request.send())
        .await?
        .map_err(|error| network_error(&error))
}

/// Reads the beginning of an error's body; a body that breaks off counts as far as it came.
///
/// # Errors
///
/// `Timeout` where the service is silent, `Aborted` after a cancel.
pub(super) async fn error_body(
    mut response: Response,
    patience: Patience<'_>,
) -> Result<String, ModelError> {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = patience.wait(response.chunk()).await? {
        body.extend_from_slice(&piece);
        if body.len() >= MAX_ERROR_BYTES {
            body.truncate(MAX_ERROR_BYTES);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// The data of each event of a response. Where a service does not stream, its whole body is the one event.
pub(super) fn events(
    response: Response,
    patience: Patience<'_>,
) -> BoxStream<'_, Result<String, ModelError>> {
    let is_document = response
        .headers()
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim_start().starts_with("application/json"));
    let pieces = stream::try_unfold((response, 0), move |(mut response, received)| async move {
        let piece = patience
            .wait(response.chunk())
            .await?
            .map_err(|error| network_error(&error))?;
        let Some(piece) = piece else { return Ok(None) };
        let received = received + piece.len();
        if received > MAX_ANSWER_BYTES {
            return Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!("The answer of the model service is over {MAX_ANSWER_BYTES} bytes."),
            ));
        }
        Ok(Some((piece, (response, received))))
    });
    if is_document {
        let whole = pieces.try_fold(Vec::new(), async |mut whole, piece| {
            whole.extend_from_slice(&piece);
            Ok(whole)
        });
        return stream::once(whole.map_ok(|whole| String::from_utf8_lossy(&whole).into_owned()))
            .boxed();
    }
    // A last event without its empty line counts too where the stream was closed in good order; one that was cut does not parse.
    let end = stream::iter([Ok("\n\n".into())]);
    SseByteStream::new(Box::pin(pieces.chain(end)))
        .filter_map(async |event| match event {
            Ok(event) => event.data.filter(|data| !data.is_empty()).map(Ok),
            Err(error) => Some(Err(stream_error(error))),
        })
        .boxed()
}

fn stream_error(error: sse_stream::Error) -> ModelError {
    let words = match error {
        sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
            Ok(error) => return *error,
            Err(error) => error.to_string(),
        },
        error => error.to_string(),
    };
    ModelError::new(
        ModelErrorKind::Malformed,
        format!("The model service sent no event stream: {words}."),
    )
}

/// The innermost cause says most; the address is left out, because it may carry a secret.
fn network_error(error: &reqwest::Error) -> ModelError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let what = if error.is_connect() {
        "The model service cannot be reached"
    } else {
        "The connection to the model service broke"
    };
    ModelError::new(ModelErrorKind::Timeout, format!("{what}: {cause}."))
}
