//! A component that was let in: its bytes, what it imports, and its compiled form, which is made when it is first needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wasmtime::Engine;

use crate::admission::{self, AdmissionError};
use crate::bindings::ToolPre;
use crate::capability_set::CapabilitySet;
use crate::linker::Linkers;
use crate::state::CallState;

/// The largest component that is let in.
pub const MAX_COMPONENT_BYTES: usize = 64 << 20;

/// Where a component comes from.
#[derive(Clone)]
pub enum ComponentSource {
    /// Untrusted bytes: read, validated, compiled.
    Wasm(Vec<u8>),
    /// Compiled when this binary was built, and the bytes that it was compiled from.
    Precompiled {
        /// What [`crate::precompile`] returned for `wasm`. It is native code: only what was built into this binary may be
        /// given here.
        cwasm: &'static [u8],
        /// Compiled instead, where the engine refuses `cwasm`.
        wasm: &'static [u8],
    },
}

/// Which form of a component runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Compiled by this process.
    Compiled,
    /// Loaded as it was compiled at build time.
    Precompiled,
    /// Compiled by this process, because the engine refused what was compiled at build time.
    CompiledInstead {
        /// Why it was refused.
        reason: String,
    },
}

/// A component that may run. Clones share it.
#[derive(Clone)]
pub struct Component(Arc<Inner>);

struct Inner {
    name: String,
    source: ComponentSource,
    imports: Vec<String>,
    capabilities: CapabilitySet,
    engine: Engine,
    linkers: Arc<Linkers>,
    compiled: OnceLock<Result<Compiled, AdmissionError>>,
    linked: Mutex<HashMap<CapabilitySet, Arc<ToolPre<CallState>>>>,
}

struct Compiled {
    component: wasmtime::component::Component,
    form: Form,
}

impl Component {
    /// Lets a component in, or says why not. Nothing is compiled yet.
    pub(crate) fn admit(
        engine: &Engine,
        linkers: &Arc<Linkers>,
        name: &str,
        source: ComponentSource,
        declared: CapabilitySet,
    ) -> Result<Component, AdmissionError> {
        let bytes = source.wasm();
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(AdmissionError::TooLarge {
                tool: name.to_owned(),
                bytes: bytes.len(),
                limit: MAX_COMPONENT_BYTES,
            });
        }
        let surface = admission::admit(name, bytes, declared)?;
        if let ComponentSource::Wasm(bytes) = &source {
            admission::validate(name, bytes, engine.get_wasm_features())?;
        }
        Ok(Component(Arc::new(Inner {
            name: name.to_owned(),
            source,
            imports: surface.imports,
            capabilities: surface.capabilities,
            engine: engine.clone(),
            linkers: linkers.clone(),
            compiled: OnceLock::new(),
            linked: Mutex::default(),
        })))
    }

    /// The name it was loaded under.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The capabilities that it imports.
    pub fn capabilities(&self) -> CapabilitySet {
        self.0.capabilities
    }

    /// All its imports, as they are written in it.
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// Which form runs; none before it was first needed, or where it cannot run.
    pub fn form(&self) -> Option<Form> {
        let compiled = self.0.compiled.get()?.as_ref().ok()?;
        Some(compiled.form.clone())
    }

    /// Compiles it, or loads its compiled form, unless that has been done. Blocks for as long as that takes.
    pub fn compile(&self) -> Result<Form, AdmissionError> {
        Ok(self.compiled()?.form.clone())
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn compiled(&self) -> Result<&Compiled, AdmissionError> {
        let compiled = self.0.compiled.get_or_init(|| self.make());
        compiled.as_ref().map_err(Clone::clone)
    }

    fn make(&self) -> Result<Compiled, AdmissionError> {
        let mut form = Form::Compiled;
        if let ComponentSource::Precompiled { cwasm, .. } = self.0.source {
            // SAFETY: `ComponentSource::Precompiled` holds only what was built into this binary by `precompile`, which its
            // `'static` bytes and its documentation ask for; the engine checks version and settings itself.
            let loaded =
                unsafe { wasmtime::component::Component::deserialize(&self.0.engine, cwasm) };
            match loaded {
                Ok(component) => {
                    return Ok(Compiled {
                        component,
                        form: Form::Precompiled,
                    });
                }
                Err(error) => {
                    let reason = error.root_cause().to_string();
                    tracing::warn!(tool = self.0.name, reason, "compiled form refused");
                    form = Form::CompiledInstead { reason };
                }
            }
        }
        let component = wasmtime::component::Component::new(&self.0.engine, self.0.source.wasm())
            .map_err(|error| self.not_compiled(&error))?;
        Ok(Compiled { component, form })
    }

    /// The component bound to a capability set, where that was done before.
    pub(crate) fn linked(&self, set: CapabilitySet) -> Option<Arc<ToolPre<CallState>>> {
        let linked = self.0.linked.lock().unwrap_or_else(PoisonError::into_inner);
        linked.get(&set).cloned()
    }

    /// Compiles it if need be, and binds it to a capability set. Blocks.
    pub(crate) fn link(
        &self,
        set: CapabilitySet,
    ) -> Result<Arc<ToolPre<CallState>>, AdmissionError> {
        let component = &self.compiled()?.component;
        let linker = self.0.linkers.get(set).map_err(|e| self.not_compiled(&e))?;
        let misfit = |error: wasmtime::Error| AdmissionError::WrongShape {
            tool: self.0.name.clone(),
            detail: chain(&error),
        };
        let pre = linker.instantiate_pre(component).map_err(misfit)?;
        let pre = Arc::new(ToolPre::new(pre).map_err(misfit)?);
        let mut linked = self.0.linked.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(linked.entry(set).or_insert(pre).clone())
    }

    fn not_compiled(&self, error: &wasmtime::Error) -> AdmissionError {
        AdmissionError::NotCompiled {
            tool: self.0.name.clone(),
            reason: chain(error),
        }
    }
}

impl ComponentSource {
    fn wasm(&self) -> &[u8] {
        match self {
            ComponentSource::Wasm(bytes) => bytes,
            ComponentSource::Precompiled { wasm, .. } => wasm,
        }
    }
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("name", &self.0.name)
            .field("capabilities", &self.0.capabilities)
            .finish_non_exhaustive()
    }
}

/// What an error and its causes say, from the outside in. Never its debug form, which holds the host's own trace.
fn chain(error: &wasmtime::Error) -> String {
    let parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    parts.join(": ")
}
