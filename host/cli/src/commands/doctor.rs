//! `floe doctor`: which walls stand on this machine, found out by building them, whether they are what the person's
//! configuration asks for, and whether the tools run as they were compiled.

use std::path::Path;

use floe_runtime::{Allocator, Form, Runtime, RuntimeOptions};
use floe_sandbox::{Doctor as Confinement, Layer, Network};
use serde::Serialize;

use crate::arguments::{Doctor, OutputForm};
use crate::config::load;
use crate::exit::{Ending, Fault, Status};
use crate::terminal::Screen;
use crate::{built_in, home, rendering};

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    #[serde(flatten)]
    pub(crate) confinement: Confinement,
    /// Whether the person's configuration does without walls, whatever stands here.
    #[serde(rename = "unsafe_no_sandbox")]
    pub(crate) unconfined: bool,
    /// What commands reach over the network by the person's configuration.
    pub(crate) network: Network,
    /// And the hosts, where it is by the proxy.
    pub(crate) allow_hosts: Vec<String>,
    /// What is no wall and still worth knowing.
    pub(crate) tools: [Layer; 2],
}

/// Examines the machine and prints what it found.
pub(crate) fn execute(arguments: &Doctor) -> Ending {
    let home = home::from_environment()?;
    let config = load(&home, None).map_err(|faults| Fault::usage(faults.to_string()))?;
    let confinement = floe_sandbox::doctor(Path::new("/proc/self/exe"), config.shell.min_tier);
    let host = super::host()?;
    let findings = Findings {
        confinement,
        unconfined: config.shell.unsafe_no_sandbox,
        network: config.shell.network,
        allow_hosts: config.shell.allow_hosts,
        tools: host.block_on(async { tools() })?,
    };
    let screen = Screen::of_process();
    match arguments.output {
        OutputForm::Json => screen.json_result(&json(&findings)?),
        OutputForm::Text => screen.result(&rendering::doctor(&findings, screen.result_paint())),
    }
    Ok(if findings.confinement.ok {
        Status::Completed
    } else {
        Status::Failed
    })
}

/// What is not a wall and still worth knowing: where instances come from, and in which form the built-in tools run.
fn tools() -> Result<[Layer; 2], Fault> {
    let runtime = Runtime::new(RuntimeOptions::new(tokio::runtime::Handle::current()))
        .map_err(|error| Fault::failed(error.to_string()))?;
    let pool = match runtime.allocator() {
        Allocator::Pooling { instances } => layer(
            "instance pool",
            Ok(format!("{instances} instances reserved")),
        ),
        Allocator::OnDemand { reason } => {
            let reason = reason.as_deref().unwrap_or("not asked for");
            let detail = format!("none, calls start more slowly: {reason}");
            layer(
                "instance pool",
                Err((
                    detail,
                    "raise the limit of address space (`ulimit -v unlimited`)",
                )),
            )
        }
    };
    Ok([pool, built_in_tools(&runtime)])
}

fn built_in_tools(runtime: &Runtime) -> Layer {
    let name = "built-in tools";
    let loaded = match built_in::load(runtime) {
        Ok(loaded) => loaded,
        Err(fault) => {
            return layer(
                name,
                Err((
                    fault.to_string(),
                    "build the binary again with `make build`",
                )),
            );
        }
    };
    if loaded.is_empty() {
        return layer(
            name,
            Err((
                "none in this binary".into(),
                "build it with `make build`, which compiles them in",
            )),
        );
    }
    for (component, _) in &loaded {
        let refused = match component.compile() {
            Ok(Form::CompiledInstead { reason }) => reason,
            Ok(_) => continue,
            Err(error) => error.to_string(),
        };
        let detail = format!(
            "`{}` is compiled anew at every start: {refused}",
            component.name()
        );
        return layer(
            name,
            Err((
                detail,
                "build the binary on this kind of machine with `make build`",
            )),
        );
    }
    layer(
        name,
        Ok(format!("{} tools, compiled ahead of time", loaded.len())),
    )
}

fn layer(name: &str, state: Result<String, (String, &str)>) -> Layer {
    let (active, detail, remedy) = match state {
        Ok(detail) => (true, detail, None),
        Err((detail, remedy)) => (false, detail, Some(remedy.to_owned())),
    };
    Layer {
        name: name.to_owned(),
        active,
        detail,
        remedy,
    }
}

fn json(findings: &Findings) -> Result<String, Fault> {
    serde_json::to_string_pretty(findings)
        .map(|text| format!("{text}\n"))
        .map_err(|error| Fault::failed(format!("The findings cannot be written as JSON: {error}.")))
}
