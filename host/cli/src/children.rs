//! The agents and the models of child Sessions, from the same files as those of the Session itself. What a tool's call names is named
//! by a model: no message of this says where on this machine anything lies, and no file is opened by a name of its choice.

use std::sync::Arc;

use floe_model::{ModelDriver, ModelSpec};
use floe_protocol::{AgentId, Home};
use floe_session::{AgentDefinition, AgentSource, ModelSource};

use crate::config::{AgentConfig, Config, load_agent};
use crate::model::{self, Sources};

/// Reads agents from `FLOE_HOME` and opens models as the configuration says.
pub(crate) struct ChildSources {
    home: Home,
    config: Config,
}

impl ChildSources {
    pub(crate) fn new(home: Home, config: Config) -> ChildSources {
        ChildSources { home, config }
    }
}

impl AgentSource for ChildSources {
    fn ids(&self) -> Vec<AgentId> {
        let entries = std::fs::read_dir(self.home.agents()).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| name.to_str()?.parse::<AgentId>().ok());
        let mut ids: Vec<AgentId> = ids
            .filter(|id| self.home.agent_config(id).is_file())
            .collect();
        ids.sort();
        ids
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentDefinition>, String> {
        let agent = load_agent(&self.home, id);
        let agent = agent.map_err(|faults| self.home.hidden_in(&faults.to_string()))?;
        Ok(agent.map(|agent| AgentDefinition {
            max_turns: agent.max_turns,
            max_tokens: agent.model.max_tokens,
            tools: agent.builtin().map(<[_]>::to_vec),
            system_prompt: agent.system_prompt,
        }))
    }
}

impl ModelSource for ChildSources {
    fn model(&self, specification: Option<&str>) -> Result<Arc<dyn ModelDriver>, String> {
        if let Some(named) = specification {
            match named.parse() {
                Ok(ModelSpec::Script(_)) => {
                    return Err(
                        "a script is a file of this machine, which a tool cannot name. Leave model_id out, or name openai:NAME."
                            .to_owned(),
                    );
                }
                Ok(_) => {}
                Err(error) => return Err(format!("{error}.")),
            }
        }
        let agent_id = AgentId::default();
        // A fault in its file is the person's to hear of where that agent is used.
        let agent: Option<AgentConfig> = load_agent(&self.home, &agent_id).ok().flatten();
        let environment = std::env::var("FLOE_MODEL").ok();
        let sources = Sources {
            flag: None,
            environment: environment.as_deref(),
            agent: agent.as_ref(),
            agent_id: &agent_id,
            config: &self.config,
        };
        match specification {
            Some(named) => model::named(named, &sources)
                .map_err(|error| self.home.hidden_in(&format!("{error}."))),
            None => model::open(&sources).map(|chosen| chosen.driver).map_err(|_| {
                "none is set that can be opened. Name one in model_id, such as openai:NAME; the person can set FLOE_MODEL, or `model` in config.yaml."
                    .to_owned()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(folder: &std::path::Path) -> ChildSources {
        for (agent, text) in [
            (
                "reader",
                "system_prompt: Read.\nmax_turns: 3\nmodel: {max_tokens: 9}\ntools:\n  builtin:\n  - {name: list, description: d, parameters: {type: object}, permission: r}\n",
            ),
            ("broken", "system_promt: x\n"),
        ] {
            let home = folder.join("agents").join(agent);
            std::fs::create_dir_all(&home).unwrap();
            std::fs::write(home.join("system_config.yaml"), text).unwrap();
        }
        std::fs::create_dir_all(folder.join("agents/empty")).unwrap();
        std::fs::create_dir_all(folder.join("agents/a b")).unwrap();
        ChildSources::new(Home::new(folder), Config::default())
    }

    #[test]
    fn the_agents_are_those_with_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(folder.path());
        let ids: Vec<String> = sources.ids().into_iter().map(String::from).collect();
        assert_eq!(ids, ["broken", "reader"]);
        let agent = sources.agent(&"reader".parse().unwrap()).unwrap().unwrap();
        assert_eq!(agent.system_prompt, "Read.");
        assert_eq!((agent.max_turns, agent.max_tokens), (Some(3), Some(9)));
        assert_eq!(agent.tools.unwrap()[0].name, "list");
        assert_eq!(sources.agent(&"empty".parse().unwrap()), Ok(None));
    }

    #[test]
    fn a_fault_in_an_agents_file_is_told_without_the_place_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(folder.path());
        let fault = sources.agent(&"broken".parse().unwrap()).unwrap_err();
        assert!(fault.contains("FLOE_HOME/agents/broken"), "{fault}");
        assert!(!fault.contains(folder.path().to_str().unwrap()), "{fault}");
    }

    #[test]
    fn a_tool_names_no_file_as_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(folder.path());
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "swordfish").unwrap();
        let refused = |name: &str| sources.model(Some(name)).map(|_| ()).unwrap_err();
        let message = refused(&format!("script:{}", secret.display()));
        assert!(message.contains("a file of this machine"), "{message}");
        assert!(!message.contains("swordfish"));
        assert!(refused("gpt").contains("openai:NAME"));
    }

    #[test]
    fn a_model_that_a_call_named_is_not_said_to_come_from_an_option() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(folder.path());
        let message = sources.model(Some("openai:")).map(|_| ()).unwrap_err();
        assert!(!message.contains("--model"), "{message}");
    }
}
