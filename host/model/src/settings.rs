//! Where a model service is and how it is spoken to. Nothing here is read from a project's files.

use std::time::Duration;

/// Silence after which a request counts as timed out (spec/environment.md 1.10).
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A secret that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key; surrounding white space, which a file's last line brings along, is dropped.
    pub fn new(key: impl AsRef<str>) -> ApiKey {
        ApiKey(key.as_ref().trim().to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKey([redacted])")
    }
}

/// The settings of a model service. The default is the public OpenAI service, which needs a key.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// The address before `/chat/completions`; the public OpenAI service where none.
    pub base_url: Option<String>,
    /// The key; a service of one's own may need none.
    pub api_key: Option<ApiKey>,
    /// Silence after which a request counts as timed out. Every byte from the service counts as a sign of life, also a
    /// keep-alive comment.
    pub idle_timeout: Duration,
    /// Tokens that fit in a conversation, where known.
    pub context_window: Option<u64>,
    /// True where the model sees images.
    pub vision: bool,
}

impl Default for ModelSettings {
    fn default() -> Self {
        ModelSettings {
            base_url: None,
            api_key: None,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            context_window: None,
            vision: true,
        }
    }
}

impl ModelSettings {
    /// Lets `OPENAI_BASE_URL` and `OPENAI_API_KEY`, where set and not empty, win over what the configuration said.
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> ModelSettings {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(base_url) = set("OPENAI_BASE_URL") {
            self.base_url = Some(base_url);
        }
        if let Some(key) = set("OPENAI_API_KEY") {
            self.api_key = Some(ApiKey::new(key));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let settings = ModelSettings {
            api_key: Some(ApiKey::new("sk-very-secret\n")),
            ..ModelSettings::default()
        };
        assert!(!format!("{settings:?}").contains("secret"));
    }

    #[test]
    fn the_environment_wins_over_the_configuration_where_it_says_something() {
        let configured = ModelSettings {
            base_url: Some("http://configured/v1".into()),
            api_key: Some(ApiKey::new("configured")),
            ..ModelSettings::default()
        };
        let settings = configured.with_environment(|name| match name {
            "OPENAI_BASE_URL" => Some("http://environment/v1".into()),
            _ => Some(String::new()),
        });
        assert_eq!(settings.base_url.as_deref(), Some("http://environment/v1"));
        assert_eq!(settings.api_key, Some(ApiKey::new("configured")));
    }
}
