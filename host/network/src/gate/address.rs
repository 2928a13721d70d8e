//! What a URL is taken for. It is read once, by the rules of the URL standard, and what was read is what is connected to: there is
//! no second reader that could see another host. Where the standard repairs what people write wrongly, this refuses, because a
//! text that needs repair is how one host is made to look like another.

use std::cell::Cell;

use url::{ParseError, SyntaxViolation, Url};

use super::error::GateError;
use super::limits::LONGEST_URL;
use crate::host::{Host, Target};

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// In its one spelling, without a fragment.
    pub(crate) url: Url,
    pub(crate) target: Target,
    /// Whether it is encrypted.
    pub(crate) is_secure: bool,
}

impl Address {
    /// Reads what a tool gives as a URL.
    pub(crate) fn parse(text: &str) -> Result<Address, GateError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(GateError::invalid("URL cannot be empty"));
        }
        if text.len() > LONGEST_URL {
            return Err(GateError::invalid(format!(
                "URL is longer than {LONGEST_URL} bytes"
            )));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(GateError::invalid("URL cannot contain whitespace"));
        }
        let repaired = Cell::new(None);
        let note = |violation| match violation {
            SyntaxViolation::Backslash => repaired.set(Some("a backslash")),
            SyntaxViolation::ExpectedDoubleSlash => repaired.set(Some("no // behind the scheme")),
            SyntaxViolation::UnencodedAtSign => repaired.set(Some("an @ in its userinfo")),
            _ => {}
        };
        let url = Url::options()
            .syntax_violation_callback(Some(&note))
            .parse(text)
            .map_err(|error| {
                let remedy = match error {
                    ParseError::RelativeUrlWithoutBase => "; write it whole, with https://",
                    _ => "",
                };
                GateError::invalid(format!("Invalid URL: {error}{remedy}"))
            })?;
        let address = Address::new(url)?;
        if let Some(what) = repaired.get() {
            return Err(GateError::invalid(format!(
                "Invalid URL: it has {what}; write it as http://host/path"
            )));
        }
        // `//` is there, or it would have been repaired.
        let behind = text.split_once("//").map_or("", |(_, behind)| behind);
        let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // Even an empty one.
            return Err(userinfo());
        }
        if authority.contains('%') {
            return Err(GateError::invalid(
                "Invalid URL: its host is percent-encoded; write the host as it is",
            ));
        }
        Ok(address)
    }

    /// Where a redirect from here leads. A server may write it loosely; what comes out is judged like any other.
    pub(crate) fn join(&self, location: &str) -> Result<Address, GateError> {
        let url = self.url.join(location).map_err(|error| {
            GateError::failed(format!(
                "{} redirects to an invalid URL: {error}",
                self.target.host
            ))
        })?;
        if url.as_str().len() > LONGEST_URL {
            return Err(GateError::failed(format!(
                "{} redirects to a URL longer than {LONGEST_URL} bytes",
                self.target.host
            )));
        }
        Address::new(url)
    }

    fn new(mut url: Url) -> Result<Address, GateError> {
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => {
                return Err(GateError::invalid(
                    "Only http:// and https:// URLs are allowed",
                ));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(userinfo());
        }
        let no_host = || GateError::invalid("Invalid URL: its host is no name and no address");
        let host = Host::parse(url.host_str().unwrap_or_default()).map_err(|_| no_host())?;
        let port = url.port_or_known_default().filter(|port| *port != 0);
        let port = port.ok_or_else(|| GateError::invalid("Invalid URL: nothing has port 0"))?;
        url.set_fragment(None);
        url.set_host(Some(&host.to_string()))
            .map_err(|_| no_host())?;
        Ok(Address {
            url,
            target: Target { host, port },
            is_secure,
        })
    }

    /// What stands in the header `Host`: with the port where it is not that of the scheme.
    pub(crate) fn authority(&self) -> String {
        match self.url.port() {
            None => self.target.host.to_string(),
            Some(port) => format!("{}:{port}", self.target.host),
        }
    }

    /// What stands in the request's first line.
    pub(crate) fn path_and_query(&self) -> String {
        match self.url.query() {
            None => self.url.path().to_owned(),
            Some(query) => format!("{}?{query}", self.url.path()),
        }
    }

    /// Whether what was meant for one may be sent to the other.
    pub(crate) fn is_same_origin(&self, other: &Address) -> bool {
        let is_upgrade = !self.is_secure
            && other.is_secure
            && (self.target.port, other.target.port) == (80, 443);
        self.target.host == other.target.host
            && (is_upgrade
                || (self.target.port == other.target.port && self.is_secure == other.is_secure))
    }
}

fn userinfo() -> GateError {
    GateError::invalid("URL userinfo is not allowed; send credentials in a header")
}
