//! HTTP through the host's network gate, which decides about the host, the method, the headers and every redirect.
//!
//! Sending fails with code `denied-host` where the gate refuses, and says in the hint what would have to be allowed; `timeout`,
//! `too-large`, `invalid-args` and `io` are what their names say, and `denied` means that the tool was not granted HTTP.

use std::time::Duration;

use crate::Failure;
use crate::bindings::floe::tool::http as host;

/// How much one read of a body asks for.
const READ_BYTES: u32 = 1024 * 1024;

/// What is to be asked.
#[derive(Debug, Clone)]
pub struct Request(host::Request);

impl Request {
    /// A request with this method, in capitals, without headers and body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Request {
        Request(host::Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
            max_redirects: None,
        })
    }

    /// Reads what is at an address.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// Adds a header field. `{{secret:NAME}}` in a value is filled in by the host, for the hosts that the secret is meant for.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.0.headers.push(host::Header {
            name: name.into(),
            value: value.into().into_bytes(),
        });
        self
    }

    /// Gives it a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.0.body = Some(body.into());
        self
    }

    /// The time for the whole exchange; the host's limit holds as well.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Request {
        self.0.timeout_ms = Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// How many redirects the host follows; its own default where this is not called.
    #[must_use]
    pub fn max_redirects(mut self, redirects: u32) -> Request {
        self.0.max_redirects = Some(redirects);
        self
    }

    /// Sends it, and waits for the head of the response.
    ///
    /// # Errors
    /// As the module says.
    pub fn send(&self) -> Result<Response, Failure> {
        let response = host::send(&self.0)?;
        let headers = response.headers.into_iter().map(|header| {
            let value = String::from_utf8_lossy(&header.value).into_owned();
            (header.name, value)
        });
        Ok(Response {
            head: Head {
                status: response.status,
                headers: headers.collect(),
                url: response.final_url,
            },
            body: Body(response.body),
        })
    }
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    /// What came before the body.
    pub head: Head,
    /// The body, to be read.
    pub body: Body,
}

/// What a response says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Names and values in the order in which they came, a value that is no UTF-8 with replacement characters.
    pub headers: Vec<(String, String)>,
    /// The address that answered, after redirects.
    pub url: String,
}

impl Head {
    /// The first value of a header field, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A body under way, already decompressed. Dropping it ends the transfer.
#[derive(Debug)]
pub struct Body(host::ResponseBody);

impl Body {
    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// As the module says.
    pub fn read_chunk(&self, max_bytes: u32) -> Result<Option<Vec<u8>>, Failure> {
        self.0.read_chunk(max_bytes)
    }

    /// The body up to `most` bytes, and whether it is longer than that.
    ///
    /// # Errors
    /// As the module says.
    pub fn read(&self, most: usize) -> Result<(Vec<u8>, bool), Failure> {
        let mut bytes = Vec::new();
        // One byte more tells a body that just fits from one that does not.
        while bytes.len() <= most {
            let wanted = u32::try_from(most + 1 - bytes.len()).unwrap_or(u32::MAX);
            match self.read_chunk(wanted.min(READ_BYTES))? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => break,
            }
        }
        let is_longer = bytes.len() > most;
        bytes.truncate(most);
        Ok((bytes, is_longer))
    }
}

/// The argument `widen` of a tool that speaks HTTP: hosts that the person is asked for. The host takes it from the arguments, and
/// whatever it decides is decided before the tool runs.
#[derive(schemars::JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of use here")]
pub struct Widen {
    /// Why, in one sentence for the person who decides.
    #[schemars(length(min = 1, max = 500))]
    reason: String,
    /// Hosts to reach, as NAME or NAME:PORT; without a port it is 443.
    #[schemars(length(min = 1, max = 16))]
    hosts: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_in_any_case_and_the_first_counts() {
        let head = Head {
            status: 200,
            headers: vec![
                ("Content-Type".into(), "text/html".into()),
                ("content-type".into(), "text/plain".into()),
            ],
            url: "https://a.example/".into(),
        };
        assert_eq!(head.header("CONTENT-TYPE"), Some("text/html"));
        assert_eq!(head.header("location"), None);
    }
}
