//! The search engine that `web_search` asks.

use std::collections::BTreeMap;

use floe_runtime::capability::web_search::{JsonEngine, JsonEngineOptions};
use serde::{Deserialize, Serialize};

/// How the engine is asked, and where in its answer things are. The defaults are those of SearXNG.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebSearch {
    /// What kind of engine it is.
    pub(crate) provider: Provider,
    /// Its address, with a place for the query; there is none where nothing stands here.
    pub(crate) url: Option<String>,
    /// The list of results in its answer.
    pub(crate) results: String,
    /// The title of a result.
    pub(crate) title: String,
    /// The address of a result.
    pub(crate) link: String,
    /// The passage of a result.
    pub(crate) excerpt: String,
    /// The date of a result.
    pub(crate) published: String,
    /// Header fields of the request.
    pub(crate) headers: BTreeMap<String, String>,
}

/// The kinds of engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Provider {
    /// It is asked by GET and answers with JSON.
    #[default]
    Json,
}

impl Default for WebSearch {
    fn default() -> WebSearch {
        WebSearch {
            provider: Provider::Json,
            url: None,
            results: "results".into(),
            title: "title".into(),
            link: "url".into(),
            excerpt: "content".into(),
            published: "publishedDate".into(),
            headers: BTreeMap::new(),
        }
    }
}

impl WebSearch {
    /// The engine, where one is set up.
    ///
    /// # Errors
    ///
    /// Why its address is none.
    pub(crate) fn engine(&self) -> Result<Option<JsonEngine>, String> {
        let Provider::Json = self.provider;
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let headers = self.headers.iter();
        JsonEngine::new(JsonEngineOptions {
            url: url.clone(),
            results: self.results.clone(),
            title: self.title.clone(),
            link: self.link.clone(),
            excerpt: self.excerpt.clone(),
            published: self.published.clone(),
            headers: headers
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        })
        .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_set_up_by_its_address_alone() {
        let said = |text| serde_yaml::from_str::<WebSearch>(text).unwrap().engine();
        assert_eq!(said("{}"), Ok(None));
        let engine = said("{url: 'http://127.0.0.1:8888/search?q={query}&format=json'}");
        assert!(engine.unwrap().is_some());
        assert!(said("{url: 'http://127.0.0.1:8888/search'}").is_err());
    }
}
