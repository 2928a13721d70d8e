//! Which model a run talks to: the command line, else FLOE_MODEL, else the agent, else the configuration. There is no default.

use std::sync::Arc;
use std::time::Duration;

use floe_model::{ModelDriver, ModelOpenError, ModelSettings};
use floe_protocol::AgentId;

use crate::config::{AgentConfig, Config};
use crate::exit::Fault;

/// Everything that may name a model.
pub(crate) struct Sources<'a> {
    /// `--model`
    pub(crate) flag: Option<&'a str>,
    /// `FLOE_MODEL`
    pub(crate) environment: Option<&'a str>,
    /// The agent, where it has a file.
    pub(crate) agent: Option<&'a AgentConfig>,
    /// The agent's name, for messages.
    pub(crate) agent_id: &'a AgentId,
    /// The configuration.
    pub(crate) config: &'a Config,
}

/// A model that is ready to be asked, and the words that named it.
pub(crate) struct Chosen {
    pub(crate) driver: Arc<dyn ModelDriver>,
    pub(crate) specification: String,
}

/// Chooses and opens the model. Nobody is asked anything yet.
pub(crate) fn open(sources: &Sources<'_>) -> Result<Chosen, Fault> {
    let (specification, place) = choose(sources)?;
    let driver = named(&specification, sources)
        .map_err(|error| Fault::usage(format!("The model of {place} cannot be used: {error}.")))?;
    Ok(Chosen {
        driver,
        specification,
    })
}

/// Opens the model of that name, whatever else names one.
pub(crate) fn named(
    specification: &str,
    sources: &Sources<'_>,
) -> Result<Arc<dyn ModelDriver>, ModelOpenError> {
    floe_model::open(specification, &settings(sources))
}

/// The specification and the place that named it.
fn choose(sources: &Sources<'_>) -> Result<(String, &'static str), Fault> {
    let agent = sources
        .agent
        .and_then(|agent| agent.model.model_id.as_deref());
    let named = [
        (sources.flag, "--model"),
        (sources.environment, "FLOE_MODEL"),
        (agent, "the agent"),
        (sources.config.model.as_deref(), "config.yaml"),
    ];
    named
        .into_iter()
        .find_map(|(specification, place)| Some((specification.filter(|text| !text.is_empty())?.to_owned(), place)))
        .ok_or_else(|| {
            Fault::usage(format!(
                "No model is set. Looked for --model, FLOE_MODEL, `model.model_id` of the agent {}, and `model` in \
                 config.yaml.\n  script:FILE plays a conversation from a file and needs no key.\n  openai:NAME asks a service that \
                 speaks Chat Completions: set OPENAI_API_KEY, or OPENAI_BASE_URL for a service of your own.",
                sources.agent_id
            ))
        })
}

fn settings(sources: &Sources<'_>) -> ModelSettings {
    let openai = &sources.config.openai;
    let agent_timeout = sources
        .agent
        .and_then(|agent| agent.model.timeout_ms)
        .filter(|milliseconds| *milliseconds > 0);
    let settings = ModelSettings {
        base_url: openai.base_url.clone(),
        idle_timeout: match agent_timeout {
            Some(milliseconds) => Duration::from_millis(milliseconds),
            None => Duration::from_secs(openai.idle_timeout_s),
        },
        context_window: openai.context_window,
        vision: openai.vision,
        ..ModelSettings::default()
    };
    settings.with_environment(|name| {
        let name = if name == "OPENAI_API_KEY" {
            &openai.api_key_env
        } else {
            name
        };
        std::env::var(name).ok()
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn chosen(
        flag: Option<&str>,
        environment: Option<&str>,
        agent: Option<&str>,
        config: Option<&str>,
    ) -> String {
        let agent = agent.map(|model| {
            let mut config = AgentConfig::default();
            config.model.model_id = Some(model.into());
            config
        });
        let config = Config {
            model: config.map(str::to_owned),
            ..Config::default()
        };
        let sources = Sources {
            flag,
            environment,
            agent: agent.as_ref(),
            agent_id: &AgentId::default(),
            config: &config,
        };
        match choose(&sources) {
            Ok((specification, _)) => specification,
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn the_model_is_the_flags_else_the_environments_else_the_agents_else_the_configurations() {
        assert_eq!(chosen(Some("f"), Some("e"), Some("a"), Some("c")), "f");
        assert_eq!(chosen(None, Some("e"), Some("a"), Some("c")), "e");
        assert_eq!(chosen(None, Some(""), Some("a"), Some("c")), "a");
        assert_eq!(chosen(None, None, None, Some("c")), "c");
    }

    #[test]
    fn without_a_model_it_says_where_it_looked_and_how_to_set_one_up() {
        expect![[r#"
            No model is set. Looked for --model, FLOE_MODEL, `model.model_id` of the agent default_agent, and `model` in config.yaml.
              script:FILE plays a conversation from a file and needs no key.
              openai:NAME asks a service that speaks Chat Completions: set OPENAI_API_KEY, or OPENAI_BASE_URL for a service of your own."#]].assert_eq(&chosen(None, None, None, None));
    }
}
