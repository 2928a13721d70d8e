//! Sends one request by `wasi:http`, which the contract knows nothing of, and writes what became of it: `status 200`, the
//! header field `x-kind`, and the body; or `refused:` and the code.

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, output, text, tool};
use wasip2::http::outgoing_handler::{self, ErrorCode};
use wasip2::http::types::{
    Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use wasip2::io::streams::StreamError;

fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    match ask(&arguments) {
        Ok(response) => say(&response),
        Err(code) => {
            output::write(&format!("refused: {code:?}"));
        }
    }
    Ok(completed())
}

fn ask(arguments: &str) -> Result<IncomingResponse, ErrorCode> {
    let body = text(arguments, "body");
    let request = OutgoingRequest::new(Fields::new());
    if !body.is_empty() {
        request.set_method(&Method::Post).unwrap();
    }
    request.set_scheme(Some(&Scheme::Http)).unwrap();
    request
        .set_authority(Some(&text(arguments, "host")))
        .unwrap();
    request.set_path_with_query(Some("/page?a=b")).unwrap();
    let outgoing = request.body().unwrap();
    let future = outgoing_handler::handle(request, None)?;
    if !body.is_empty() {
        let stream = outgoing.write().unwrap();
        stream.blocking_write_and_flush(body.as_bytes()).unwrap();
    }
    OutgoingBody::finish(outgoing, None)?;
    future.subscribe().block();
    future.get().unwrap().unwrap()
}

fn say(response: &IncomingResponse) {
    let kind = response.headers().get("x-kind").concat();
    let mut whole = Vec::new();
    let body = response.consume().unwrap();
    let stream = body.stream().unwrap();
    loop {
        match stream.blocking_read(1 << 16) {
            Ok(bytes) => whole.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(error) => {
                output::write(&format!("broken: {error:?}"));
                return;
            }
        }
    }
    output::write(&format!(
        "status {}\n{}\n{}",
        response.status(),
        String::from_utf8_lossy(&kind),
        String::from_utf8_lossy(&whole)
    ));
}

tool!("asks-by-wasi", Write, execute);
