//! The limiter of one Store: all linear memories together, tables and instances. It refuses growth and remembers that it did,
//! so that the end of the call can say why.

use wasmtime::{ResourceLimiter, Result};

use crate::engine::MAX_TABLE_ELEMENTS;

/// Core instances of one call.
const MAX_INSTANCES: usize = 64;
/// Memories of one call.
const MAX_MEMORIES: usize = 16;
/// Tables of one call.
const MAX_TABLES: usize = 32;

/// Bounds what one Store may hold.
pub(crate) struct MemoryLimiter {
    limit: usize,
    used: usize,
    last_growth: usize,
    refused: bool,
}

impl MemoryLimiter {
    pub(crate) fn new(limit: usize) -> MemoryLimiter {
        MemoryLimiter {
            limit,
            used: 0,
            last_growth: 0,
            refused: false,
        }
    }

    /// A sentence for the end of the call, where growth was refused.
    pub(crate) fn verdict(&self) -> Option<String> {
        self.refused.then(|| {
            let mebibytes = self.limit.div_ceil(1 << 20);
            format!("the tool reached its memory limit of {mebibytes} MiB")
        })
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let growth = desired.saturating_sub(current);
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        if growth > self.limit.saturating_sub(self.used) {
            self.refused = true;
            return Ok(false);
        }
        self.used += growth;
        self.last_growth = growth;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        self.used -= std::mem::take(&mut self.last_growth);
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS.min(maximum.unwrap_or(usize::MAX)))
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_share_one_limit_and_a_refusal_is_remembered() {
        let mut limiter = MemoryLimiter::new(3 << 20);
        assert!(limiter.memory_growing(0, 2 << 20, None).unwrap());
        assert!(limiter.verdict().is_none());
        assert!(!limiter.memory_growing(0, 2 << 20, None).unwrap());
        assert_eq!(
            limiter.verdict().unwrap(),
            "the tool reached its memory limit of 3 MiB"
        );
        assert!(limiter.memory_growing(0, 1 << 20, None).unwrap());
    }

    #[test]
    fn a_growth_that_failed_is_given_back() {
        let mut limiter = MemoryLimiter::new(1 << 20);
        assert!(limiter.memory_growing(0, 1 << 20, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no"))
            .unwrap();
        assert!(limiter.memory_growing(0, 1 << 20, None).unwrap());
    }
}
