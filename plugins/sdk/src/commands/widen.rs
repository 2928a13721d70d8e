//! The argument by which a call asks for more than the sandbox gives.

/// What a command may ask for. The host takes it from the arguments, and whatever it decides is decided before this tool runs.
#[derive(schemars::JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of use here")]
pub struct Widen {
    /// Why, in one sentence for the person who decides.
    #[schemars(length(min = 1, max = 500))]
    reason: String,
    /// Absolute paths outside the Workspace to read, each with all below it.
    #[schemars(default, length(max = 16))]
    read: Vec<String>,
    /// Absolute paths outside the Workspace to read and change, each with all below it.
    #[schemars(default, length(max = 16))]
    write: Vec<String>,
    /// Hosts to reach, as NAME or NAME:PORT; without a port it is 443.
    #[schemars(default, length(max = 16))]
    hosts: Vec<String>,
}
