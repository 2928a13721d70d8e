//! Which tools a Session has.

use super::*;

#[tokio::test]
async fn tools_are_listed_in_a_stable_order_without_what_the_mode_or_the_cap_stops() {
    let mut house = House::new();
    house.add(definition("grep", Permission::ReadOnly), &[]);
    house.add(
        definition("exec_command", Permission::Execute),
        &[Capability::Commands],
    );
    let open = house.open(|_| {});
    let names = |open: &Open| -> Vec<String> {
        open.environment
            .tools()
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    };
    assert_eq!(
        names(&open),
        ["exec_command", "grep", "reader", "runner", "writer"]
    );
    open.environment.set_mode(Mode::Plan);
    assert_eq!(names(&open), ["grep", "reader"]);

    let open = House::new().open(|options| options.max_permission = Some(Permission::Write));
    assert_eq!(names(&open), ["reader", "writer"]);
}

#[tokio::test]
async fn a_listing_has_the_fields_of_the_contract() {
    let open = House::new().open(|options| options.max_permission = Some(Permission::ReadOnly));
    assert_eq!(
        serde_json::to_value(open.environment.tools()).unwrap(),
        json!([{
            "name": "reader",
            "description": "The tool reader.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
            "permission": "read-only",
            "capabilities": ["workspace"],
            "origin": "plugin:test",
        }])
    );
    assert_eq!(
        open.environment.permission_of("look"),
        Some(Permission::ReadOnly)
    );
    assert_eq!(open.environment.permission_of("nope"), None);
}

#[tokio::test]
async fn an_agents_entries_replace_the_toolset_and_what_nothing_provides_is_hidden_with_a_warning()
{
    let mut writer = definition("writer", Permission::Write);
    writer.max_output_length = 3;
    writer.truncation = Truncation::Head;
    let entries = vec![writer, definition("teleport", Permission::None)];
    let open = House::new().open(|options| options.selection = Selection::Entries(entries));
    let names: Vec<String> = open
        .environment
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["writer"]);
    let warnings: Vec<OmniMessage> = open.sink.messages();
    assert_eq!(warnings.len(), 1);
    let Body::EventMsg(EventMsg::Warning { code, message }) = &warnings[0].body else {
        panic!("{warnings:?}");
    };
    assert_eq!(code, "unknown_tool");
    assert!(message.ends_with(": teleport"), "{message}");
    let output = open.run("writer", r#"{"text":"abcdef"}"#).await;
    assert_eq!(output.output, "abc\n[output truncated: exceeded 3 chars]");
    assert_eq!(
        open.run("reader", "{}").await.output,
        "Unknown tool: reader"
    );
    assert_eq!(
        open.run("teleport", "{}").await.output,
        "Unknown tool: teleport"
    );
}

#[tokio::test]
async fn a_tool_for_other_models_is_not_there() {
    for (vision, there) in [(true, "sees"), (false, "reads")] {
        let mut house = House::new();
        let mut sees = definition("sees", Permission::ReadOnly);
        sees.for_model = floe_protocol::ModelClass::Vision;
        let mut reads = definition("reads", Permission::ReadOnly);
        reads.for_model = floe_protocol::ModelClass::TextOnly;
        house.add(sees, &[]);
        house.add(reads, &[]);
        let open = house.open(|options| options.vision = vision);
        let found: Vec<&str> = ["sees", "reads"]
            .into_iter()
            .filter(|name| open.environment.permission_of(name).is_some())
            .collect();
        assert_eq!(found, [there]);
    }
}

#[test]
fn two_tools_cannot_share_a_name_or_an_alias() {
    let mut house = House::new();
    for (name, alias) in [("reader", None), ("look", None), ("new", Some("writer"))] {
        let mut taken = definition(name, Permission::None);
        taken.aliases = alias.map(str::to_owned).into_iter().collect();
        let tool = RegisteredTool {
            definition: taken,
            ..house.registry.get("reader").unwrap().clone()
        };
        let error = house.registry.insert(tool).unwrap_err();
        assert!(error.to_string().contains("is taken by"), "{error}");
    }
}
