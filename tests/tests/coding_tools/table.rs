//! What every built-in tool needs, may take and may reach, as one table, and every row of it against the components as they were built.

use std::collections::BTreeSet;

use floe_environment::Toolset;
use floe_protocol::{Permission, Truncation};
use wit_component::DecodedWasm;

use crate::rig::{components, registry};

/// One tool.
struct Row {
    name: &'static str,
    permission: Permission,
    timeout_ms: i64,
    max_output_length: i64,
    truncation: Truncation,
    aliases: &'static [&'static str],
    /// The interfaces of the contract that it imports beside those that every tool may have.
    reach: &'static [&'static str],
    /// Whether the host asks for the permission of each call.
    varies: bool,
}

/// A tool that reads and prints its output from the beginning.
const PLAIN: Row = Row {
    name: "",
    permission: Permission::ReadOnly,
    timeout_ms: 30_000,
    max_output_length: 16_000,
    truncation: Truncation::Head,
    aliases: &[],
    reach: &["workspace"],
    varies: false,
};

const TABLE: &[Row] = &[
    Row {
        name: "exec_command",
        permission: Permission::Execute,
        timeout_ms: 120_000,
        truncation: Truncation::HeadTail,
        reach: &["commands"],
        ..PLAIN
    },
    Row {
        name: "input_command",
        permission: Permission::Execute,
        timeout_ms: 130_000,
        truncation: Truncation::HeadTail,
        reach: &["commands"],
        ..PLAIN
    },
    Row {
        name: "read_image",
        timeout_ms: 60_000,
        reach: &["http", "workspace"],
        ..PLAIN
    },
    Row {
        name: "file_read",
        max_output_length: 66_000,
        ..PLAIN
    },
    Row {
        name: "grep",
        max_output_length: 32_000,
        ..PLAIN
    },
    Row {
        name: "glob",
        max_output_length: 32_000,
        ..PLAIN
    },
    Row {
        name: "list",
        max_output_length: 32_000,
        ..PLAIN
    },
    Row {
        name: "file_write",
        permission: Permission::Write,
        reach: &["edits", "workspace"],
        ..PLAIN
    },
    Row {
        name: "edit",
        permission: Permission::Write,
        reach: &["edits", "workspace"],
        ..PLAIN
    },
    Row {
        name: "apply_patch",
        permission: Permission::Write,
        reach: &["edits", "workspace"],
        ..PLAIN
    },
    Row {
        name: "shell",
        permission: Permission::Execute,
        timeout_ms: 610_000,
        max_output_length: 30_000,
        truncation: Truncation::HeadTail,
        reach: &["commands"],
        ..PLAIN
    },
    Row {
        name: "ask_clarification",
        permission: Permission::None,
        timeout_ms: 0,
        aliases: &["question", "ask_user_clarification"],
        reach: &["interaction"],
        ..PLAIN
    },
    Row {
        name: "plan_exit",
        permission: Permission::None,
        timeout_ms: 0,
        reach: &["session-state"],
        ..PLAIN
    },
    Row {
        name: "todowrite",
        permission: Permission::None,
        timeout_ms: 10_000,
        reach: &["session-state"],
        ..PLAIN
    },
    Row {
        name: "web_search",
        aliases: &["websearch", "web_search_tool"],
        reach: &["web-search"],
        ..PLAIN
    },
    Row {
        name: "web_fetch",
        timeout_ms: 45_000,
        max_output_length: 24_000,
        aliases: &["webfetch"],
        reach: &["http"],
        ..PLAIN
    },
    Row {
        name: "http_request",
        timeout_ms: 45_000,
        max_output_length: 30_000,
        reach: &["http"],
        varies: true,
        ..PLAIN
    },
    Row {
        name: "curl",
        permission: Permission::Write,
        timeout_ms: 150_000,
        reach: &["edits", "http"],
        ..PLAIN
    },
    Row {
        name: "lsp",
        reach: &["language-server"],
        ..PLAIN
    },
    // What it needs is what its child needs, which the host works out for each Session.
    Row {
        name: "spawn_subagent",
        permission: Permission::None,
        timeout_ms: 0,
        aliases: &["task"],
        reach: &["subagents"],
        ..PLAIN
    },
];

/// Interfaces that hold no power: every tool may import them.
const FREE: [&str; 4] = ["cancellation", "log", "output", "types"];

/// What a component for `wasm32-wasip1` imports of WASI. None of it reaches anything: there is no preopened folder, and no
/// variable, argument or input.
const WASI: [&str; 11] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/streams",
];

/// As [`WASI`], where a tool needs them.
const WASI_AT_TIMES: [&str; 2] = ["wasi:io/poll", "wasi:random/random"];

fn row(name: &str) -> &'static Row {
    let row = TABLE.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("{name} is in no row"))
}

