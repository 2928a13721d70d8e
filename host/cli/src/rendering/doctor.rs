//! The state of the sandbox as tables, one for each set of walls: each wall, whether it stands, and what to do where it does
//! not; then which set commands get.

use floe_sandbox::{Examined, Layer, Network, Tier};

use crate::commands::doctor::Findings;
use crate::terminal::{Paint, Style};

/// The tables for people.
pub(crate) fn doctor(findings: &Findings, paint: Paint) -> String {
    let confinement = &findings.confinement;
    let layers = confinement.tiers.iter().flat_map(|tier| &tier.layers);
    let names = layers.chain(&findings.tools).map(|layer| &layer.name);
    let width = names.map(|name| name.chars().count()).max();
    let table = Table {
        width: width.unwrap_or_default(),
        paint,
    };
    let mut text = String::new();
    for examined in &confinement.tiers {
        text.push_str(&table.tier(examined));
        text.push('\n');
    }
    text.push_str("tools\n");
    for layer in &findings.tools {
        text.push_str(&table.layer(layer));
    }
    text.push('\n');
    text.push_str(&conclusion(findings, paint));
    text
}

/// What a set of walls consists of.
fn meaning(tier: Tier) -> &'static str {
    match tier {
        Tier::Native => "namespaces, mounts, Landlock and seccomp, all built by Floe",
        Tier::Bwrap => "the same walls, with the namespaces and mounts built by the system's bwrap",
        Tier::Landlock => "Landlock and seccomp alone; only where `shell.min_tier` is `landlock`",
        Tier::Unconfined => "no walls; only with --unsafe-no-sandbox or `shell.unsafe_no_sandbox`",
        _ => "",
    }
}

fn conclusion(findings: &Findings, paint: Paint) -> String {
    let confinement = &findings.confinement;
    let minimum = confinement.minimum;
    let mut text = match confinement.tier {
        Some(tier) => paint.paint(
            Style::Good,
            format!("Commands are confined: tier {tier}, at least {minimum} is asked for."),
        ),
        None => paint.paint(
            Style::Bad,
            format!(
                "Commands are refused on this machine until what is missing is there: at least {minimum} is asked for \
                 (`shell.min_tier`)."
            ),
        ),
    };
    if findings.unconfined {
        text.push('\n');
        text.push_str(&paint.paint(
            Style::Bad,
            "They run UNCONFINED all the same, because `shell.unsafe_no_sandbox` is true.",
        ));
    }
    if let Some(tier) = confinement.tier.filter(|_| !findings.unconfined) {
        text.push_str(&reached(findings, tier, paint));
    }
    text.push('\n');
    text
}

/// What confined commands reach over the network, as a line of its own; nothing where it is nothing.
fn reached(findings: &Findings, tier: Tier, paint: Paint) -> String {
    let line = match findings.network {
        Network::Off => return String::new(),
        Network::Proxy if tier == Tier::Landlock => {
            "They reach no host: `shell.network` is `proxy`, and the tier landlock does not lead to it."
                .to_owned()
        }
        Network::Proxy if findings.allow_hosts.is_empty() => {
            "They reach no host: `shell.network` is `proxy` and `shell.allow_hosts` is empty."
                .to_owned()
        }
        Network::Proxy => {
            let hosts = findings.allow_hosts.join(", ");
            format!("They reach these hosts over the network: {hosts}.")
        }
        Network::Host => paint.paint(
            Style::Bad,
            "They reach all that this machine reaches, its own services included, because `shell.network` is `host`.",
        ),
    };
    format!("\n{line}")
}

struct Table {
    width: usize,
    paint: Paint,
}

impl Table {
    fn tier(&self, examined: &Examined) -> String {
        let Table { paint, .. } = self;
        let tier = examined.tier;
        let state = match (tier, examined.stands) {
            (Tier::Unconfined, true) => paint.paint(Style::Bad, "possible"),
            (_, true) => paint.paint(Style::Good, "stands"),
            (_, false) => paint.paint(Style::Bad, "does not stand"),
        };
        let mut text = format!("{tier}: {state} ({})\n", meaning(tier));
        if let Some(fault) = &examined.fault {
            text.push_str(&format!("  {fault}\n"));
        }
        // Where none was tried, a list of them says nothing.
        if examined.fault.is_none() {
            for layer in &examined.layers {
                text.push_str(&self.layer(layer));
            }
        }
        text
    }

