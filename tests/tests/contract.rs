//! One tool, written three times (`plugins/contract`): with plain cargo, cargo-component and Python. Each must do the same through
//! the runtime, so that the contract serves authors whatever they build with. `make test-contract` builds the three and runs this.

use async_trait::async_trait;
use floe_protocol::Permission;
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::capability::workspace::{
    BytesRange, Entry, EntryKind, FileBatch, Walk, WalkOptions, Workspace,
};
use floe_runtime::{
    CallContext, CallEnd, CallLimits, CallRequest, Capability, CapabilitySet, Component,
    ComponentSource, Failure, Hosts, Runtime, RuntimeOptions,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A Workspace whose root holds a file and a folder.
struct TwoEntries;

#[async_trait]
impl Workspace for TwoEntries {
    async fn list_directory(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        if path != "." {
            return Err(Failure::new(
                "not-found",
                format!("\"{path}\" does not exist."),
            ));
        }
        let entry = |path: &str, kind| Entry {
            path: path.into(),
            kind,
            size: 0,
            modified_ms: None,
        };
        Ok(vec![
            entry("a.txt", EntryKind::File),
            entry("src", EntryKind::Directory),
        ])
    }

    async fn stat(&self, _: &str) -> Result<Entry, Failure> {
        unreachable!("the echo tool only lists")
    }

    async fn read_range(&self, _: &str, _: u64, _: u32) -> Result<BytesRange, Failure> {
        unreachable!("the echo tool only lists")
    }

    async fn read_batch(&self, _: &[String], _: u32) -> Result<FileBatch, Failure> {
        unreachable!("the echo tool only lists")
    }

    async fn open_walk(&self, _: WalkOptions) -> Result<Box<dyn Walk>, Failure> {
        unreachable!("the echo tool only lists")
    }
}

/// A built tool, loaded.
struct Echo {
    runtime: Runtime,
    component: Component,
}

impl Echo {
    /// Loads what `make test-contract` made.
    fn load(name: &str) -> Echo {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/contract/components");
        let read = |extension: &str| -> &'static [u8] {
            let path = folder.join(format!("{name}.{extension}"));
            std::fs::read(&path)
                .unwrap_or_else(|error| {
                    panic!("{}: {error}; run: make test-contract", path.display())
                })
                .leak()
        };
        let source = ComponentSource::Precompiled {
            cwasm: read("cwasm"),
            wasm: read("wasm"),
        };
        let runtime = Runtime::new(RuntimeOptions::new(tokio::runtime::Handle::current())).unwrap();
        let declared = CapabilitySet::default().with(Capability::Workspace);
        let component = runtime.load(name, source, declared).unwrap();
        Echo { runtime, component }
    }

    async fn call(
        &self,
        arguments: serde_json::Value,
        granted: CapabilitySet,
    ) -> (CallEnd, Vec<String>) {
        let output = RecordingOutput::new();
        let hosts = Hosts {
            workspace: Arc::new(TwoEntries),
            ..Hosts::deny()
        };
        let request = CallRequest {
            arguments: arguments.to_string(),
            context: CallContext::default(),
            granted,
            hosts: Arc::new(hosts),
            output: output.clone(),
            limits: CallLimits::default(),
            cancel: CancellationToken::new(),
        };
        let call = self.runtime.execute(&self.component, request).await;
        (call.end, output.deltas())
    }
}

async fn speaks_the_contract(name: &str) {
    let echo = Echo::load(name);
    let reading = CapabilitySet::default().with(Capability::Workspace);
    assert_eq!(
        echo.component.capabilities(),
        reading,
        "imports what it uses"
    );

    let definition = echo.runtime.definition(&echo.component).await.unwrap();
    assert_eq!(definition.name, name);
    assert_eq!(definition.permission, Permission::ReadOnly);

    let (end, deltas) = echo.call(json!({"text": "héllo"}), reading).await;
    assert_eq!(deltas, ["echo: ", "héllo", "\n"]);
    let CallEnd::Returned(result) = end else {
        panic!("{end:?}")
    };
    assert_eq!(result.note.as_deref(), Some("[2 entries]"));
    assert_eq!(
        result.structured,
        Some(json!({"entries": ["a.txt", "src"]}))
    );

    let (end, deltas) = echo
        .call(json!({"text": "x", "path": "missing"}), reading)
        .await;
    assert_eq!(deltas.concat(), "echo: x\n");
    let CallEnd::Failed(failure) = end else {
        panic!(
            "a failure of the host that the tool lets pass ends the call as that failure: {end:?}"
        )
    };
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("not-found", "\"missing\" does not exist.")
    );

    let (end, _) = echo
        .call(json!({"text": "x"}), CapabilitySet::default())
        .await;
    let CallEnd::Failed(failure) = end else {
        panic!("what was not granted is denied: {end:?}")
    };
    assert_eq!(failure.code, "denied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-contract builds the tool first"]
async fn a_tool_built_with_plain_cargo_speaks_the_contract() {
    speaks_the_contract("echo_plain_cargo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-contract builds the tool first"]
async fn a_tool_built_with_cargo_component_speaks_the_contract() {
    speaks_the_contract("echo_cargo_component").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "make test-contract builds the tool first"]
async fn a_tool_built_with_componentize_py_speaks_the_contract() {
    speaks_the_contract("echo_python").await;
}
