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
            &format!("Commands are confined: tier {tier}, at least {minimum} is asked for."),
        ),
        None => paint.paint(
            Style::Bad,
            &format!(
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
    match findings.network {
        Network::Off => {}
        Network::Proxy if findings.allow_hosts.is_empty() => text.push_str(
            "\nThey reach no host: `shell.network` is `proxy` and `shell.allow_hosts` is empty.",
        ),
        Network::Proxy => {
            let hosts = findings.allow_hosts.join(", ");
            text.push_str(&format!(
                "\nThey reach these hosts over the network: {hosts}."
            ));
        }
        Network::Host => {
            text.push('\n');
            text.push_str(&paint.paint(
                Style::Bad,
                "They reach all that this machine reaches, its own services included, because `shell.network` is `host`.",
            ));
        }
    }
    text.push('\n');
    text
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
