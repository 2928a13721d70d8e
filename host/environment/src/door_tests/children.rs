//! Tools that start children, and the Environments of children: the permission that the host computes, and what a parent leaves
//! of a child's own settings.

use super::*;

/// `reader`, `writer` and `runner`, and `helper`, which starts children.
fn house_with_helper(declared: Permission) -> House {
    let mut house = House::new();
    house.add(definition("helper", declared), &[Capability::Subagents]);
    house
}

#[tokio::test]
async fn a_tool_that_starts_children_needs_the_most_that_their_tools_need_under_mode_and_cap() {
    for declared in [Permission::None, Permission::Dangerous] {
        let open = house_with_helper(declared).open(|_| {});
        let permission = || open.environment.permission_of("helper");
        assert_eq!(permission(), Some(Permission::Execute));
        open.environment.set_max_permission(Some(Permission::Write));
        assert_eq!(permission(), Some(Permission::Write));
        open.environment.set_mode(Mode::Plan);
        assert_eq!(permission(), Some(Permission::ReadOnly));
        open.run("helper", "{}").await;
        assert_eq!(
            open.sink.decisions()[0].decision,
            floe_protocol::Decision::Allow
        );
    }
}

#[tokio::test]
async fn who_may_only_read_on_their_own_are_asked_about_children_that_may_do_more() {
    let open = house_with_helper(Permission::None).open(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
    });
    let output = open.run("helper", "{}").await;
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Nobody);
    open.environment.set_mode(Mode::Plan);
    open.run("helper", "{}").await;
    assert_eq!(open.sink.decisions()[1].by, DecidedBy::Mode);
}

#[tokio::test]
async fn what_is_withheld_from_a_session_is_in_no_tool_of_it() {
    let open = house_with_helper(Permission::None).open(|options| {
        options.withheld = CapabilitySet::EMPTY.with(Capability::Subagents);
    });
    let listed = open.environment.tools();
    assert!(listed.iter().all(|tool| tool.name != "helper"));
    assert_eq!(open.environment.permission_of("helper"), None);
    let output = open.run("helper", "{}").await;
    assert_eq!(output.output, "Unknown tool: helper");
}

#[tokio::test]
async fn what_a_parents_person_changes_holds_for_its_children_at_once() {
    let parent = House::new().open(|_| {});
    let child = House::new().open(|options| {
        options.parent = Some(parent.environment.as_parent());
    });
    assert_eq!(child.run("writer", r#"{"text":"a"}"#).await.output, "a");
    parent.environment.set_mode(Mode::Plan);
    assert_eq!(child.environment.mode(), Mode::Plan);
    let output = child.run("writer", "{}").await.output;
    assert!(
        output.contains("plan mode allows at most read-only"),
        "{output}"
    );
    parent.environment.set_approval_mode(ApprovalMode::DenyAll);
    let output = child.run("reader", "{}").await.output;
    assert_eq!(output, "Tool call denied by user.");
    // What the child's own settings allow does not count.
    child.environment.set_mode(Mode::Build);
    child.environment.set_approval_mode(ApprovalMode::AllowAll);
    assert_eq!(child.environment.mode(), Mode::Plan);
    assert_eq!(child.environment.approval_mode(), ApprovalMode::DenyAll);
}

#[tokio::test]
async fn a_childs_question_waits_under_the_parents_call_that_it_works_for() {
    let parent = House::new().open(|options| options.approver = Some(Arc::new(AnswerLater)));
    let question = {
        let asking = House::new().open(|options| {
            options.approval_mode = ApprovalMode::AlwaysAsk;
            options.approver = Some(Arc::new(AnswerLater));
        });
        let _running = asking.start("reader", "{}", "c1");
        (*asking.wait_for_question().await.question).clone()
    };
    let environment = parent.environment.clone();
    let relayed = tokio::spawn(async move { environment.relay("p7", &question).await });
    let pending = parent.wait_for_question().await;
    assert_eq!(pending.question.tool_call_id, "p7");
    assert!(parent.environment.answer("p7", Answer::Allow));
    assert_eq!(relayed.await.unwrap(), Answer::Allow);
    let nobody = House::new().open(|_| {});
    assert!(matches!(
        nobody.environment.relay("p7", &pending.question).await,
        Answer::Unavailable(_)
    ));
}

#[tokio::test]
async fn a_family_has_one_rate() {
    let parent = House::new().open(|options| {
        options.rate = Some(Rate {
            calls: 2,
            per: Duration::from_secs(3600),
        });
    });
    let child = House::new().open(|options| {
        options.parent = Some(parent.environment.as_parent());
    });
    assert_eq!(child.run("reader", r#"{"text":"a"}"#).await.output, "a");
    assert_eq!(parent.run("reader", r#"{"text":"b"}"#).await.output, "b");
    for one in [&parent, &child] {
        let output = one.run("reader", "{}").await.output;
        assert!(output.starts_with("Rate limit exceeded"), "{output}");
    }
}
