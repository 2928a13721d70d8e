//! What imports are bound to: one linker per capability set, made when it is first needed and kept. What a set does not hold is
//! bound to the zero-sized [`Deny`], from which no authority can be reached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};

use crate::bindings::floe::tool;
use crate::capability::Deny;
use crate::capability_set::{Capability, CapabilitySet};
use crate::state::CallState;

/// The linkers of one engine.
pub(crate) struct Linkers {
    engine: Engine,
    made: Mutex<HashMap<CapabilitySet, Arc<Linker<CallState>>>>,
}

impl Linkers {
    pub(crate) fn new(engine: Engine) -> Linkers {
        Linkers {
            engine,
            made: Mutex::default(),
        }
    }

    /// The linker of one set.
    pub(crate) fn get(&self, set: CapabilitySet) -> wasmtime::Result<Arc<Linker<CallState>>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = made.get(&set) {
            return Ok(linker.clone());
        }
        let linker = Arc::new(link(&self.engine, set)?);
        made.insert(set, linker.clone());
        Ok(linker)
    }
}

/// Binds one interface to the call's host, or to `Deny`.
macro_rules! bind {
    ($linker:ident, $set:ident, $($capability:ident => $interface:ident,)*) => {$(
        if $set.contains(Capability::$capability) {
            tool::$interface::add_to_linker::<CallState, HasSelf<CallState>>(&mut $linker, |state| state)?;
        } else {
            tool::$interface::add_to_linker::<CallState, Deny>(&mut $linker, |_| Deny)?;
        }
    )*};
}

fn link(engine: &Engine, set: CapabilitySet) -> wasmtime::Result<Linker<CallState>> {
    type This = HasSelf<CallState>;
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    tool::types::add_to_linker::<_, This>(&mut linker, |state| state)?;
    tool::output::add_to_linker::<_, This>(&mut linker, |state| state)?;
    tool::cancellation::add_to_linker::<_, This>(&mut linker, |state| state)?;
    tool::log::add_to_linker::<_, This>(&mut linker, |state| state)?;
    bind! { linker, set,
        Workspace => workspace,
        Edits => edits,
        Commands => commands,
        Http => http,
        Vision => vision,
        Subagents => subagents,
        Interaction => interaction,
        SessionState => session_state,
        LanguageServer => language_server,
        WebSearch => web_search,
    }
    Ok(linker)
}
