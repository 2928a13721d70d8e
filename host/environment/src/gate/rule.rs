//! Gate 9: the rules of the operator. Deny beats ask beats allow, whatever their order. The list may be empty.

use floe_protocol::Permission;

use super::{Gate, Refusal};

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The call runs without a question; it does not lift `deny-all`.
    Allow,
    /// The person is asked, in every approval mode that runs anything.
    Ask,
    /// The call does not run.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What the Trace calls it.
    pub id: String,
    /// What it does.
    pub effect: Effect,
    /// The tool's name; a `*` at the end stands for any rest.
    pub tool: String,
}

/// The rules of a Session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// The strongest rule about a tool.
    pub(crate) fn about(&self, tool: &str) -> Option<&Rule> {
        self.0
            .iter()
            .filter(|rule| rule.names(tool))
            // The first of equals, so that the Trace names the one that is written first.
            .rev()
            .max_by_key(|rule| rule.effect)
    }
}

impl Rule {
    fn names(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(prefix) => tool.starts_with(prefix),
            None => self.tool == tool,
        }
    }
}

/// Ends a call that a rule forbids. The words never tell the rule's own text.
pub(crate) fn check(rules: &Rules, tool: &str, permission: Permission) -> Result<(), Refusal> {
    match rules.about(tool) {
        Some(rule) if rule.effect == Effect::Deny => Err(Refusal {
            rule: Some(rule.id.clone()),
            ..Refusal::policy(
                Gate::Rule,
                format!(
                    "{tool} needs {permission}; a rule of the configuration allows no call of it. The person can change the rules."
                ),
            )
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &[(&str, Effect, &str)]) -> Rules {
        Rules(
            rules
                .iter()
                .map(|(id, effect, tool)| Rule {
                    id: (*id).into(),
                    effect: *effect,
                    tool: (*tool).into(),
                })
                .collect(),
        )
    }

    #[test]
    fn without_rules_everything_passes() {
        assert_eq!(check(&Rules::default(), "t", Permission::Dangerous), Ok(()));
    }

    #[test]
    fn deny_beats_ask_beats_allow_in_every_order() {
        let mut list = [
            ("a", Effect::Allow, "exec_command"),
            ("b", Effect::Deny, "exec_*"),
            ("c", Effect::Ask, "*"),
        ];
        for _ in 0..3 {
            list.rotate_left(1);
            let refusal = check(&rules(&list), "exec_command", Permission::Execute).unwrap_err();
            assert_eq!(refusal.rule.as_deref(), Some("b"));
            assert_eq!(
                rules(&list).about("list").map(|rule| rule.id.as_str()),
                Some("c")
            );
        }
    }

    #[test]
    fn of_equal_rules_the_first_is_named() {
        let list = rules(&[("a", Effect::Ask, "list"), ("b", Effect::Ask, "*")]);
        assert_eq!(list.about("list").map(|rule| rule.id.as_str()), Some("a"));
    }

    #[test]
    fn a_star_stands_only_at_the_end() {
        let list = rules(&[("a", Effect::Deny, "*_command")]);
        assert_eq!(check(&list, "exec_command", Permission::Execute), Ok(()));
    }
}
