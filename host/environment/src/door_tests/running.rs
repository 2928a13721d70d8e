//! What a call that was allowed gets, leaves behind and ends as.

use super::*;

#[tokio::test]
async fn a_call_is_decided_then_streams_then_completes() {
    let open = House::new().open(|_| {});
    let output = open.run("reader", r#"{"text":"hi"}"#).await;
    assert_eq!(output.output, "hi");
    assert_eq!(output.exit_status(), 0);
    assert_eq!(
        open.sink.shape(),
        ["decision Allow", "start", "delta hi", "stop", "complete"]
    );
}

#[tokio::test]
async fn a_decision_carries_every_field() {
    let open = House::new().open(|_| {});
    open.run("look", "{}").await;
    assert_eq!(
        open.sink.decisions(),
        [ApprovalDecision {
            decision: Decision::Allow,
            tool_call_id: "c1".into(),
            tool: "look".into(),
            kind: floe_protocol::DecisionKind::Call,
            mode: ApprovalMode::AllowAll,
            by: DecidedBy::Mode,
            gate: None,
            rule: None,
            scope: Scope::Once,
            arguments_sha256: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
                .into(),
            tool_sha256: Some("00".repeat(32)),
            capabilities: vec!["workspace".into()],
            waited_ms: 0,
            widening: None,
        }]
    );
}

#[tokio::test]
async fn in_plan_mode_no_call_is_given_edits_or_commands() {
    let granted = Arc::new(Mutex::new(CapabilitySet::all()));
    let mut house = House::new();
    let seen = Arc::clone(&granted);
    // Declared read-only and importing everything: the mode gate stops what has such power, whatever it declares.
    house.add_body(
        definition("liar", Permission::ReadOnly),
        &[Capability::Edits, Capability::Workspace],
        Ok(Permission::None),
        None,
        Box::new(move |request| {
            *seen.lock().unwrap() = request.granted;
            ToolResult::default()
        }),
    );
    let open = house.open(|options| options.max_permission = Some(Permission::ReadOnly));
    open.run("liar", "{}").await;
    assert_eq!(granted.lock().unwrap().names(), ["workspace"]);
    open.environment.set_mode(Mode::Plan);
    assert_eq!(
        open.run("liar", "{}").await.end,
        CallOutcome::Gate(Gate::Mode)
    );
}

#[tokio::test]
async fn only_a_single_call_is_told_that_nothing_comes_after_it() {
    for (surface, told) in [(Surface::Call, true), (Surface::Run, false)] {
        let seen = Arc::new(Mutex::new(None));
        let mut house = House::new();
        let keep = Arc::clone(&seen);
        house.add_body(
            definition("looks", Permission::None),
            &[],
            Ok(Permission::None),
            None,
            Box::new(move |request| {
                *keep.lock().unwrap() = Some(request.context.metadata.clone());
                ToolResult::default()
            }),
        );
        house
            .open(|options| options.surface = surface)
            .run("looks", "{}")
            .await;
        let metadata = seen.lock().unwrap().take().unwrap();
        let one_shot = ("one-shot".to_owned(), "true".to_owned());
        assert_eq!(metadata.contains(&one_shot), told, "{surface}");
    }
}

#[tokio::test]
async fn an_interrupt_keeps_what_was_written_and_is_aborted() {
    let mut house = House::new();
    let gate = Arc::clone(&house.gate);
    house.add_body(
        definition("slow", Permission::None),
        &[],
        Ok(Permission::None),
        Some(gate),
        Box::new(echo),
    );
    let open = house.open(|_| {});
    let cancel = CancellationToken::new();
    let running = open
        .environment
        .execute(call("slow", r#"{"text":"begin\n"}"#, "c1"), cancel.clone());
    while open.running.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    let output = running.await.unwrap();
    assert_eq!(
        output.output,
        "begin\n\n[interrupted: tool aborted by user]"
    );
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert_eq!(output.exit_status(), 130);
}

#[tokio::test]
async fn a_fault_of_the_host_ends_the_call_and_nothing_else() {
    let mut house = House::new();
    house.add_body(
        definition("breaks", Permission::None),
        &[],
        Ok(Permission::None),
        None,
        Box::new(|request| {
            request.output.write("ab");
            panic!("a fault of the host")
        }),
    );
    let open = house.open(|_| {});
    let output = open.run("breaks", "{}").await;
    assert!(
        output
            .output
            .starts_with("ab\n[tool error] the host broke off")
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(open.run("reader", r#"{"text":"x"}"#).await.output, "x");
}

#[tokio::test]
async fn a_structured_result_that_does_not_fit_its_schema_is_dropped() {
    for (value, kept) in [
        (json!({"count": 1}), true),
        (json!({"count": "one"}), false),
    ] {
        let mut house = House::new();
        let mut counts = definition("counts", Permission::None);
        counts.output_schema = Some(json!({"properties": {"count": {"type": "integer"}}}));
        let returned = value.clone();
        house.add_body(
            counts,
            &[],
            Ok(Permission::None),
            None,
            Box::new(move |_| ToolResult {
                structured: Some(returned.clone()),
                ..ToolResult::default()
            }),
        );
        let output = house.open(|_| {}).run("counts", "{}").await;
        let structured = output.facts.and_then(|facts| facts.structured);
        assert_eq!(structured, kept.then_some(value));
    }
}

#[tokio::test]
async fn the_whole_of_a_cut_output_is_kept_where_its_line_says() {
    let folder = tempfile::tempdir().unwrap();
    let open = House::new().open(|options| {
        options.outputs = Some(Outputs::new(
            folder.path().join("outputs"),
            Secrets::default(),
        ))
    });
    let text = "é".repeat(20_000);
    let output = open.run("reader", &json!({"text": text}).to_string()).await;
    let facts = output.facts.unwrap();
    let path = facts.full_output.unwrap();
    assert!(output.output.contains(&format!(
        "\n[output truncated: kept first 8000 and last 8000 of 20000 chars]\n[full output: {path}]\n"
    )));
    let name = path.strip_prefix("/floe/outputs/").unwrap();
    let kept = std::fs::read_to_string(folder.path().join("outputs").join(name)).unwrap();
    assert_eq!(kept, text);
    assert_eq!(facts.truncated, Some(true));
}

#[tokio::test]
async fn minimal_cuts_every_output_at_its_head() {
    let mut house = House::new();
    let mut exec = definition("exec_command", Permission::None);
    exec.max_output_length = 5;
    house.add(exec, &[]);
    let open = house.open(|options| options.selection = Selection::Toolset(Toolset::Minimal));
    let output = open.run("exec_command", r#"{"text":"hello world"}"#).await;
    assert_eq!(output.output, "hello\n[output truncated: exceeded 5 chars]");
}

#[tokio::test]
async fn a_secret_of_the_host_reaches_neither_the_model_nor_a_message_nor_the_kept_output() {
    const KEY: &str = "sk-0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    let mut house = House::new();
    let mut noisy = definition("noisy", Permission::None);
    noisy.max_output_length = 24;
    noisy.truncation = Truncation::HeadTail;
    house.add_body(
        noisy,
        &[],
        Ok(Permission::None),
        None,
        Box::new(|request| {
            for piece in [
                "key: sk-0123",
                "456789",
                "abcdef, again sk-0123456789abcdef, then sk-01",
            ] {
                request.output.write(piece);
            }
            ToolResult {
                note: Some(format!("[used {KEY}]")),
                structured: Some(json!({"key": KEY})),
                ..ToolResult::default()
            }
        }),
    );
    let open = house.open(|options| {
        options.secrets.insert("OPENAI_API_KEY", KEY);
        options.outputs = Some(Outputs::new(
            folder.path().to_owned(),
            options.secrets.clone(),
        ));
    });
    let output = open.run("noisy", "{}").await;
    assert!(
        output
            .output
            .ends_with("n sk-01\n[used [redacted:OPENAI_API_KEY]]"),
        "{}",
        output.output
    );
    open.run("noisy", &json!({ KEY: 1 }).to_string()).await;
    let messages = serde_json::to_string(&open.sink.messages()).unwrap();
    assert!(messages.contains("[redacted:OPENAI_API_KEY]"));
    assert!(!messages.contains(KEY), "{messages}");
    let kept = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    assert_eq!(
        std::fs::read_to_string(kept.path()).unwrap(),
        "key: [redacted:OPENAI_API_KEY], again [redacted:OPENAI_API_KEY], then sk-01"
    );
}

#[tokio::test]
async fn a_single_call_of_a_command_waits_for_its_end_unless_its_entry_says_how_long() {
    let commands = &[Capability::Commands][..];
    let own_limit = |limit| {
        let mut entry = definition("runs", Permission::Execute);
        entry.timeout_ms = limit;
        Selection::Entries(vec![entry])
    };
    let toolset = || Selection::Toolset(Toolset::All);
    let declared = Some(Duration::from_millis(5000));
    for (surface, imports, selection, expected) in [
        (Surface::Call, commands, toolset(), None),
        (Surface::Call, &[][..], toolset(), declared),
        (Surface::Run, commands, toolset(), declared),
        (
            Surface::Call,
            commands,
            own_limit(70),
            Some(Duration::from_millis(70)),
        ),
    ] {
        let seen = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&seen);
        let mut house = House::new();
        let mut runs = definition("runs", Permission::Execute);
        runs.timeout_ms = 5000;
        house.add_body(
            runs,
            imports,
            Ok(Permission::None),
            None,
            Box::new(move |request| {
                *keep.lock().unwrap() = Some(request.limits.deadline);
                ToolResult::default()
            }),
        );
        let open = house.open(|options| {
            options.surface = surface;
            options.selection = selection;
        });
        open.run("runs", "{}").await;
        assert_eq!(*seen.lock().unwrap(), Some(expected), "{surface}");
    }
}

#[tokio::test]
async fn of_a_tool_that_passes_a_commands_text_on_the_commands_bytes_are_kept_and_of_others_their_text()
 {
    let folder = tempfile::tempdir().unwrap();
    let outputs = Outputs::new(folder.path().join("outputs"), Secrets::default());
    let mut house = House::new();
    for (name, prefix) in [("passes_on", ""), ("reports", "Report: ")] {
        let recorder = OutputRecorder(Arc::clone(&outputs));
        let mut tool = definition(name, Permission::None);
        tool.truncation = Truncation::HeadTail;
        house.add_body(
            tool,
            &[],
            Ok(Permission::None),
            None,
            Box::new(move |request| {
                let recording = floe_runtime::capability::commands::Record::begin(&recorder);
                request.output.write(prefix);
                for _ in 0..4000 {
                    recording.bytes(b"\x1b[1mline\x1b[0m\n");
                    request.output.handed(&recording, b"line\n");
                    request.output.write("line\n");
                }
                ToolResult::default()
            }),
        );
    }
    let open = house.open(|options| options.outputs = Some(Arc::clone(&outputs)));
    for (tool, kept) in [
        ("passes_on", "\x1b[1mline\x1b[0m\n".repeat(4000)),
        ("reports", format!("Report: {}", "line\n".repeat(4000))),
    ] {
        let output = open.run(tool, "{}").await;
        let path = output.facts.unwrap().full_output.unwrap();
        let name = path.strip_prefix("/floe/outputs/").unwrap();
        let file = folder.path().join("outputs").join(name);
        assert_eq!(std::fs::read_to_string(file).unwrap(), kept, "{tool}");
    }
}
