//! `floe tools`: what a Session would offer its model. It runs no tool: what each says about itself was read when it was
//! compiled.

use std::sync::Arc;

use floe_environment::{
    CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink, Selection, Surface,
    ToolListing,
};
use floe_protocol::{OmniMessage, Permission};
use floe_runtime::{Hosts, Runtime, RuntimeOptions};

use crate::arguments::{OutputForm, Tools};
use crate::built_in;
use crate::config;
use crate::exit::{Ending, Fault, Status};
use crate::home;
use crate::rendering;
use crate::terminal::Screen;

/// Lists the tools of a toolset.
pub(crate) fn execute(arguments: &Tools) -> Ending {
    let home = home::from_environment()?;
    let config = config::load(&home, None).map_err(|faults| Fault::usage(faults.to_string()))?;
    let toolset = arguments.toolset.unwrap_or(config.toolset);
    let host = super::host()?;
    let listing = host.block_on(async {
        listing(Selection::Toolset(toolset.into()), arguments.max_permission)
    })?;
    let screen = Screen::of_process();
    match arguments.output {
        OutputForm::Json => {
            let text = serde_json::to_string_pretty(&listing).map_err(|error| {
                Fault::failed(format!("The tools cannot be written as JSON: {error}."))
            })?;
            screen.json_result(&format!("{text}\n"));
        }
        OutputForm::Text => screen.result(&rendering::tools(&listing, screen.result_paint())),
    }
    if listing.is_empty() && arguments.max_permission.is_none() {
        screen.aside(built_in::MISSING);
    }
    Ok(Status::Completed)
}

fn listing(
    selection: Selection,
    max_permission: Option<Permission>,
) -> Result<Vec<ToolListing>, Fault> {
    let runtime = Runtime::new(RuntimeOptions {
        pool: None,
        ..RuntimeOptions::new(tokio::runtime::Handle::current())
    })
    .map_err(|error| Fault::failed(error.to_string()))?;
    let registry = Arc::new(built_in::registry(&runtime)?);
    let environment = Environment::new(EnvironmentOptions {
        selection,
        max_permission,
        surface: Surface::Call,
        ..EnvironmentOptions::new(
            String::new(),
            registry,
            Arc::new(Nothing),
            Arc::new(Nothing),
        )
    });
    Ok(environment.tools())
}

/// The Environment of a listing: it has no capabilities and keeps no record, so that nothing could run in it.
struct Nothing;

impl HostsFactory for Nothing {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::new(Hosts::deny())
    }
}

impl MessageSink for Nothing {
    fn emit(&self, _message: OmniMessage) {}

    fn recording(&self) -> Result<(), String> {
        Err("nothing is recorded while tools are listed".to_owned())
    }
}