    fn layer(&self, layer: &Layer) -> String {
        let Table { width, paint } = self;
        let state = if layer.active {
            paint.paint(Style::Good, "active ")
        } else {
            paint.paint(Style::Bad, "missing")
        };
        let mut text = format!("  {state}  {:<width$}  {}\n", layer.name, layer.detail);
        if let Some(remedy) = &layer.remedy {
            text.push_str(&format!("           {:<width$}  to do: {remedy}\n", ""));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use floe_sandbox::{Doctor, MinimumTier};

    use super::*;

    fn layer(name: &str, active: bool, remedy: Option<&str>) -> Layer {
        Layer {
            name: name.into(),
            active,
            detail: "as it is".into(),
            remedy: remedy.map(Into::into),
        }
    }

    fn examined(tier: Tier, fault: Option<&str>, layers: Vec<Layer>) -> Examined {
        Examined {
            tier,
            stands: fault.is_none() && layers.iter().all(|layer| layer.active),
            fault: fault.map(Into::into),
            layers,
        }
    }

    fn shows(minimum: MinimumTier, tier: Option<Tier>, unconfined: bool, expected: Expect) {
        let mut landlock = examined(
            Tier::Landlock,
            None,
            vec![layer("mounts", false, None), layer("seccomp", true, None)],
        );
        landlock.stands = true;
        let tiers = vec![
            examined(
                Tier::Native,
                None,
                vec![
                    layer("user namespace", true, None),
                    layer("mounts", false, Some("Allow it.")),
                    layer("seccomp", false, None),
                ],
            ),
            examined(
                Tier::Bwrap,
                Some("It is not there."),
                vec![layer("mounts", false, None)],
            ),
            landlock,
            examined(Tier::Unconfined, None, Vec::new()),
        ];
        let findings = Findings {
            confinement: Doctor {
                ok: tier.is_some(),
                minimum,
                tier,
                tiers,
            },
            unconfined,
            network: Network::Proxy,
            allow_hosts: vec!["crates.io".into()],
            tools: [
                layer("instance pool", true, None),
                layer("built-in tools", false, Some("Build them.")),
            ],
        };
        expected.assert_eq(&doctor(&findings, Paint::PLAIN));
    }

    #[test]
    fn every_set_of_walls_has_a_table_and_what_is_missing_has_its_remedy() {
        shows(
            MinimumTier::Native,
            None,
            false,
            expect![[r#"
                native: does not stand (namespaces, mounts, Landlock and seccomp, all built by Floe)
                  active   user namespace  as it is
                  missing  mounts          as it is
                                           to do: Allow it.
                  missing  seccomp         as it is

                bwrap: does not stand (the same walls, with the namespaces and mounts built by the system's bwrap)
                  It is not there.

                landlock: stands (Landlock and seccomp alone; only where `shell.min_tier` is `landlock`)
                  missing  mounts          as it is
                  active   seccomp         as it is

                UNCONFINED: possible (no walls; only with --unsafe-no-sandbox or `shell.unsafe_no_sandbox`)

                tools
                  active   instance pool   as it is
                  missing  built-in tools  as it is
                                           to do: Build them.

                Commands are refused on this machine until what is missing is there: at least native is asked for (`shell.min_tier`).
            "#]],
        );
    }

    #[test]
    fn the_last_lines_say_what_commands_get() {
        shows(
            MinimumTier::Landlock,
            Some(Tier::Landlock),
            false,
            expect![[r#"
                native: does not stand (namespaces, mounts, Landlock and seccomp, all built by Floe)
                  active   user namespace  as it is
                  missing  mounts          as it is
                                           to do: Allow it.
                  missing  seccomp         as it is

                bwrap: does not stand (the same walls, with the namespaces and mounts built by the system's bwrap)
                  It is not there.

                landlock: stands (Landlock and seccomp alone; only where `shell.min_tier` is `landlock`)
                  missing  mounts          as it is
                  active   seccomp         as it is

                UNCONFINED: possible (no walls; only with --unsafe-no-sandbox or `shell.unsafe_no_sandbox`)

                tools
                  active   instance pool   as it is
                  missing  built-in tools  as it is
                                           to do: Build them.

                Commands are confined: tier landlock, at least landlock is asked for.
                They reach no host: `shell.network` is `proxy`, and the tier landlock does not lead to it.
            "#]],
        );
        shows(
            MinimumTier::Native,
            Some(Tier::Native),
            true,
            expect![[r#"
                native: does not stand (namespaces, mounts, Landlock and seccomp, all built by Floe)
                  active   user namespace  as it is
                  missing  mounts          as it is
                                           to do: Allow it.
                  missing  seccomp         as it is

                bwrap: does not stand (the same walls, with the namespaces and mounts built by the system's bwrap)
                  It is not there.

                landlock: stands (Landlock and seccomp alone; only where `shell.min_tier` is `landlock`)
                  missing  mounts          as it is
                  active   seccomp         as it is

                UNCONFINED: possible (no walls; only with --unsafe-no-sandbox or `shell.unsafe_no_sandbox`)

                tools
                  active   instance pool   as it is
                  missing  built-in tools  as it is
                                           to do: Build them.

                Commands are confined: tier native, at least native is asked for.
                They run UNCONFINED all the same, because `shell.unsafe_no_sandbox` is true.
            "#]],
        );
    }
}
