//! What each gate says, and which one speaks first.

use super::*;

#[tokio::test]
async fn every_gate_ends_a_call_framed_after_exactly_one_decision_that_names_it() {
    struct Case {
        gate: Gate,
        tool: &'static str,
        arguments: String,
        text: &'static str,
        stop_reason: StopReason,
        change: fn(&mut EnvironmentOptions),
    }
    let deny_writer = |options: &mut EnvironmentOptions| {
        options.rules = Rules(vec![Rule {
            id: "no-writing".into(),
            effect: Effect::Deny,
            tool: "writer".into(),
        }]);
    };
    let failed = StopReason::Failed;
    let cases = [
        Case {
            gate: Gate::Size,
            tool: "reader",
            arguments: " ".repeat(5_000_000),
            text: "Arguments of reader are too long: 5000000 bytes (limit 4194304).",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Name,
            tool: "nope",
            arguments: "{".into(),
            text: "Unknown tool: nope",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Json,
            tool: "look",
            arguments: " ".into(),
            text: "Tool call \"reader\" failed: the arguments field is empty. Re-issue the call with a complete JSON object.",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Schema,
            tool: "reader",
            arguments: r#"{"path":"x"}"#.into(),
            text: "Unknown argument \"path\" for reader; it takes text.",
            stop_reason: failed,
            change: |_| {},
        },
        Case {
            gate: Gate::Visibility,
            tool: "reader",
            arguments: "{}".into(),
            text: "Unknown tool: reader",
            stop_reason: failed,
            change: |options| options.selection = Selection::Toolset(Toolset::Minimal),
        },
        Case {
            gate: Gate::Mode,
            tool: "writer",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nwriter needs write; plan mode allows at most read-only. The person can switch this Session to build mode.",
            stop_reason: StopReason::Aborted,
            change: |options| options.mode = Mode::Plan,
        },
        Case {
            gate: Gate::Surface,
            tool: "runner",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nrunner needs execute; floe call is limited to write. The person can raise it with --max-permission execute or under `surfaces` in the configuration.",
            stop_reason: StopReason::Aborted,
            change: |options| {
                options.surface = Surface::Call;
                options.max_permission = Some(Permission::Write);
            },
        },
        Case {
            gate: Gate::Rule,
            tool: "writer",
            arguments: "{}".into(),
            text: "Tool call denied by policy.\nwriter needs write; a rule of the configuration allows no call of it. The person can change the rules.",
            stop_reason: StopReason::Aborted,
            change: deny_writer,
        },
        Case {
            gate: Gate::Rate,
            tool: "reader",
            arguments: "{}".into(),
            text: "Rate limit exceeded: 0 calls in 1 s. Call again in 2 s.",
            stop_reason: failed,
            change: |options| {
                options.rate = Some(Rate {
                    calls: 0,
                    per: Duration::from_secs(1),
                });
            },
        },
    ];
    for case in cases {
        let open = House::new().open(case.change);
        let output = open.run(case.tool, &case.arguments).await;
        assert_eq!(output.output, case.text);
        assert_eq!(output.stop_reason, case.stop_reason, "{}", case.text);
        assert_eq!(output.end, CallOutcome::Gate(case.gate));
        let shape = open.sink.shape();
        assert_eq!(
            shape,
            [
                "decision Deny",
                "start",
                &format!("delta {}", case.text),
                "stop",
                "complete"
            ]
        );
        let decision = open.sink.decisions().pop().unwrap();
        assert_eq!(decision.by, DecidedBy::Gate);
        assert_eq!(decision.gate.as_deref(), Some(case.gate.as_str()));
        assert_eq!(decision.tool, case.tool);
        assert_eq!(open.running.load(Ordering::SeqCst), 0, "{}", case.text);
        let status = if case.stop_reason == StopReason::Aborted {
            3
        } else {
            1
        };
        assert_eq!(output.exit_status(), status);
    }
}

