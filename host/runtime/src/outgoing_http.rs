//! `wasi:http` for components whose language always imports it: linked, and every request denied.

use std::future::Future;

use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// Denies every outgoing request.
pub(crate) struct DenyOutgoing;

type Transmission = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for DenyOutgoing {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _transmission: Transmission,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Transmission), Error>> + Send>
    {
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }
}
