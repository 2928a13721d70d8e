//! The guests of `tests/guests` as components. `make guests` compiles those in Rust to core modules; here each becomes a component
//! when a test asks for it, once per process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

static MADE: Mutex<Option<HashMap<String, Vec<u8>>>> = Mutex::new(None);

/// The component of one example of `tests/guests`, by the example's name.
///
/// # Panics
///
/// Where the guest was not compiled; the message says what to run.
pub fn guest(name: &str) -> Vec<u8> {
    once(name, || componentize(&core_module(name)))
}

/// The component of one tool of the binary, by the tool's name.
///
/// # Panics
///
/// Where the tool was not compiled; the message says what to run.
pub fn tool(name: &str) -> Vec<u8> {
    let path = in_repository("target/guests/wasm32-wasip1/release").join(format!("{name}.wasm"));
    let core = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run: make components", path.display()));
    componentize(&core)
}

/// The core module of one example of `tests/guests`.
///
/// # Panics
///
/// Where the guest was not compiled; the message says what to run.
pub fn core_module(name: &str) -> Vec<u8> {
    let path = in_repository("target/guests/wasm32-wasip1/release/examples")
        .join(format!("{}.wasm", name.replace('-', "_")));
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run: make guests", path.display()))
}

/// The component of a core module written as text in `tests/guests/wat`, for the world `tool` of the contract or of the `.wit` file
/// beside it.
///
/// # Panics
///
/// Where the file is missing or does not fit the world.
pub fn text(name: &str) -> Vec<u8> {
    once(name, || {
        let mut module = core_text(name);
        let own_world = in_repository("tests/guests/wat").join(format!("{name}.wit"));
        let world = match own_world.exists() {
            true => own_world,
            false => in_repository("wit"),
        };
        let mut resolve = Resolve::default();
        let (package, _) = resolve
            .push_path(&world)
            .unwrap_or_else(|error| panic!("{}: {error:#}", world.display()));
        let world = resolve
            .select_world(&[package], Some("tool"))
            .unwrap_or_else(|error| panic!("{}: {error:#}", world.display()));
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .unwrap_or_else(|error| panic!("{name}: {error:#}"));
        componentize(&module)
    })
}

/// A core module written as text in `tests/guests/wat`, as it is.
///
/// # Panics
///
/// Where the file is missing or does not parse.
pub fn core_text(name: &str) -> Vec<u8> {
    let path = in_repository("tests/guests/wat").join(format!("{name}.wat"));
    wat::parse_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Makes a component of a core module for preview 1.
///
/// # Panics
///
/// Where the module does not fit the contract that it names.
pub fn componentize(core: &[u8]) -> Vec<u8> {
    ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|encoder| {
            encoder.adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
        })
        .and_then(|mut encoder| encoder.encode())
        .unwrap_or_else(|error| panic!("not a component: {error:#}"))
}

fn once(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    made.entry(name.to_owned()).or_insert_with(make).clone()
}

fn in_repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}
