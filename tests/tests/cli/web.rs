//! The tools that speak HTTP, from the command line: `--allow-host` and the configuration say what they reach, and a search engine that
//! is set up there answers `web_search`. The one server is the test's own, on the loopback.

use serde_json::{Value, json};

use crate::site::{Answered, Site};
use crate::support::{Ended, Place};

fn site() -> Site {
    Site::new(|asked| match asked.path.split('?').next() {
        Some("/search") => {
            let results =
                json!([{"url": "https://a.example/", "title": "A", "content": "About A"}]);
            Answered::new(
                200,
                "application/json",
                json!({"results": results}).to_string(),
            )
        }
        Some("/data.csv") => Answered::new(200, "text/csv", "a,b\n1,2\n"),
        Some("/echo") => {
            let sent = asked
                .header("authorization")
                .unwrap_or("nothing")
                .to_owned();
            Answered::new(200, "text/plain", sent)
        }
        _ => Answered::page("<h1>Hello</h1><p>from <a href='/x'>here</a>"),
    })
}

fn call(place: &Place, site: &Site, tool: &str, arguments: &Value, further: &[&str]) -> Ended {
    let grant = site.grant("site.test", 80);
    let arguments = arguments.to_string();
    let always = [
        "call",
        tool,
        &arguments,
        "--approve",
        "allow-all",
        "--allow-host",
        &grant,
    ];
    place.floe(&[&always[..], further].concat())
}

#[test]
fn a_page_is_read_from_a_host_that_is_allowed_for_one_run() {
    let (place, site) = (Place::new(), site());
    let ended = call(
        &place,
        &site,
        "web_fetch",
        &json!({"url": "http://site.test/"}),
        &[],
    );
    assert!(
        ended
            .expect(0)
            .stdout
            .ends_with("\n\n# Hello\n\nfrom [here](http://site.test/x)\n"),
        "{ended:?}"
    );
    let unnamed = json!({"url": format!("http://{}/", site.address)}).to_string();
    let ended = place.floe(&["call", "web_fetch", &unnamed]);
    assert!(
        ended.expect(1).stdout.contains("URL rejected: "),
        "{ended:?}"
    );
    assert_eq!(site.asked().len(), 1);
}

#[test]
fn a_request_is_sent_and_a_download_lies_in_the_workspace() {
    let (place, site) = (Place::new(), site());
    let ended = call(
        &place,
        &site,
        "http_request",
        &json!({"url": "http://site.test/echo", "method": "POST", "json": {}}),
        &[],
    );
    assert!(
        ended.expect(0).stdout.starts_with("Status: 200 OK\n"),
        "{ended:?}"
    );
    assert_eq!(site.asked()[0].body, "{}");
    let ended = call(
        &place,
        &site,
        "curl",
        &json!({"url": "http://site.test/data.csv"}),
        &[],
    );
    assert!(
        ended
            .expect(0)
            .stdout
            .starts_with("Saved downloads/data.csv\nbytes: 8\n"),
        "{ended:?}"
    );
    let saved = std::fs::read_to_string(place.workspace().join("downloads/data.csv"));
    assert_eq!(saved.unwrap(), "a,b\n1,2\n");
}

#[test]
fn under_a_cap_of_read_only_a_request_that_writes_is_denied() {
    let (place, site) = (Place::new(), site());
    let cap = ["--max-permission", "read-only"];
    let read = json!({"url": "http://site.test/echo"});
    call(&place, &site, "http_request", &read, &cap).expect(0);
    let write = json!({"url": "http://site.test/echo", "method": "DELETE"});
    let ended = call(&place, &site, "http_request", &write, &cap);
    assert!(
        ended
            .expect(3)
            .stdout
            .contains("Tool call denied by policy."),
        "{ended:?}"
    );
    assert_eq!(site.asked().len(), 1);
}

#[test]
fn the_configuration_names_the_search_engine() {
    let (place, site) = (Place::new(), site());
    let search = ["call", "web_search", r#"{"query": "what is A"}"#];
    let ended = place.floe(&search);
    assert!(
        ended
            .expect(1)
            .stdout
            .contains("no search engine is set up here"),
        "{ended:?}"
    );
    place.config(&format!(
        "web_search:\n  url: http://{}/search?q={{query}}&format=json\n",
        site.address
    ));
    let ended = place.floe(&search);
    assert!(
        ended
            .expect(0)
            .stdout
            .contains("\n1. A\n   https://a.example/\n   About A"),
        "{ended:?}"
    );
    assert_eq!(site.asked()[0].path, "/search?q=what%20is%20A&format=json");
}

#[test]
fn an_address_without_a_place_for_the_query_is_a_fault_of_the_configuration() {
    let place = Place::new();
    place.config("web_search:\n  url: http://127.0.0.1:8888/search\n");
    let ended = place.floe(&["call", "web_search", r#"{"query": "x"}"#]);
    assert!(
        ended
            .expect(2)
            .stderr
            .contains("config.yaml:2: `web_search.url` holds no {query}"),
        "{ended:?}"
    );
}

#[test]
fn a_project_cannot_name_a_search_engine() {
    let place = Place::new();
    place.workspace_file(
        ".floe/config.yaml",
        "web_search:\n  url: http://evil.example/?q={query}\n",
    );
    let ended = place.floe(&["call", "web_search", r#"{"query": "x"}"#]);
    assert!(
        ended.expect(2).stderr.contains("web_search.url"),
        "{ended:?}"
    );
}
