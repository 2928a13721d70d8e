//! `wasi:http` for components whose language brings it along: where `http` is granted a request goes the way of those of
//! `floe:tool/http`, through the network gate; everywhere else it is denied. Nothing here opens a socket.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::header;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::capability::Failure;
use crate::capability::http::{Header, Http, Request, Response, ResponseBody};
use crate::record::CallRecord;

/// Bytes of a request's body that are collected, which the gate then judges; a little more than it takes.
const LONGEST_BODY: usize = 9 << 20;
/// Bytes of all bodies that one call has under way, of requests that wait for the gate included: a guest starts as many as it likes.
const MOST_COLLECTED: usize = 32 << 20;
/// Bytes of a response's body at once.
const PORTION: u32 = 64 << 10;

/// Fields that say what the gate itself says about a body.
const OF_THE_BODY: [header::HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// Where the requests of one call go.
pub(crate) struct Outgoing {
    /// None where `http` is not granted.
    http: Option<Arc<dyn Http>>,
    record: Arc<CallRecord>,
    io: Handle,
    /// Room for the bytes of bodies that are under way.
    room: Arc<Semaphore>,
}

type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl Outgoing {
    pub(crate) fn new(
        http: Option<Arc<dyn Http>>,
        record: Arc<CallRecord>,
        io: Handle,
    ) -> Outgoing {
        Outgoing {
            http,
            record,
            io,
            room: Arc::new(Semaphore::new(MOST_COLLECTED)),
        }
    }
}

impl WasiHttpHooks for Outgoing {
    /// The gate writes it.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _transmission: Transmission,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Transmission), Error>> + Send>
    {
        let granted = self.http.clone().filter(|_| !self.record.is_over());
        let Some(http) = granted else {
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        };
        let (io, room) = (self.io.clone(), Arc::clone(&self.room));
        Box::new(async move {
            let (request, _taken) = read(request, options, room).await?;
            // The guests' runtime drives no socket.
            let sent = AbortOnDropHandle::new(io.spawn(async move { http.send(request).await }));
            let response = sent
                .await
                .map_err(|_| Error::InternalError(None))?
                .map_err(|failure| error(&failure))?;
            let response = answer(response, &io)?;
            Ok((response, Box::new(std::future::ready(Ok(()))) as _))
        })
    }
}

/// A request in the form that the gate takes. A guest that follows redirects does it itself.
async fn read(
    request: http::Request<WasiBody>,
    options: Option<RequestOptions>,
    room: Arc<Semaphore>,
) -> Result<(Request, Option<OwnedSemaphorePermit>), Error> {
    let (head, body) = request.into_parts();
    let (body, taken) = collect(body, room).await?;
    let headers = head.headers.iter();
    let timeout = options.and_then(|options| options.first_byte_timeout);
    let request = Request {
        method: head.method.to_string(),
        url: head.uri.to_string(),
        headers: headers
            .filter(|(name, _)| !OF_THE_BODY.contains(name))
            .map(|(name, value)| Header {
                name: name.to_string(),
                value: value.as_bytes().to_vec(),
            })
            .collect(),
        body: (!body.is_empty()).then_some(body),
        timeout_ms: timeout.map(|limit| u32::try_from(limit.as_millis()).unwrap_or(u32::MAX)),
        max_redirects: Some(0),
    };
    Ok((request, taken))
}

/// A whole body, and the room that it takes.
async fn collect(
    mut body: WasiBody,
    room: Arc<Semaphore>,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Error> {
    let too_large = || Error::HttpRequestBodySize(None);
    let (mut whole, mut taken) = (Vec::new(), None::<OwnedSemaphorePermit>);
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            if whole.len() + bytes.len() > LONGEST_BODY {
                return Err(too_large());
            }
            let length = u32::try_from(bytes.len()).map_err(|_| too_large())?;
            // Whoever waited for room would keep what it has from the others.
            let more = Arc::clone(&room).try_acquire_many_owned(length);
            let more = more.map_err(|_| too_large())?;
            match &mut taken {
                Some(taken) => taken.merge(more),
                None => taken = Some(more),
            }
            whole.extend_from_slice(&bytes);
        }
    }
    Ok((whole, taken))
}

fn answer(response: Response, io: &Handle) -> Result<http::Response<WasiBody>, Error> {
    let mut head = http::Response::builder().status(response.status);
    for Header { name, value } in response.headers {
        head = head.header(name, value);
    }
    head.body(body(response.body, io))
        .map_err(|_| Error::HttpProtocolError)
}

/// A body that is read ahead by one portion, on the host's runtime, for as long as somebody holds it.
fn body(mut from: Box<dyn ResponseBody>, io: &Handle) -> WasiBody {
    let (sender, receiver) = mpsc::channel(1);
    let reader = io.spawn(async move {
        loop {
            let portion = from.read_chunk(PORTION).await;
            let is_last = !matches!(portion, Ok(Some(_)));
            let portion = portion.map_err(|failure| error(&failure)).transpose();
            let sent = match portion {
                Some(portion) => sender.send(portion).await,
                None => return,
            };
            if is_last || sent.is_err() {
                return;
            }
        }
    });
    let state = (receiver, AbortOnDropHandle::new(reader));
    let portions = stream::unfold(state, |(mut receiver, reader)| async move {
        let portion: Result<Vec<u8>, Error> = receiver.recv().await?;
        Some((portion, (receiver, reader)))
    });
    let frames = portions.map(|portion| portion.map(|bytes| Frame::data(Bytes::from(bytes))));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// A failure in the words of `wasi:http`, which has none for most reasons.
fn error(failure: &Failure) -> Error {
    match failure.code.as_str() {
        "denied" | "denied-host" | "unsupported" => Error::HttpRequestDenied,
        "timeout" => Error::HttpResponseTimeout,
        "too-large" => Error::HttpResponseBodySize(None),
        _ => Error::InternalError(Some(failure.message.clone())),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn body(length: usize) -> WasiBody {
        let bytes = Bytes::from(vec![0; length]);
        BodyExt::boxed_unsync(Full::new(bytes).map_err(|never| match never {}))
    }

    #[tokio::test]
    async fn bodies_under_way_are_bounded_each_and_together() {
        let room = Arc::new(Semaphore::new(MOST_COLLECTED));
        let collected = |length| collect(body(length), Arc::clone(&room));
        assert!(collected(LONGEST_BODY + 1).await.is_err());
        let mut held = Vec::new();
        for _ in 0..MOST_COLLECTED / LONGEST_BODY {
            held.push(collected(LONGEST_BODY).await.unwrap());
        }
        assert!(collected(LONGEST_BODY).await.is_err());
        assert!(collected(0).await.unwrap().1.is_none());
        held.pop();
        assert_eq!(collected(LONGEST_BODY).await.unwrap().0.len(), LONGEST_BODY);
    }
}
