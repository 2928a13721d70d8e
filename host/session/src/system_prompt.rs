//! The system prompt: the agent's own, or the built-in one, with its placeholders filled in.

use floe_protocol::Mode;

/// The prompt of an agent that has none of its own.
const DEFAULT: &str = include_str!("system_prompt.md");

/// What a model is told beside its prompt for as long as the Session is in plan mode.
const PLAN_MODE: &str = "This Session is in plan mode: nothing can be changed and no command runs. Find out what you need, then hand in your plan \
                         with plan_exit as the only call of your answer; the person decides on it.";

/// The prompt as it is sent in this mode.
pub(crate) fn in_mode(prompt: &str, mode: Mode) -> String {
    match mode {
        Mode::Build => prompt.to_owned(),
        Mode::Plan => format!("{prompt}\n\n{PLAN_MODE}").trim_start().to_owned(),
    }
}

/// What placeholders stand for.
pub(crate) struct Facts<'a> {
    pub(crate) agent: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) session: &'a str,
}

/// The prompt with every placeholder of the format (spec/environment.md 1.12) filled in, in one pass, so that nothing that is filled in can
/// bring a placeholder along. Those of things that Floe does not have become nothing; other text in braces stays as it is.
pub(crate) fn assemble(own: Option<&str>, facts: &Facts<'_>) -> String {
    let mut rest = own.unwrap_or(DEFAULT);
    let mut prompt = String::with_capacity(rest.len());
    while let Some(start) = rest.find("{{") {
        let (before, from_braces) = rest.split_at(start);
        prompt.push_str(before);
        let placeholder = from_braces
            .find("}}")
            .and_then(|end| Some((fill(&from_braces[2..end], facts)?, end + 2)));
        match placeholder {
            Some((value, length)) => {
                prompt.push_str(&value);
                rest = &from_braces[length..];
            }
            None => {
                prompt.push_str("{{");
                rest = &from_braces[2..];
            }
        }
    }
    prompt.push_str(rest);
    prompt.trim_end().to_owned()
}

fn fill(name: &str, facts: &Facts<'_>) -> Option<String> {
    Some(match name.trim() {
        "CWD" | "PROJECT_DIR" => floe_runtime::WORKSPACE_DIR.to_owned(),
        "DATE" => jiff::ZonedDateTime::now().date().to_string(),
        "PLATFORM" => std::env::consts::OS.to_owned(),
        "SHELL" => "bash".to_owned(),
        "AGENT_ID" => facts.agent.to_owned(),
        "PROVIDER" => facts.provider.to_owned(),
        "MODEL_ID" => facts.model.to_owned(),
        "SESSION_ID" => facts.session.to_owned(),
        "AGENTS_MD" | "VAULT" | "SKILLS" | "MEMORY" | "SCHEDULES" | "OS_VERSION" => String::new(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts<'static> = Facts {
        agent: "default_agent",
        provider: "openai",
        model: "{{DATE}}",
        session: "session-1",
    };

    #[test]
    fn the_built_in_prompt_names_the_workspace_and_the_date_and_no_host_path() {
        let prompt = assemble(None, &FACTS);
        assert!(prompt.contains("at /workspace."), "{prompt}");
        assert!(prompt.contains("Today is 2"), "{prompt}");
        assert!(!prompt.contains("{{") && !prompt.contains("/home"));
        assert!(prompt.len() < 2000, "short");
    }

    #[test]
    fn plan_mode_is_told_for_as_long_as_it_lasts() {
        assert_eq!(in_mode("Work.", Mode::Build), "Work.");
        assert!(in_mode("Work.", Mode::Plan).starts_with("Work.\n\nThis Session is in plan mode"));
    }

    #[test]
    fn an_agents_own_prompt_replaces_it_whole() {
        assert_eq!(
            assemble(Some("I am {{AGENT_ID}} in {{CWD}}.{{SKILLS}}"), &FACTS),
            "I am default_agent in /workspace."
        );
    }

    #[test]
    fn what_is_filled_in_brings_no_placeholder_along_and_other_braces_stay() {
        assert_eq!(
            assemble(Some("{{MODEL_ID}} {{what}} {{ {{SHELL}} }}"), &FACTS),
            "{{DATE}} {{what}} {{ bash }}"
        );
    }
}
