//! The tools of one Session: which of the registered ones it has, as which definition, in which order.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use floe_protocol::{ModelClass, Permission, ToolDefinition};
use floe_runtime::{Capability, CapabilitySet};
use serde::Serialize;
use serde_json::Value;

use crate::gate;
use crate::gate::schema::{ArgumentSchema, Judge, Judgement, SchemaError};
use crate::options::{Selection, Surface};
use crate::power;
use crate::registry::{Entry, LazySchema, RegisteredTool, Registry};
use crate::settings::Settings;

/// A tool as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolListing {
    /// What the model calls it.
    pub name: String,
    /// For the model.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// A JSON Schema of the structured result, where it promises one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it may do.
    pub permission: Permission,
    /// True where it may do more with some arguments.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub permission_varies: bool,
    /// What it reaches, sorted by name.
    pub capabilities: Vec<String>,
    /// `built-in` or `plugin:NAME`.
    pub origin: String,
}

/// A tool that a Session has.
pub(crate) struct Offer {
    entry: Arc<Entry>,
    pub(crate) definition: ToolDefinition,
    /// Where the definition is not the registered one, its own schema.
    own_schema: Option<LazySchema>,
    /// The schema of the structured result, compiled at its first use; an error where it is none.
    output_schema: OnceLock<Result<Judge, String>>,
}

impl Offer {
    pub(crate) fn tool(&self) -> &RegisteredTool {
        &self.entry.tool
    }

    /// Whether an agent's entry defines it, rather than the tool itself.
    pub(crate) fn is_entry(&self) -> bool {
        self.own_schema.is_some()
    }

    /// Whether it can start children.
    fn starts_children(&self) -> bool {
        self.tool().power().contains(Capability::Subagents)
    }

    /// Whether mode and surface allow it.
    fn is_allowed(&self, permission: Permission, settings: Settings, surface: Surface) -> bool {
        let name = &self.definition.name;
        gate::mode::check(name, settings.mode, permission, self.tool().power()).is_ok()
            && gate::surface::check(name, surface, settings.max_permission, permission).is_ok()
    }

    /// The schema that arguments are judged by.
    pub(crate) fn schema(&self) -> Result<&ArgumentSchema, SchemaError> {
        match &self.own_schema {
            Some(schema) => schema.get(&self.definition),
            None => self.entry.schema.get(&self.entry.tool.definition),
        }
    }

    /// Whether a structured result is what the tool promised.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn check_structured(&self, structured: &Value) -> Result<(), String> {
        let Some(schema) = &self.definition.output_schema else {
            return Ok(());
        };
        let judge = self.output_schema.get_or_init(|| {
            Judge::compile(schema).map_err(|error| format!("the output schema is none: {error}"))
        });
        let judge = judge.as_ref().map_err(Clone::clone)?;
        match judge.judge(structured) {
            Judgement::Fits => Ok(()),
            // No words about the place: finding them could cost more than the result is worth.
            Judgement::Unfit => Err("it does not fit the output schema".to_owned()),
            Judgement::TooMuch => {
                Err("the output schema takes too many steps to judge it".to_owned())
            }
        }
    }
}

