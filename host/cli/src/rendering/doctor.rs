//! The state of the sandbox as a table: each wall, whether it stands, and what to do where it does not.

use floe_sandbox::Doctor;

use crate::terminal::{Paint, Style};

/// The table for people.
pub(crate) fn doctor(doctor: &Doctor, paint: Paint) -> String {
    let width = doctor
        .layers
        .iter()
        .map(|layer| layer.name.chars().count())
        .max()
        .unwrap_or_default();
    let mut text = format!("tier: {}\n\n", doctor.tier);
    for layer in &doctor.layers {
        let state = if layer.active {
            paint.paint(Style::Good, "active ")
        } else {
            paint.paint(Style::Bad, "missing")
        };
        text.push_str(&format!(
            "  {state}  {:<width$}  {}\n",
            layer.name, layer.detail
        ));
        if let Some(remedy) = layer.remedy.as_deref().filter(|_| !layer.active) {
            text.push_str(&format!("           {:<width$}  to do: {remedy}\n", ""));
        }
    }
    text.push('\n');
    text.push_str(if doctor.ok {
        "Commands are confined.\n"
    } else {
        "Commands are refused on this machine until what is missing is there.\n"
    });
    text
}
