//! The real implementation: a search engine that answers with JSON, asked through the network gate. Where it is and how its answer is
//! made is the operator's word; what it found is anybody's.

mod place;

use std::time::Duration;

use async_trait::async_trait;
use floe_network::{Gate, GateBody, GateRequest, HostGrants, Reach};
use serde_json::value::RawValue;
use url::Url;

use super::{Hit, Hits, WebSearch};
use crate::capability::Failure;

/// What stands for the query in an address.
const QUERY: &str = "{query}";
/// What stands for the number of results that are wanted.
const MAX_RESULTS: &str = "{max_results}";
const TIME: Duration = Duration::from_secs(15);
/// Bytes of an answer.
const LONGEST_ANSWER: usize = 4 << 20;
/// Entries of an answer that are looked at, hits of one search, and characters of one text of a hit.
const MOST_ENTRIES: usize = 1000;
const MOST_HITS: usize = 50;
const LONGEST_TEXT: usize = 2048;

/// How a search engine is asked, and where in its answer things are. The places are names of members, with dots between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonEngineOptions {
    /// Its address, with `{query}` where the query belongs, and `{max_results}` where it wants to know how many.
    pub url: String,
    /// The list of results.
    pub results: String,
    /// The title of a result.
    pub title: String,
    /// The address of a result.
    pub link: String,
    /// A passage of a result.
    pub excerpt: String,
    /// The date of a result.
    pub published: String,
    /// Header fields of the request; values may hold `{{secret:NAME}}`.
    pub headers: Vec<(String, String)>,
}

/// Such an engine, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonEngine {
    options: JsonEngineOptions,
    /// What it is called in results: its host.
    name: String,
    grant: HostGrants,
}

impl JsonEngine {
    /// Checks the options.
    ///
    /// # Errors
    ///
    /// The address cannot be one of an engine; a sentence for the operator says why.
    pub fn new(options: JsonEngineOptions) -> Result<JsonEngine, String> {
        if !options.url.contains(QUERY) {
            return Err(format!(
                "holds no {QUERY}, which stands for what is looked for."
            ));
        }
        let url = Url::parse(&filled(&options.url, "query", 1))
            .map_err(|error| format!("is no address: {error}."))?;
        let (Some(name), Some(port), "http" | "https") =
            (url.host_str(), url.port_or_known_default(), url.scheme())
        else {
            return Err("is no http: or https: address.".to_owned());
        };
        // The operator's own word leads to an address that is not public, where the host is one, or this machine's name.
        let pinned = match url.host() {
            Some(url::Host::Domain("localhost")) => format!("{name}:{port}=127.0.0.1"),
            Some(url::Host::Domain(_)) | None => format!("{name}:{port}"),
            Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => format!("{name}:{port}={name}"),
        };
        let grant = HostGrants::parse(&[pinned]).map_err(|error| error.to_string())?;
        Ok(JsonEngine {
            name: name.to_owned(),
            grant,
            options,
        })
    }
}

/// Searches with one engine through a Session's gate, which it may pass to that engine and nowhere else.
pub struct JsonSearch {
    engine: JsonEngine,
    gate: Gate,
}

impl JsonSearch {
    /// Nothing is sent yet.
    pub fn new(engine: JsonEngine, gate: Gate) -> JsonSearch {
        JsonSearch { engine, gate }
    }
}

#[async_trait]
impl WebSearch for JsonSearch {
    async fn search(&self, query: &str, max_results: u32) -> Result<Hits, Failure> {
        let JsonEngine {
            options,
            name,
            grant,
        } = &self.engine;
        let headers = options.headers.iter();
        let request = GateRequest {
            method: "GET".to_owned(),
            url: filled(&options.url, query, max_results),
            headers: [("accept".to_owned(), b"application/json".to_vec())]
                .into_iter()
                .chain(headers.map(|(name, value)| (name.clone(), value.clone().into_bytes())))
                .collect(),
            body: None,
            timeout: Some(TIME),
            // Its host is granted, and none that it might lead to.
            max_redirects: Some(0),
        };
        let reach = Reach {
            reads_only: true,
            hosts: grant.clone(),
        };
        let mut response = self
            .gate
            .send(request, &reach)
            .await
            .map_err(|error| Failure {
                hint: error.hint().map(sentence),
                retryable: error.is_retryable(),
                ..Failure::new(error.code(), format!("{name} was not reached: {error}."))
            })?;
        if response.status != 200 {
            let message = format!("{name} answered with status {}.", response.status);
            return Err(
                Failure::new("io", message).with_hint(match response.status {
                    403 => "An engine that refuses JSON has to be told to allow it.",
                    _ => SET_UP,
                }),
            );
        }
        let answer = read(&mut response.body).await.map_err(|message| {
            Failure::new("io", format!("the answer of {name} {message}.")).with_hint(SET_UP)
        })?;
        Ok(Hits {
            provider: name.clone(),
            items: hits(&answer, options, max_results).map_err(|message| {
                Failure::new("io", format!("{message}.")).with_hint(
                    "The places under web_search in the configuration must be those of the engine.",
                )
            })?,
        })
    }
}

