//! The one engine and its settings. Whatever compiles a component and whatever runs it must agree, so both take
//! [`config`]; only the build side adds the baseline target.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Linear memories, tables and core instances that the pool holds per component instance. Components of some languages bring
/// two or three memories and four or more core instances each.
const MEMORIES_PER_INSTANCE: u32 = 4;
const TABLES_PER_INSTANCE: u32 = 8;
const CORE_INSTANCES_PER_INSTANCE: u32 = 16;
/// The most that one component may bring.
const MAX_MEMORIES_PER_COMPONENT: u32 = 16;
const MAX_TABLES_PER_COMPONENT: u32 = 32;
const MAX_CORE_INSTANCES_PER_COMPONENT: u32 = 64;
/// The most that one core module may define.
const MAX_MEMORIES_PER_MODULE: u32 = 4;
const MAX_TABLES_PER_MODULE: u32 = 8;
/// The largest table that a module may begin with or grow to; interpreters of some languages need tens of thousands.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 100_000;
/// Bytes that stay resident in a slot after use (spec/runtime.md 2, "Call cost").
const MEMORY_KEEP_RESIDENT: usize = 4096 << 10;
const TABLE_KEEP_RESIDENT: usize = 64 << 10;
const STACK_KEEP_RESIDENT: usize = 64 << 10;
/// Idle slots that keep what they hold, which bounds what the pool holds for nobody: 128 MiB where every guest used all of its 4 MiB.
const MAX_IDLE_WARM_SLOTS: u32 = 32;
/// A guest's own stack, and the whole stack that it and the host functions it calls run on.
const GUEST_STACK_BYTES: usize = 512 << 10;
const CALL_STACK_BYTES: usize = 2 << 20;

/// Where instances come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// From a pool that was reserved at the start.
    Pooling {
        /// Component instances that it holds.
        instances: u32,
    },
    /// Each from fresh memory: slower, and the same otherwise.
    OnDemand {
        /// Why there is no pool; none where on-demand was asked for.
        reason: Option<String>,
    },
}

/// The settings of every engine. With `pool`, instances come from a pool of that many; everything that a compiled component
/// depends on is the same either way.
pub fn config(pool: Option<u32>) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK_BYTES)
        .async_stack_size(CALL_STACK_BYTES)
        .wasm_memory64(false);
    if let Some(instances) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling(instances)));
    }
    config
}

fn pooling(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(CORE_INSTANCES_PER_INSTANCE))
        .total_memories(instances.saturating_mul(MEMORIES_PER_INSTANCE))
        .total_tables(instances.saturating_mul(TABLES_PER_INSTANCE))
        .total_stacks(instances)
        .max_core_instances_per_component(MAX_CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MAX_MEMORIES_PER_COMPONENT)
        .max_tables_per_component(MAX_TABLES_PER_COMPONENT)
        .max_memories_per_module(MAX_MEMORIES_PER_MODULE)
        .max_tables_per_module(MAX_TABLES_PER_MODULE)
        .table_elements(MAX_TABLE_ELEMENTS)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT)
        .table_keep_resident(TABLE_KEEP_RESIDENT)
        .async_stack_keep_resident(STACK_KEEP_RESIDENT)
        .max_unused_warm_slots(MAX_IDLE_WARM_SLOTS)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Makes the engine: with a pool where it can be reserved, which making the engine finds out at once, else without.
pub(crate) fn open(pool: Option<u32>) -> wasmtime::Result<(Engine, Allocator)> {
    let Some(instances) = pool else {
        return Ok((
            Engine::new(&config(None))?,
            Allocator::OnDemand { reason: None },
        ));
    };
    match Engine::new(&config(Some(instances))) {
        Ok(engine) => Ok((engine, Allocator::Pooling { instances })),
        Err(error) => {
            let reason = Some(error.root_cause().to_string());
            Ok((Engine::new(&config(None))?, Allocator::OnDemand { reason }))
        }
    }
}

/// The target whose processors all of that architecture have in common with: without it the build machine's own features are
/// baked in and other machines refuse the result.
pub(crate) const BASELINE_TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// Compiles a component for the baseline of this architecture, to be embedded and loaded by an engine of [`config`].
pub fn precompile(wasm: &[u8]) -> Result<Vec<u8>, PrecompileError> {
    let failed = |error: wasmtime::Error| PrecompileError(error.root_cause().to_string());
    let mut config = config(None);
    config.target(BASELINE_TARGET).map_err(failed)?;
    Engine::new(&config)
        .and_then(|engine| engine.precompile_component(wasm))
        .map_err(failed)
}

/// A component that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the component does not compile for {BASELINE_TARGET}: {0}")]
pub struct PrecompileError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_cannot_be_reserved_falls_back_and_says_why() {
        // More memories than any address space has room for.
        let (_engine, allocator) = open(Some(1 << 16)).unwrap();
        let Allocator::OnDemand {
            reason: Some(reason),
        } = allocator
        else {
            panic!("{allocator:?}");
        };
        assert!(!reason.is_empty());
    }

    #[test]
    fn what_the_build_side_compiles_the_pooled_and_the_plain_engine_load() {
        let compiled = precompile(b"\0asm\x0d\0\x01\0").unwrap();
        for pool in [Some(4), None] {
            let (engine, _) = open(pool).unwrap();
            // SAFETY: the bytes come from `precompile` a few lines up.
            let loaded = unsafe { wasmtime::component::Component::deserialize(&engine, &compiled) };
            assert!(loaded.is_ok(), "{:?}", loaded.err().map(|e| e.to_string()));
        }
    }

    #[test]
    fn what_is_no_component_does_not_compile() {
        assert!(precompile(b"\0asm").is_err());
    }
}