/// What a name stands for.
pub(crate) enum Found<'catalogue> {
    /// A tool of this Session.
    Offered(&'catalogue Arc<Offer>),
    /// A tool of this host that this Session does not have.
    Hidden(&'catalogue Entry),
}

/// The tools of a Session.
pub(crate) struct Catalogue {
    registry: Arc<Registry>,
    offers: Vec<Arc<Offer>>,
    by_name: HashMap<String, usize>,
}

impl Catalogue {
    /// Selects tools, none of which has what is withheld. The second value names what was selected and nothing provides.
    pub(crate) fn new(
        registry: Arc<Registry>,
        selection: &Selection,
        vision: bool,
        withheld: CapabilitySet,
    ) -> (Catalogue, Vec<String>) {
        let mut missing = Vec::new();
        let mut offers: Vec<Offer> = match selection {
            Selection::Toolset(toolset) => {
                let mut entries: Vec<&Arc<Entry>> = registry
                    .entries()
                    .filter(|entry| toolset.holds(&entry.tool.definition.name, &entry.tool.origin))
                    .collect();
                entries.sort_by_key(|entry| toolset.position(&entry.tool.definition.name));
                entries
                    .into_iter()
                    .map(|entry| Offer {
                        entry: Arc::clone(entry),
                        definition: toolset.adapt(&entry.tool.definition),
                        own_schema: None,
                        output_schema: OnceLock::new(),
                    })
                    .collect()
            }
            Selection::Entries(definitions) => definitions
                .iter()
                .filter_map(|definition| {
                    let Some(entry) = registry.find(&definition.name) else {
                        missing.push(definition.name.clone());
                        return None;
                    };
                    Some(Offer {
                        entry: Arc::clone(entry),
                        definition: definition.clone(),
                        own_schema: Some(LazySchema::default()),
                        output_schema: OnceLock::new(),
                    })
                })
                .collect(),
        };
        offers.retain(|offer| match offer.definition.for_model {
            ModelClass::Any => true,
            ModelClass::Vision => vision,
            ModelClass::TextOnly => !vision,
        });
        offers.retain(|offer| offer.tool().power().intersection(withheld).is_empty());
        let mut by_name = HashMap::new();
        for (at, offer) in offers.iter().enumerate() {
            let definition = &offer.definition;
            for name in std::iter::once(&definition.name).chain(&definition.aliases) {
                by_name.entry(name.clone()).or_insert(at);
            }
        }
        let catalogue = Catalogue {
            registry,
            offers: offers.into_iter().map(Arc::new).collect(),
            by_name,
        };
        (catalogue, missing)
    }

    /// What a name or alias stands for.
    pub(crate) fn find(&self, name: &str) -> Option<Found<'_>> {
        if let Some(at) = self.by_name.get(name) {
            return Some(Found::Offered(&self.offers[*at]));
        }
        let entry = self.registry.find(name)?;
        let canonical = &entry.tool.definition.name;
        Some(match self.by_name.get(canonical) {
            Some(at) => Found::Offered(&self.offers[*at]),
            None => Found::Hidden(entry),
        })
    }

    /// What a tool may do: what its definition says. One that starts children may do what they may, and they have the other tools
    /// as far as mode and surface allow them: the strongest of these is its permission, whatever a definition says, which cannot
    /// know.
    pub(crate) fn permission(
        &self,
        offer: &Offer,
        settings: Settings,
        surface: Surface,
    ) -> Permission {
        let declared = offer.definition.permission;
        if !offer.starts_children() {
            return declared;
        }
        let of_children = self
            .offers
            .iter()
            .filter(|other| !other.starts_children())
            .map(|other| (other, other.definition.permission))
            .filter(|(other, permission)| other.is_allowed(*permission, settings, surface))
            .map(|(_, permission)| permission)
            .max()
            .unwrap_or(Permission::None);
        let does_more = offer.tool().power().without(Capability::Subagents);
        match does_more.is_empty() {
            true => of_children,
            false => of_children.max(declared),
        }
    }

    /// What can be called now, in a stable order.
    pub(crate) fn list(&self, settings: Settings, surface: Surface) -> Vec<ToolListing> {
        self.offers
            .iter()
            .filter_map(|offer| {
                let definition = &offer.definition;
                let permission = self.permission(offer, settings, surface);
                if !offer.is_allowed(permission, settings, surface) {
                    return None;
                }
                let power =
                    power::effective(offer.tool().power(), settings.mode, settings.max_permission);
                Some(ToolListing {
                    name: definition.name.clone(),
                    description: definition.description.clone(),
                    parameters: definition.parameters.clone(),
                    output_schema: definition.output_schema.clone(),
                    permission,
                    permission_varies: definition.permission_varies,
                    capabilities: power::sorted_names(power),
                    origin: offer.tool().origin.to_string(),
                })
            })
            .collect()
    }
}
