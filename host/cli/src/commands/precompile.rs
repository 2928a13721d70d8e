//! `floe precompile`: the second step of the build. A core module becomes a component, is admitted, compiled for the
//! baseline of this target, and asked what it is. What is up to date already is left alone, so that nothing is built again.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use floe_runtime::{CapabilitySet, Component, ComponentSource, Form, Runtime, RuntimeOptions};
use sha2::{Digest as _, Sha256};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::ComponentEncoder;

use crate::arguments::Precompile;
use crate::built_in::Description;
use crate::exit::{Ending, Fault, Status};

/// Compiles every module that is not compiled already. The folder then holds these tools and no others.
pub(crate) fn execute(arguments: &Precompile) -> Ending {
    match super::host()?.block_on(precompile(arguments)) {
        Ok(()) => Ok(Status::Completed),
        Err(error) => Err(Fault::failed(format!("{error:#}"))),
    }
}

async fn precompile(arguments: &Precompile) -> anyhow::Result<()> {
    let folder = &arguments.out;
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let runtime = Runtime::new(RuntimeOptions {
        pool: None,
        ..RuntimeOptions::new(tokio::runtime::Handle::current())
    })?;
    let kept = kept(folder);
    let mut made: BTreeMap<String, PathBuf> = BTreeMap::new();
    for module in &arguments.modules {
        let name = one(&runtime, module, folder, &kept)
            .await
            .with_context(|| format!("cannot compile {}", module.display()))?;
        if let Some(other) = made.insert(name.clone(), module.clone()) {
            bail!(
                "{} and {} are both named `{name}`; rename one of the tools",
                other.display(),
                module.display()
            );
        }
    }
    for name in kept.into_values().filter(|name| !made.contains_key(name)) {
        for extension in ["json", "cwasm", "wasm"] {
            let stale = path_of(folder, &name, extension);
            fs::remove_file(&stale)
                .with_context(|| format!("cannot remove {}", stale.display()))?;
        }
    }
    Ok(())
}

/// The names of the tools in a folder, by the digest of what they were made from.
fn kept(folder: &Path) -> BTreeMap<String, String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let description = fs::read(entry.ok()?.path()).ok()?;
            let description: Description = serde_json::from_slice(&description).ok()?;
            Some((description.source_sha256, description.definition.name))
        })
        .collect()
}

async fn one(
    runtime: &Runtime,
    module: &Path,
    folder: &Path,
    kept: &BTreeMap<String, String>,
) -> anyhow::Result<String> {
    let source = fs::read(module).context("it cannot be read")?;
    let source_sha256 = digest(&source);
    let label = module
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let tool = match kept
        .get(&source_sha256)
        .and_then(|name| reuse(runtime, folder, name))
    {
        Some(tool) => tool,
        None => compile(runtime, &label, componentize(source)?)?,
    };
    let definition = runtime.definition(&tool.component).await?;
    let name = definition.name.clone();
    ensure!(
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
        "its name `{}` cannot be the name of a file",
        name.escape_debug()
    );
    let description = Description {
        definition,
        capabilities: tool
            .component
            .capabilities()
            .names()
            .into_iter()
            .map(String::from)
            .collect(),
        sha256: digest(tool.wasm),
        source_sha256,
    };
    let mut json = serde_json::to_vec_pretty(&description)?;
    json.push(b'\n');
    // The description is last: while it is missing or old, the others are not used.
    write(&path_of(folder, &name, "wasm"), tool.wasm)?;
    write(&path_of(folder, &name, "cwasm"), tool.compiled)?;
    write(&path_of(folder, &name, "json"), &json)?;
    Ok(name)
}

/// A component with both its forms. The bytes live as long as this short program.
struct Tool {
    component: Component,
    wasm: &'static [u8],
    compiled: &'static [u8],
}

/// What an earlier call made, where it is whole and this engine takes it.
fn reuse(runtime: &Runtime, folder: &Path, name: &str) -> Option<Tool> {
    let wasm = fs::read(path_of(folder, name, "wasm")).ok()?;
    let compiled = fs::read(path_of(folder, name, "cwasm")).ok()?;
    let description: Description =
        serde_json::from_slice(&fs::read(path_of(folder, name, "json")).ok()?).ok()?;
    if digest(&wasm) != description.sha256 {
        return None;
    }
    let tool = load(runtime, name, wasm, compiled).ok()?;
    (tool.component.compile().ok()? == Form::Precompiled).then_some(tool)
}

fn compile(runtime: &Runtime, name: &str, wasm: Vec<u8>) -> anyhow::Result<Tool> {
    // Admission comes first: its messages say what is wrong with a component, the compiler's only that something is.
    runtime.load(
        name,
        ComponentSource::Wasm(wasm.clone()),
        CapabilitySet::all(),
    )?;
    let compiled = floe_runtime::precompile(&wasm)?;
    load(runtime, name, wasm, compiled)
}

fn load(runtime: &Runtime, name: &str, wasm: Vec<u8>, compiled: Vec<u8>) -> anyhow::Result<Tool> {
    let (wasm, compiled): (&'static [u8], &'static [u8]) = (wasm.leak(), compiled.leak());
    let source = ComponentSource::Precompiled {
        cwasm: compiled,
        wasm,
    };
    Ok(Tool {
        component: runtime.load(name, source, CapabilitySet::all())?,
        wasm,
        compiled,
    })
}

/// The component of a core module that was built for wasm32-wasip1; anything else is left as it is, for admission to judge.
fn componentize(bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    if !is_core_module(&bytes) {
        return Ok(bytes);
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .context(
            "it is no core module that knows the contract; build it with the SDK for wasm32-wasip1",
        )?
        .adapter(
            WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
            WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
        )
        .context("the adapter for preview 1 does not fit it")?
        .encode()
        .context("it cannot be made a component")
}

/// True for the binary form of a core module: the magic number of WebAssembly, then the layer of modules.
fn is_core_module(bytes: &[u8]) -> bool {
    bytes.get(..8) == Some(b"\0asm\x01\0\0\0")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn path_of(folder: &Path, name: &str, extension: &str) -> PathBuf {
    folder.join(format!("{name}.{extension}"))
}

/// Puts a file in its place at once, and only where it differs, so that what depends on it is not built again.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    let folder = path.parent().context("a file needs a folder")?;
    let place = || format!("cannot write {}", path.display());
    // Nothing in it is private, and tests read it as another user.
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .with_context(place)?;
    file.write_all(bytes).with_context(place)?;
    file.persist(path).with_context(place)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_told_from_a_core_module_by_its_layer() {
        assert!(is_core_module(b"\0asm\x01\0\0\0rest"));
        assert!(!is_core_module(b"\0asm\x0d\0\x01\0"));
        assert!(!is_core_module(b"\0asm"));
    }

    #[test]
    fn a_module_that_is_torn_is_refused_with_the_remedy() {
        let torn = b"\0asm\x01\0\0\0torn".to_vec();
        let message = format!("{:#}", componentize(torn).unwrap_err());
        assert!(message.contains("build it with the SDK"), "{message}");
    }

    #[test]
    fn a_file_that_is_the_same_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        write(&path, b"one").unwrap();
        let before = fs::metadata(&path).unwrap();
        write(&path, b"one").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
