//! From a model specification, such as `script:FILE`, to its driver.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::{ModelDriver, ModelOpenError, ModelSettings, OpenAiDriver, ScriptDriver};

/// A parsed model specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSpec {
    /// A script in a file.
    Script(PathBuf),
    /// A model of a Chat Completions service.
    OpenAi(String),
}

impl FromStr for ModelSpec {
    type Err = ModelOpenError;

    fn from_str(given: &str) -> Result<ModelSpec, ModelOpenError> {
        let unknown = || ModelOpenError::Unknown {
            given: given.to_owned(),
        };
        let (provider, name) = given.split_once(':').ok_or_else(unknown)?;
        match (provider, name) {
            ("anthropic" | "openai-responses", _) => Err(ModelOpenError::NotBuilt {
                provider: provider.to_owned(),
            }),
            (_, "") => Err(unknown()),
            ("script", file) => Ok(ModelSpec::Script(PathBuf::from(file))),
            ("openai", name) => Ok(ModelSpec::OpenAi(name.to_owned())),
            _ => Err(unknown()),
        }
    }
}

/// Opens the model that a specification names.
///
/// # Errors
///
/// [`ModelOpenError`]: all of them errors of usage, found without a request to anybody.
pub fn open(spec: &str, settings: &ModelSettings) -> Result<Arc<dyn ModelDriver>, ModelOpenError> {
    match spec.parse()? {
        ModelSpec::Script(file) => Ok(Arc::new(ScriptDriver::open(&file)?)),
        ModelSpec::OpenAi(name) => Ok(Arc::new(OpenAiDriver::new(name, settings)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_a_driver_and_a_name() {
        assert_eq!(
            "script:a b.yaml".parse::<ModelSpec>().unwrap(),
            ModelSpec::Script("a b.yaml".into())
        );
        assert_eq!(
            "openai:qwen3:8b".parse::<ModelSpec>().unwrap(),
            ModelSpec::OpenAi("qwen3:8b".into())
        );
    }

    #[test]
    fn drivers_that_come_later_say_so_and_name_what_exists() {
        for spec in ["anthropic:claude", "openai-responses:x"] {
            let message = spec.parse::<ModelSpec>().unwrap_err().to_string();
            assert!(message.contains("not built yet"), "{message}");
            assert!(
                message.contains("script:FILE") && message.contains("openai:NAME"),
                "{message}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_forms_that_exist() {
        for spec in ["", "gpt", "script:", "openai:", "llama:x", ":x"] {
            let message = spec.parse::<ModelSpec>().unwrap_err().to_string();
            assert!(message.contains("script:FILE"), "{spec}: {message}");
        }
    }

    #[test]
    fn the_public_service_is_not_opened_without_a_key() {
        let error = open("openai:gpt", &ModelSettings::default()).map(|_| ());
        assert!(matches!(error, Err(ModelOpenError::MissingKey { .. })));
    }
}