/// What to look at where an answer is none of a search engine that speaks JSON.
const SET_UP: &str = "The person can look whether web_search.url in the configuration is the engine's address for answers in JSON.";

/// A remedy of the gate as a sentence of its own.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    format!("{}{}.", first.collect::<String>(), letters.as_str())
}

/// The address for a query.
fn filled(url: &str, query: &str, max_results: u32) -> String {
    let mut encoded = String::with_capacity(query.len());
    for byte in query.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    // The query comes last, so that nothing in it is filled in.
    url.replace(MAX_RESULTS, &max_results.to_string())
        .replace(QUERY, &encoded)
}

async fn read(body: &mut GateBody) -> Result<Box<RawValue>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body
        .read(64 << 10)
        .await
        .map_err(|error| format!("broke off: {error}"))?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LONGEST_ANSWER {
            return Err(format!("is longer than {LONGEST_ANSWER} bytes"));
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| "is no JSON".to_owned())?;
    RawValue::from_string(text).map_err(|_| "is no JSON".to_owned())
}

fn hits(answer: &RawValue, options: &JsonEngineOptions, most: u32) -> Result<Vec<Hit>, String> {
    let list = place::at(answer, &options.results)
        .and_then(|list| place::entries(list, MOST_ENTRIES))
        .ok_or_else(|| format!("the answer holds no list at `{}`", options.results))?;
    let hits = list.into_iter().filter_map(|entry| {
        let text = |place: &str| {
            let text = place::text(place::at(entry, place)?)?;
            Some(text.chars().take(LONGEST_TEXT).collect::<String>())
        };
        let url = text(&options.link)?;
        let is_web = Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        is_web.then(|| Hit {
            title: text(&options.title).unwrap_or_default(),
            published: text(&options.published).filter(|published| !published.is_empty()),
            excerpt: text(&options.excerpt).unwrap_or_default(),
            url,
        })
    });
    Ok(hits.take((most as usize).min(MOST_HITS)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(answer: &serde_json::Value) -> Box<RawValue> {
        RawValue::from_string(answer.to_string()).unwrap()
    }

    fn options(url: &str) -> JsonEngineOptions {
        JsonEngineOptions {
            url: url.to_owned(),
            results: "results".to_owned(),
            title: "title".to_owned(),
            link: "url".to_owned(),
            excerpt: "content".to_owned(),
            published: "publishedDate".to_owned(),
            headers: Vec::new(),
        }
    }

    #[test]
    fn a_query_is_encoded_and_fills_nothing_further_in() {
        assert_eq!(
            filled(
                "https://s.example/?n={max_results}&q={query}",
                "a&b=c {max_results} é",
                5
            ),
            "https://s.example/?n=5&q=a%26b%3Dc%20%7Bmax_results%7D%20%C3%A9"
        );
    }

    #[test]
    fn an_address_without_a_place_for_the_query_is_none_of_an_engine() {
        for (url, reason) in [
            ("https://s.example/search", "holds no {query}"),
            ("ftp://s.example/{query}", "is no http: or https: address"),
            ("{query}", "is no address"),
        ] {
            let refused = JsonEngine::new(options(url)).unwrap_err();
            assert!(refused.starts_with(reason), "{url}: {refused}");
        }
    }

    #[test]
    fn the_engines_own_host_is_granted_by_address_where_it_is_one() {
        for (url, granted) in [
            (
                "http://127.0.0.1:8888/?q={query}",
                "127.0.0.1:8888=127.0.0.1",
            ),
            ("http://localhost/?q={query}", "localhost:80=127.0.0.1"),
            ("http://[::1]:8888/?q={query}", "[::1]:8888=[::1]"),
            ("https://s.example/?q={query}", "s.example:443"),
        ] {
            let engine = JsonEngine::new(options(url)).unwrap();
            assert_eq!(
                engine.grant,
                HostGrants::parse(&[granted]).unwrap(),
                "{url}"
            );
        }
    }

    #[test]
    fn hits_are_found_at_their_places_and_what_leads_to_no_page_is_left_out() {
        let answer = json!({"web": {"results": [
            {"t": {"text": "One"}, "url": "https://1.example/", "content": "c", "publishedDate": "2026-01-02"},
            {"t": {"text": "Script"}, "url": "javascript:alert(1)"},
            {"t": {"text": "None"}},
            {"url": "https://2.example/", "publishedDate": null},
            {"url": "https://3.example/"},
        ]}});
        let places = JsonEngineOptions {
            results: "web.results".to_owned(),
            title: "t.text".to_owned(),
            ..options("")
        };
        let answer = raw(&answer);
        let found = hits(&answer, &places, 2).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|hit| {
                (
                    hit.title.as_str(),
                    hit.url.as_str(),
                    hit.published.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("One", "https://1.example/", Some("2026-01-02")),
                ("", "https://2.example/", None)
            ]
        );
        let elsewhere = hits(&answer, &options(""), 2);
        assert_eq!(
            elsewhere.unwrap_err(),
            "the answer holds no list at `results`"
        );
        assert!(
            hits(
                &raw(&json!([])),
                &JsonEngineOptions {
                    results: String::new(),
                    ..options("")
                },
                2
            )
            .unwrap()
            .is_empty()
        );
    }
}
