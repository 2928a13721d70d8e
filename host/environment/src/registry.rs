//! The tools that exist on this host, by name and alias. It knows nothing of Sessions: what one of them sees of it is
//! decided in `catalogue`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use floe_protocol::{Permission, ToolDefinition};
use floe_runtime::{Call, CallRequest, CapabilitySet, Component, Runtime};
use floe_sandbox::WorkspaceMode;

use crate::gate::schema::{ArgumentSchema, SchemaError};

/// Where a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Part of the binary.
    BuiltIn,
    /// A plugin of that name.
    Plugin(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built-in"),
            Origin::Plugin(name) => write!(f, "plugin:{name}"),
        }
    }
}

/// What runs a tool: a component, or another source of tools. Never called but by the Environment.
#[async_trait]
pub trait ToolBody: Send + Sync {
    /// What it imports of the capabilities.
    fn imports(&self) -> CapabilitySet;

    /// The permission that these arguments need; asked only where the definition says that it varies.
    ///
    /// # Errors
    /// A text for the model, where the tool gave no answer.
    async fn permission_for(&self, arguments: &str) -> Result<Permission, String>;

    /// Runs one call to its end.
    async fn run(&self, request: CallRequest) -> Call;
}

/// A tool that is a component.
struct ComponentBody {
    runtime: Runtime,
    component: Component,
}

#[async_trait]
impl ToolBody for ComponentBody {
    fn imports(&self) -> CapabilitySet {
        self.component.capabilities()
    }

    async fn permission_for(&self, arguments: &str) -> Result<Permission, String> {
        self.runtime
            .permission_for(&self.component, arguments)
            .await
            .map_err(|fault| fault.to_string())
    }

    async fn run(&self, request: CallRequest) -> Call {
        self.runtime.execute(&self.component, request).await
    }
}

/// A tool as it is registered.
#[derive(Clone)]
pub struct RegisteredTool {
    /// What it says about itself, read once at install.
    pub definition: ToolDefinition,
    /// What runs it.
    pub body: Arc<dyn ToolBody>,
    /// What its manifest declares.
    pub declared: CapabilitySet,
    /// What the operator granted.
    pub granted: CapabilitySet,
    /// The most that its commands may do with the Workspace: what its manifest asks for, or less where the operator grants less.
    pub workspace: WorkspaceMode,
    /// Where it comes from.
    pub origin: Origin,
    /// SHA-256 (hex) of the component.
    pub sha256: String,
}

impl RegisteredTool {
    /// A tool that is a component. Declares and is granted what it imports, as a built-in tool is; set the fields for less.
    pub fn component(
        runtime: Runtime,
        component: Component,
        definition: ToolDefinition,
        sha256: String,
    ) -> RegisteredTool {
        let imports = component.capabilities();
        RegisteredTool {
            definition,
            body: Arc::new(ComponentBody { runtime, component }),
            declared: imports,
            granted: imports,
            workspace: WorkspaceMode::WorkspaceWrite,
            origin: Origin::BuiltIn,
            sha256,
        }
    }

    /// What it may reach before mode and cap.
    pub(crate) fn power(&self) -> CapabilitySet {
        self.body
            .imports()
            .intersection(self.declared)
            .intersection(self.granted)
    }
}

/// A tool that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools cannot share a name or an alias.
    #[error("the name `{name}` of {origin} is taken by `{by}`; rename one of the two tools")]
    NameTaken {
        /// The name.
        name: String,
        /// Who wants it.
        origin: Origin,
        /// Who has it.
        by: String,
    },
    /// Its schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// A registered tool and its compiled schema.
pub(crate) struct Entry {
    pub(crate) tool: RegisteredTool,
    pub(crate) schema: LazySchema,
}

/// A schema that is compiled at its first use, so that listing tools costs nothing.
#[derive(Default)]
pub(crate) struct LazySchema(OnceLock<Result<ArgumentSchema, SchemaError>>);

impl LazySchema {
    pub(crate) fn get(&self, definition: &ToolDefinition) -> Result<&ArgumentSchema, SchemaError> {
        self.0
            .get_or_init(|| ArgumentSchema::compile(&definition.name, &definition.parameters))
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// All tools of this host.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<Entry>>,
    aliases: BTreeMap<String, String>,
}

impl Registry {
    /// A registry without tools.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// Where its name or one of its aliases is taken. Its schema is compiled later; see [`Registry::check`].
    pub fn insert(&mut self, tool: RegisteredTool) -> Result<(), RegistryError> {
        let definition = &tool.definition;
        for name in std::iter::once(&definition.name).chain(&definition.aliases) {
            if let Some(by) = self.find(name) {
                return Err(RegistryError::NameTaken {
                    name: name.clone(),
                    origin: tool.origin.clone(),
                    by: by.tool.definition.name.clone(),
                });
            }
        }
        for alias in &definition.aliases {
            self.aliases.insert(alias.clone(), definition.name.clone());
        }
        let entry = Entry {
            tool,
            schema: LazySchema::default(),
        };
        self.tools
            .insert(entry.tool.definition.name.clone(), Arc::new(entry));
        Ok(())
    }

    /// Compiles every schema, as an install and `floe config check` do.
    ///
    /// # Errors
    /// The first schema that is none.
    pub fn check(&self) -> Result<(), RegistryError> {
        for entry in self.tools.values() {
            entry.schema.get(&entry.tool.definition)?;
        }
        Ok(())
    }

    /// The tool of that name or alias.
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.find(name).map(|entry| &entry.tool)
    }

    /// The names of all tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.tools
            .get(name)
            .or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.tools.values()
    }
}
