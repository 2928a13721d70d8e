//! Layer 7: no capability in any set, and no way to get one back.

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::{failed, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};

/// The highest number that a capability can have.
const HIGHEST: u32 = 63;

/// Empties the bounding, ambient, permitted, effective and inheritable sets, locks the rules that would give root its
/// capabilities back, and sets `no_new_privs`.
pub(super) fn drop_all() -> Result<Layer, SandboxError> {
    let layer = LayerName::Capabilities;
    for number in 0..=HIGHEST {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel knows none from here on.
            Err(rustix::io::Errno::INVAL) => break,
            Err(errno) => {
                return Err(failed(layer, format!("prctl(PR_CAPBSET_DROP, {number})"))(
                    errno,
                ));
            }
        }
    }
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(locked).map_err(failed(layer, "prctl(PR_SET_SECUREBITS)"))?;
    empty()?;
    Ok(stands(
        layer,
        "none, bounding set empty, secure bits locked, no_new_privs",
    ))
}

/// As [`drop_all`], for a process that is in no user namespace of its own and may lack the privilege to empty the bounding
/// set. It gains nothing from that set, because `no_new_privs` keeps it from what it does not have already.
pub(super) fn drop_held() -> Result<Layer, SandboxError> {
    let held = capabilities(None).map_err(failed(LayerName::Capabilities, "capget"))?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        return drop_all();
    }
    empty()?;
    Ok(stands(LayerName::Capabilities, "none, no_new_privs"))
}

/// Gives up what this process holds, and what it could gain by executing something.
fn empty() -> Result<(), SandboxError> {
    let layer = LayerName::Capabilities;
    clear_ambient_capability_set().map_err(failed(layer, "prctl(PR_CAP_AMBIENT_CLEAR_ALL)"))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(failed(layer, "capset"))?;
    set_no_new_privs(true).map_err(failed(layer, "prctl(PR_SET_NO_NEW_PRIVS)"))
}