/// What a component imports, by name.
fn imports(component: &[u8]) -> Vec<String> {
    let decoded = wit_component::decode(component).unwrap();
    let DecodedWasm::Component(resolve, world) = decoded else {
        panic!("a component");
    };
    let imports = resolve.worlds[world].imports.keys();
    imports.map(|key| resolve.name_world_key(key)).collect()
}

/// An import's name without its version.
fn unversioned(import: &str) -> &str {
    import.split_once('@').map_or(import, |(name, _)| name)
}

#[test]
fn every_built_in_tool_has_a_row_and_every_row_a_tool() {
    let registry = registry();
    let built: BTreeSet<&str> = registry.names().collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
    assert_eq!(built, rows);
    assert_eq!(rows.len(), TABLE.len());
}

#[test]
fn every_tool_has_the_permission_and_the_limits_of_its_row() {
    let registry = registry();
    for name in registry.names() {
        let (row, is) = (row(name), &registry.get(name).unwrap().definition);
        assert_eq!(is.permission, row.permission, "{name}");
        assert_eq!(is.permission_varies, row.varies, "{name}");
        assert_eq!(is.timeout_ms, row.timeout_ms, "{name}");
        assert_eq!(is.max_output_length, row.max_output_length, "{name}");
        assert_eq!(is.truncation, row.truncation, "{name}");
    }
}

#[test]
fn every_other_name_of_a_tool_leads_to_it_and_to_no_second_one() {
    let registry = registry();
    let mut all = BTreeSet::new();
    for name in registry.names() {
        let row = row(name);
        assert_eq!(
            registry.get(name).unwrap().definition.aliases,
            row.aliases,
            "{name}"
        );
        assert!(all.insert(name));
        for alias in row.aliases {
            assert!(all.insert(alias), "{alias} is taken");
            assert_eq!(registry.get(alias).unwrap().definition.name, name);
        }
    }
}

#[test]
fn every_tool_imports_what_its_row_says_and_nothing_more() {
    for (name, bytes) in components() {
        let imports = imports(&bytes);
        let imports: BTreeSet<&str> = imports.iter().map(|import| unversioned(import)).collect();
        let of_contract = imports
            .iter()
            .filter_map(|import| import.strip_prefix("floe:tool/"));
        let reach: Vec<&str> = of_contract
            .filter(|import| !FREE.contains(import))
            .collect();
        assert_eq!(reach, row(&name).reach, "{name}");
        for import in imports {
            let is_known = import.starts_with("floe:tool/")
                || WASI.contains(&import)
                || WASI_AT_TIMES.contains(&import);
            assert!(is_known, "{name} imports {import}");
        }
    }
}

#[test]
fn what_only_reads_cannot_write_and_what_keeps_a_list_cannot_read() {
    let reach = |name: &str| -> BTreeSet<&str> { row(name).reach.iter().copied().collect() };
    for row in TABLE {
        let reach = reach(row.name);
        if row.permission < Permission::Write {
            assert!(!reach.contains("edits"), "{}", row.name);
        }
        if row.permission < Permission::Execute {
            assert!(!reach.contains("commands"), "{}", row.name);
        }
        if row.permission < Permission::ReadOnly {
            for interface in [
                "workspace",
                "http",
                "vision",
                "language-server",
                "web-search",
            ] {
                assert!(!reach.contains(interface), "{}", row.name);
            }
        }
    }
    assert_eq!(reach("grep"), BTreeSet::from(["workspace"]));
    assert_eq!(reach("todowrite"), BTreeSet::from(["session-state"]));
}

#[test]
fn a_set_of_tools_holds_the_names_that_the_design_gives_it() {
    let minimal = [
        "exec_command",
        "input_command",
        "run_subagent",
        "input_subagent",
        "read_image",
        "describe_image",
    ];
    let coding = [
        "file_read",
        "grep",
        "glob",
        "list",
        "file_write",
        "edit",
        "apply_patch",
        "shell",
        "ask_clarification",
        "spawn_subagent",
        "todowrite",
        "plan_exit",
        "web_search",
        "web_fetch",
        "http_request",
        "curl",
        "lsp",
    ];
    let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
    let of = |toolset: Toolset| set(toolset.names().unwrap());
    assert_eq!(of(Toolset::Minimal), set(&minimal));
    assert_eq!(of(Toolset::Coding), set(&coding));
    assert_eq!(coding.len(), 17);
    let mut default = &set(&minimal) | &set(&coding);
    for double in ["shell", "spawn_subagent"] {
        default.remove(double);
    }
    assert_eq!(of(Toolset::Default), default);
    assert_eq!(Toolset::All.names(), None);
    // The seventeen are all there.
    let registry = registry();
    for name in coding {
        assert!(registry.get(name).is_some(), "{name}");
    }
}
