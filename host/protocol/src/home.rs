//! Where the host keeps its state: the layout of `FLOE_HOME` as paths. Nothing here looks at the disk.

use std::path::{Path, PathBuf};

use crate::{AgentId, SessionId};

/// The root of all state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// A home at `root`, an absolute path.
    pub fn new(root: impl Into<PathBuf>) -> Home {
        Home { root: root.into() }
    }

    /// The root itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A text for a model, which is not told where this host keeps its files: the root in it becomes `FLOE_HOME`.
    pub fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), "FLOE_HOME")
    }

    /// The user's configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.yaml")
    }

    /// The folder of an agent.
    pub fn agent(&self, agent: &AgentId) -> PathBuf {
        self.root.join("agents").join(agent.as_str())
    }

    /// The configuration of an agent.
    pub fn agent_config(&self, agent: &AgentId) -> PathBuf {
        self.agent(agent).join("system_config.yaml")
    }

    /// The Traces of an agent: a folder a day.
    pub fn traces(&self, agent: &AgentId) -> PathBuf {
        self.agent(agent).join("traces")
    }

    /// The folder of all agents.
    pub fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// The file with the last hash of a Session's Trace.
    pub fn head(&self, session: &SessionId) -> PathBuf {
        self.root.join("heads").join(session.as_str())
    }

    /// The folder of a Session's own files.
    pub fn session(&self, session: &SessionId) -> PathBuf {
        self.sessions().join(session.as_str())
    }

    /// The folders of all Sessions.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// What a Session's edits need, and what undoes them.
    pub fn journal(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("journal")
    }

    /// The locks of Workspaces, which all Sessions share.
    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// Whole outputs of calls that were cut.
    pub fn outputs(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("outputs")
    }

    /// HOME of a Session's commands.
    pub fn command_home(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("home")
    }

    /// /tmp of a Session's commands.
    pub fn command_tmp(&self, session: &SessionId) -> PathBuf {
        self.session(session).join("tmp")
    }

    /// What can be made again.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }
}
