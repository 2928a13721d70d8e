//! Any bytes are let in as a component or refused with a message; nothing is compiled, and nothing panics.
#![no_main]

use floe_runtime::{CapabilitySet, ComponentSource, Runtime, RuntimeOptions};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static HOST: LazyLock<(tokio::runtime::Runtime, Runtime)> = LazyLock::new(|| {
    let io = tokio::runtime::Runtime::new().expect("the async runtime starts");
    let options = RuntimeOptions { pool: None, ..RuntimeOptions::new(io.handle().clone()) };
    let runtime = Runtime::new(options).expect("the engine starts");
    (io, runtime)
});

fuzz_target!(|bytes: Vec<u8>| {
    let _ = HOST.1.load("fuzzed", ComponentSource::Wasm(bytes), CapabilitySet::all());
});
