//! No walls at all: only on the operator's explicit word.

use super::Prepared;
use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::launch::start::{self, duplicate};
use crate::options::SandboxOptions;
use crate::plan::Plan;

pub(super) fn prepare(
    options: &SandboxOptions,
    command: &ConfinedCommand,
) -> Result<Prepared, SandboxError> {
    let execution = command.execution(
        script_file(options).into(),
        options.policy.limits,
        options.fillable(),
    );
    Ok(Prepared {
        program: start::program(&options.helper),
        plan: Plan::Unconfined(Box::new(execution)),
        descriptors: vec![duplicate(&options.workspace)?],
    })
}

/// Where a long script is put for a command without a view of its own: no other command of this process has the name.
pub(super) fn script_file(options: &SandboxOptions) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".script-{}-{number}", std::process::id());
    options.tmp_dir.join(name)
}
