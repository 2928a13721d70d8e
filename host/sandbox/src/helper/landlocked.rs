//! A command within Landlock and seccomp alone, with the machine's own paths, processes and devices around it.

use std::os::fd::OwnedFd;

use super::limits::ProcessCap;
use super::seccomp::Sockets;
use super::{capabilities, exec, init, landlock, limits, seccomp};
use crate::error::SandboxError;
use crate::plan::Landlocked;

/// Builds the walls around this process, then leads the command.
pub(super) fn lead(
    control: &OwnedFd,
    plan: &Landlocked,
    mut descriptors: Vec<OwnedFd>,
) -> Result<(), SandboxError> {
    let streams = descriptors.split_off(1);
    let workspace = descriptors.remove(0);
    let execution = &plan.execution;
    let mut layers = vec![limits::apply(
        &execution.limits,
        ProcessCap::beside_others()?,
    )?];
    let script = exec::write_script(execution)?;
    let mut start = exec::prepare(execution, &workspace, streams)?;
    start.enclose(landlock::enclosure());
    let reach = landlock::open_alone(plan, &workspace, start.terminal())?;
    layers.push(capabilities::drop_held()?);
    layers.push(landlock::restrict_alone(reach, plan.network)?);
    let sockets = match plan.network {
        true => Sockets::OfNetwork,
        false => Sockets::OfUnix,
    };
    layers.push(seccomp::filter(sockets)?);
    init::lead_landlocked(control, execution, start, layers)?;
    drop(script);
    Ok(())
}