#[tokio::test]
async fn the_earlier_gate_speaks_where_several_would() {
    let everything_wrong = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Plan;
        options.max_permission = Some(Permission::None);
        options.rules = Rules(vec![Rule {
            id: "all".into(),
            effect: Effect::Deny,
            tool: "*".into(),
        }]);
        options.rate = Some(Rate {
            calls: 0,
            per: Duration::from_secs(1),
        });
        options.approval_mode = ApprovalMode::DenyAll;
    };
    let ended_by = async |tool: &str, arguments: &str, change: fn(&mut EnvironmentOptions)| {
        let open = House::new().open(|options| {
            everything_wrong(options);
            change(options);
        });
        open.run(tool, arguments).await.end
    };
    let long = "[".repeat(5_000_000);
    assert_eq!(
        ended_by("nope", &long, |_| {}).await,
        CallOutcome::Gate(Gate::Size)
    );
    assert_eq!(
        ended_by("nope", "[", |_| {}).await,
        CallOutcome::Gate(Gate::Name)
    );
    assert_eq!(
        ended_by("writer", "[", |_| {}).await,
        CallOutcome::Gate(Gate::Json)
    );
    let minimal = |options: &mut EnvironmentOptions| {
        options.selection = Selection::Toolset(Toolset::Minimal);
    };
    assert_eq!(
        ended_by("writer", r#"{"x":1}"#, minimal).await,
        CallOutcome::Gate(Gate::Schema)
    );
    assert_eq!(
        ended_by("writer", "{}", minimal).await,
        CallOutcome::Gate(Gate::Visibility)
    );
    assert_eq!(
        ended_by("writer", "{}", |_| {}).await,
        CallOutcome::Gate(Gate::Mode)
    );
    let build = |options: &mut EnvironmentOptions| options.mode = Mode::Build;
    assert_eq!(
        ended_by("writer", "{}", build).await,
        CallOutcome::Gate(Gate::Surface)
    );
    let uncapped = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
    };
    assert_eq!(
        ended_by("writer", "{}", uncapped).await,
        CallOutcome::Gate(Gate::Rule)
    );
    let unruled = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
        options.rules = Rules::default();
    };
    assert_eq!(
        ended_by("writer", "{}", unruled).await,
        CallOutcome::Gate(Gate::Rate)
    );
    let unlimited = |options: &mut EnvironmentOptions| {
        options.mode = Mode::Build;
        options.max_permission = None;
        options.rules = Rules::default();
        options.rate = None;
    };
    assert_eq!(
        ended_by("writer", "{}", unlimited).await,
        CallOutcome::Denied
    );
}

#[tokio::test]
async fn what_was_judged_is_what_runs() {
    let open = House::new().open(|_| {});
    let output = open
        .run("reader", r#"{"text":"first","text":"second"}"#)
        .await;
    assert_eq!(output.output, "second");
    let output = open.run("reader", "[1, 2]").await;
    assert_eq!(output.output, "[no output]");
}

#[tokio::test]
async fn a_tool_may_raise_its_permission_and_never_lower_it() {
    for (answer, needs) in [
        (Permission::Execute, "execute"),
        (Permission::None, "write"),
    ] {
        let mut house = House::new();
        let mut varies = definition("varies", Permission::Write);
        varies.permission_varies = true;
        house.add_body(varies, &[], Ok(answer), None, Box::new(echo));
        let open = house.open(|options| options.max_permission = Some(Permission::ReadOnly));
        let output = open.run("varies", "{}").await;
        assert!(
            output.output.contains(&format!("varies needs {needs};")),
            "{}",
            output.output
        );
    }
}

#[tokio::test]
async fn a_tool_that_cannot_say_what_it_needs_does_not_run() {
    let mut house = House::new();
    let mut varies = definition("varies", Permission::None);
    varies.permission_varies = true;
    house.add_body(
        varies,
        &[],
        Err("it broke off".into()),
        None,
        Box::new(echo),
    );
    let open = house.open(|_| {});
    let output = open.run("varies", "{}").await;
    assert_eq!(output.output, "[tool error] it broke off");
    assert_eq!(output.end, CallOutcome::Gate(Gate::Permission));
}

#[tokio::test]
async fn without_a_trace_only_readers_run() {
    let house = House::new();
    *house.sink.full_after.lock().unwrap() = Some(0);
    let open = house.open(|_| {});
    assert_eq!(open.run("reader", r#"{"text":"x"}"#).await.output, "x");
    let output = open.run("writer", "{}").await;
    assert_eq!(output.output, "[trace unavailable: the disk is full]");
    assert_eq!(output.end, CallOutcome::Gate(Gate::Trace));
    assert_eq!(output.stop_reason, StopReason::Failed);
}

#[tokio::test]
async fn a_decision_that_could_not_be_recorded_lets_no_writer_run() {
    let house = House::new();
    *house.sink.full_after.lock().unwrap() = Some(1);
    let open = house.open(|_| {});
    let output = open.run("writer", "{}").await;
    assert_eq!(output.output, "[trace unavailable: the disk is full]");
    assert_eq!(open.sink.decisions().len(), 1);
    assert_eq!(open.running.load(Ordering::SeqCst), 0);
}
