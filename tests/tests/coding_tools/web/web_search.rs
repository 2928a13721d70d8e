use floe_runtime::capability::web_search::{JsonEngine, JsonEngineOptions};
use serde_json::{Value, json};

use crate::rig::{Answer, Rig, definition};
use crate::site::{Answered, Site};

/// An engine that answers as SearXNG does, at an address of this machine that nothing else grants.
fn engine(site: &Site) -> JsonEngine {
    JsonEngine::new(JsonEngineOptions {
        url: format!("http://{}/search?q={{query}}&format=json", site.address),
        results: "results".into(),
        title: "title".into(),
        link: "url".into(),
        excerpt: "content".into(),
        published: "publishedDate".into(),
        headers: vec![("X-Client".into(), "floe".into())],
    })
    .unwrap()
}

fn rig(site: &Site) -> Rig {
    let engine = engine(site);
    Rig::with(|options| options.web_search = Some(engine))
}

/// SearXNG's answer, with members that nobody asks for.
fn answer(results: Value) -> Answered {
    let answer = json!({"query": "q", "number_of_results": 0, "results": results, "answers": [], "infoboxes": [], "unresponsive_engines": []});
    Answered::new(200, "application/json", answer.to_string())
}

fn results(count: usize) -> Value {
    (1..=count)
        .map(|number| {
            json!({"url": format!("https://{number}.example/page"), "title": format!("Title {number}"), "content": format!("Excerpt {number}"),
                "engine": "duckduckgo", "score": 1.0, "publishedDate": (number == 1).then_some("2026-05-01T00:00:00")})
        })
        .collect()
}

async fn search(rig: &Rig, arguments: Value) -> Answer {
    rig.call("web_search", arguments).await
}

#[test]
fn web_search_has_its_name_its_aliases_a_description_and_a_schema() {
    let definition = definition("web_search");
    assert_eq!(definition.aliases, ["websearch", "web_search_tool"]);
    assert!(!definition.description.is_empty());
    assert_eq!(definition.parameters["required"], json!(["query"]));
    assert_eq!(
        definition.parameters["properties"]["max_results"]["maximum"],
        10
    );
}

#[tokio::test]
async fn results_are_shown_with_title_address_date_and_excerpt_as_text_of_the_web() {
    let site = Site::new(|_| answer(results(2)));
    let rig = rig(&site);
    let found = search(&rig, json!({"query": "cats & dogs"})).await;
    assert_eq!(
        found.completed(),
        "Search results for: cats & dogs (via 127.0.0.1)\n\
         [titles and excerpts are text from the web, not from the person]\n\n\
         1. Title 1\n   https://1.example/page\n   Published: 2026-05-01T00:00:00\n   Excerpt 1\n\n\
         2. Title 2\n   https://2.example/page\n   Excerpt 2"
    );
    let asked = site.asked();
    assert_eq!(asked[0].path, "/search?q=cats%20%26%20dogs&format=json");
    assert_eq!(asked[0].header("x-client"), Some("floe"));
    let by_alias = rig.call("websearch", json!({"query": "x"})).await;
    by_alias.completed();
}

#[tokio::test]
async fn no_results_are_told_as_such() {
    let site = Site::new(|_| answer(json!([])));
    let found = search(&rig(&site), json!({"query": "nothing"})).await;
    assert_eq!(found.completed(), "No results found for: nothing");
}

#[tokio::test]
async fn no_more_results_come_than_were_asked_for() {
    let site = Site::new(|_| answer(results(30)));
    let rig = rig(&site);
    for (asked, shown) in [(Some(3), 3), (None, 5), (Some(10), 10)] {
        let mut arguments = json!({"query": "many"});
        if let Some(asked) = asked {
            arguments["max_results"] = json!(asked);
        }
        let found = search(&rig, arguments).await;
        assert_eq!(found.completed().matches("Title ").count(), shown);
    }
    let refused = search(&rig, json!({"query": "many", "max_results": 11})).await;
    assert!(
        refused
            .failed()
            .starts_with("Invalid argument \"/max_results\""),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_excerpt_has_at_most_503_characters() {
    let site = Site::new(|_| {
        answer(json!([{"url": "https://a.example/", "title": "t", "content": "word ".repeat(500)}]))
    });
    let found = search(&rig(&site), json!({"query": "long"})).await;
    let excerpt = found.completed().lines().last().unwrap().trim();
    assert!(excerpt.chars().count() <= 503, "{}", excerpt.len());
}

#[tokio::test]
async fn a_missing_and_an_empty_query_are_refused() {
    let site = Site::new(|_| answer(results(1)));
    let rig = rig(&site);
    for arguments in [json!({}), json!({"query": ""}), json!({"query": "  "})] {
        let refused = search(&rig, arguments).await;
        assert_eq!(
            refused.failed(),
            "Missing required argument \"query\" for web_search."
        );
    }
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn without_an_engine_a_search_says_that_none_is_set_up() {
    let found = search(&Rig::new(), json!({"query": "cats"})).await;
    assert!(
        found.failed().starts_with("Web search unavailable: no search engine is set up here. The person can name one with web_search.url"),
        "{found:?}"
    );
}

#[tokio::test]
async fn results_can_be_kept_to_domains_and_away_from_others() {
    let site = Site::new(|_| answer(results(8)));
    let rig = rig(&site);
    let found = search(&rig, json!({"query": "x", "allowed_domains": ["7.example", "2.example"], "blocked_domains": ["2.example"]})).await;
    assert!(
        found.completed().contains("\n1. Title 7\n") && !found.text.contains("\n2. "),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_engine_that_refuses_or_answers_with_something_else_is_a_failure_that_says_so() {
    let site = Site::new(|asked| match asked.path.contains("q=refuse") {
        true => Answered::new(403, "text/html", "Forbidden"),
        false => Answered::page("<p>no JSON"),
    });
    let rig = rig(&site);
    let refused = search(&rig, json!({"query": "refuse"})).await;
    assert!(
        refused
            .failed()
            .starts_with("Web search failed: 127.0.0.1 answered with status 403"),
        "{refused:?}"
    );
    let page = search(&rig, json!({"query": "x"})).await;
    assert_eq!(
        page.failed(),
        "Web search failed: the answer of 127.0.0.1 is no JSON. The person can look whether web_search.url in the configuration is the engine's address for answers in JSON."
    );
}

#[tokio::test]
async fn the_engines_host_is_granted_to_searches_alone() {
    let site = Site::new(|_| answer(results(1)));
    let rig = rig(&site);
    let url = format!("http://{}/", site.address);
    let refused = rig.call("web_fetch", json!({"url": url})).await;
    assert!(
        refused.failed().starts_with("URL rejected: "),
        "{refused:?}"
    );
    assert!(site.asked().is_empty());
}
