//! From arguments to one question. What contradicts itself is refused rather than guessed at.

use floe_tool::language_server::{Position, Query, Target};

use crate::Arguments;

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Definition,
    References,
    Hover,
    Completion,
    DocumentSymbols,
    WorkspaceSymbols,
    Diagnostics,
}

impl Kind {
    /// As the model writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Definition => "definition",
            Kind::References => "references",
            Kind::Hover => "hover",
            Kind::Completion => "completion",
            Kind::DocumentSymbols => "document_symbols",
            Kind::WorkspaceSymbols => "workspace_symbols",
            Kind::Diagnostics => "diagnostics",
        }
    }
}

/// The question, or what is wrong with the arguments.
pub(crate) fn query(arguments: Arguments) -> Result<Query, String> {
    let target = target(&arguments)?;
    let text = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    if arguments.file.trim().is_empty() {
        return Err("`file` must name a file of the Workspace.".into());
    }
    Ok(Query {
        kind: arguments.kind.as_str().replace('_', "-"),
        language: arguments.language.and_then(text),
        file: arguments.file,
        target,
        max_results: arguments.max_results,
    })
}

fn target(arguments: &Arguments) -> Result<Option<Target>, String> {
    let kind = arguments.kind;
    let name = kind.as_str();
    let symbol = arguments.symbol.as_deref().map(str::trim);
    if symbol == Some("") {
        return Err("`symbol` must not be empty.".into());
    }
    let place = match (arguments.line, arguments.character) {
        (None, None) => None,
        (Some(line @ 1..), Some(character @ 1..)) => Some(Position { line, character }),
        (Some(_), Some(_)) => return Err("`line` and `character` count from 1.".into()),
        (Some(_), None) => return Err("`line` needs `character` beside it.".into()),
        (None, Some(_)) => return Err("`character` needs `line` beside it.".into()),
    };
    match (kind, place, symbol) {
        (Kind::DocumentSymbols | Kind::Diagnostics, None, None) => Ok(None),
        (Kind::DocumentSymbols | Kind::Diagnostics, ..) => Err(format!(
            "{name} is about the whole file: leave `line`, `character` and `symbol` out."
        )),
        (Kind::WorkspaceSymbols, None, Some(symbol)) => Ok(Some(Target::Named(symbol.into()))),
        (Kind::WorkspaceSymbols, ..) => Err(
            "workspace_symbols needs `symbol`, the name to look for or a part of it, and neither `line` nor `character`.".into(),
        ),
        (Kind::Completion, Some(place), None) => Ok(Some(Target::At(place))),
        (Kind::Completion, ..) => Err(
            "completion needs `line` and `character`, the place where something is to be written, and no `symbol`.".into(),
        ),
        (_, Some(place), None) => Ok(Some(Target::At(place))),
        (_, None, Some(symbol)) => Ok(Some(Target::Named(symbol.into()))),
        (_, Some(_), Some(_)) => Err(format!(
            "{name} takes either `line` and `character` or `symbol`, not both."
        )),
        (_, None, None) => Err(format!(
            "{name} needs a place, `line` and `character`, or the name of something in the file, `symbol`."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(kind: Kind) -> Arguments {
        Arguments {
            kind,
            file: "a.c".into(),
            language: None,
            line: None,
            character: None,
            symbol: None,
            max_results: None,
        }
    }

    const ABOUT_SOMETHING: [Kind; 3] = [Kind::Definition, Kind::References, Kind::Hover];

    #[test]
    fn something_is_named_by_its_place_or_its_name() {
        for kind in ABOUT_SOMETHING {
            let place = Arguments {
                line: Some(3),
                character: Some(9),
                ..arguments(kind)
            };
            let position = Position {
                line: 3,
                character: 9,
            };
            assert_eq!(query(place).unwrap().target, Some(Target::At(position)));
            let name = Arguments {
                symbol: Some(" main ".into()),
                ..arguments(kind)
            };
            assert_eq!(
                query(name).unwrap().target,
                Some(Target::Named("main".into()))
            );
        }
    }

    #[test]
    fn arguments_that_contradict_each_other_are_refused() {
        let both = |kind| Arguments {
            line: Some(1),
            character: Some(1),
            symbol: Some("x".into()),
            ..arguments(kind)
        };
        for kind in ABOUT_SOMETHING {
            assert!(query(both(kind)).unwrap_err().ends_with("not both."));
            assert!(
                query(arguments(kind))
                    .unwrap_err()
                    .contains("needs a place")
            );
        }
        for kind in [Kind::DocumentSymbols, Kind::Diagnostics] {
            assert!(query(both(kind)).unwrap_err().contains("whole file"));
            assert_eq!(query(arguments(kind)).unwrap().target, None);
        }
        for kind in [Kind::WorkspaceSymbols, Kind::Completion] {
            assert!(query(both(kind)).is_err());
            assert!(query(arguments(kind)).is_err());
        }
        let half = Arguments {
            line: Some(1),
            ..arguments(Kind::Hover)
        };
        assert_eq!(
            query(half).unwrap_err(),
            "`line` needs `character` beside it."
        );
        let zero = Arguments {
            line: Some(0),
            character: Some(1),
            ..arguments(Kind::Hover)
        };
        assert_eq!(
            query(zero).unwrap_err(),
            "`line` and `character` count from 1."
        );
    }

    #[test]
    fn kinds_are_written_with_underscores_here_and_with_hyphens_in_the_contract() {
        let kind = serde_json::from_str::<Kind>("\"document_symbols\"").unwrap();
        assert_eq!(query(arguments(kind)).unwrap().kind, "document-symbols");
    }
}
