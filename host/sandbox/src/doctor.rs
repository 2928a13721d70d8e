//! Which walls stand on this machine, found out by building them around `true`.

use serde::{Deserialize, Serialize};

use crate::layer::{Layer, Tier};

/// What `floe doctor` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    /// The set of walls that was tried.
    pub tier: Tier,
    /// Every wall, in the order in which they are built.
    pub layers: Vec<Layer>,
    /// Whether commands can be confined.
    pub ok: bool,
}
