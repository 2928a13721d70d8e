//! Names that lead inside by their meaning, whatever they resolve to: the machine's own, those of a local network, and the
//! metadata services of clouds, which hand out credentials to whoever asks.

/// Domains that are not of the public name system, each with all names below it.
const LOCAL: [&str; 12] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "onion",
    "invalid",
];

/// Metadata services under names that are public otherwise, each with all names below it.
const METADATA: [&str; 6] = [
    "metadata.goog",
    "metadata.azure.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
    "instance-data.amazonaws.com",
];

/// Whether `name`, in its one spelling, is one of these. A name without a dot is one of a local network.
pub(crate) fn is_local(name: &str) -> bool {
    let is_below = |upper: &&str| {
        name.strip_suffix(*upper)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !name.contains('.') || LOCAL.iter().chain(&METADATA).any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_local_network_or_a_metadata_service_is_known_by_itself() {
        for name in [
            "localhost",
            "a.localhost",
            "printer.local",
            "router",
            "metadata",
            "metadata.google.internal",
            "instance-data.ec2.internal",
            "metadata.goog",
            "a.home.arpa",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in [
            "example.com",
            "localhost.example.com",
            "notlocal.net",
            "mylocal.dev",
            "a.metadata.goog.example.com",
        ] {
            assert!(!is_local(name), "{name}");
        }
    }
}
