//! What a tool tells about itself.

use crate::bindings::floe::tool::types::{ModelClass, Permission, ToolDefinition};

/// How the host cuts output that is longer than the tool's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// Keeps the beginning.
    Head,
    /// Keeps the beginning and the end, for output whose verdict is at its end.
    HeadTail,
}

/// A tool's name, description and limits. The schema of its arguments comes from their type.
///
/// A tool that says nothing else needs [`Permission::None`], is offered to every model, and has the host's limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    name: String,
    description: String,
    aliases: Vec<String>,
    permission: Permission,
    permission_varies: bool,
    for_model: ModelClass,
    timeout_ms: Option<u32>,
    max_output_length: Option<u32>,
    truncation: Option<Truncation>,
    output_schema: Option<String>,
    metadata: Vec<(String, String)>,
}

impl Definition {
    /// A tool with this name and this description, both for the model to read.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Definition {
        Definition {
            name: name.into(),
            description: description.into(),
            aliases: Vec::new(),
            permission: Permission::None,
            permission_varies: false,
            for_model: ModelClass::Any,
            timeout_ms: None,
            max_output_length: None,
            truncation: None,
            output_schema: None,
            metadata: Vec::new(),
        }
    }

    /// Another name that a model may call the tool by.
    #[must_use]
    pub fn alias(mut self, name: impl Into<String>) -> Definition {
        self.aliases.push(name.into());
        self
    }

    /// What the tool may do at least. [`Permission::None`] where this is not called.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Definition {
        self.permission = permission;
        self
    }

    /// Lets the host ask [`Tool::permission_for`](crate::Tool::permission_for) before each call.
    #[must_use]
    pub fn permission_varies(mut self) -> Definition {
        self.permission_varies = true;
        self
    }

    /// Offers the tool only to models that see images, or only to those that do not.
    #[must_use]
    pub fn for_model(mut self, class: ModelClass) -> Definition {
        self.for_model = class;
        self
    }

    /// Milliseconds after which the host ends a call; 0 for no limit, which takes a grant.
    #[must_use]
    pub fn timeout_ms(mut self, milliseconds: u32) -> Definition {
        self.timeout_ms = Some(milliseconds);
        self
    }

    /// Unicode scalar values of output that the model gets to see; 0 for no limit, which takes a grant.
    #[must_use]
    pub fn max_output_length(mut self, characters: u32) -> Definition {
        self.max_output_length = Some(characters);
        self
    }

    /// What is kept of output that is too long: its head where this is not called.
    #[must_use]
    pub fn truncation(mut self, truncation: Truncation) -> Definition {
        self.truncation = Some(truncation);
        self
    }

    /// Says that a call holds things of up to so many MiB and hands them to the host in one piece, where 32 MiB do not do. The host
    /// gives the room for it to its own tools only.
    #[must_use]
    pub fn carries_mib(mut self, mebibytes: u32) -> Definition {
        self.metadata
            .push(("carries-mib".into(), mebibytes.to_string()));
        self
    }

    /// Declares the type of what [`Outcome::with_structured`](crate::Outcome::with_structured) gets.
    #[must_use]
    pub fn structured_output<T: schemars::JsonSchema>(mut self) -> Definition {
        self.output_schema = Some(crate::schema::schema_of::<T>().to_string());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The permission that every call needs at least.
    pub fn least_permission(&self) -> Permission {
        self.permission
    }

    pub(crate) fn into_record(self, parameters: String) -> ToolDefinition {
        ToolDefinition {
            name: self.name,
            aliases: self.aliases,
            description: self.description,
            parameters,
            permission: self.permission,
            permission_varies: self.permission_varies,
            for_model: self.for_model,
            timeout_ms: self.timeout_ms,
            max_output_length: self.max_output_length,
            truncation: self.truncation.map(|truncation| {
                String::from(match truncation {
                    Truncation::Head => "head",
                    Truncation::HeadTail => "head-tail",
                })
            }),
            output_schema: self.output_schema,
            metadata: self.metadata,
        }
    }
}
