//! The AIP-53 half: what a loader pins, and the holes H-5 to H-8.

use super::*;

fn app_md(from: &str, to: &str) -> Files {
    edit(aip53_app(), APP_MD, from, to)
}

fn agent_md(from: &str, to: &str) -> Files {
    edit(aip53_app(), AGENT_MD, from, to)
}

fn workflow_md(from: &str, to: &str) -> Files {
    edit(aip53_app(), WORKFLOW_MD, from, to)
}

#[test]
fn an_app_loads_with_everything_it_says() {
    let app = loaded(aip53_app());
    assert_eq!((app.declared_id.as_str(), app.name.as_str(), app.version.as_str()), ("@inn/filing", "Filing", "1.2.3"));
    assert_eq!(app.description, "Files things.");
    assert_eq!(app.ui_root.as_deref(), Some(".agentproto/ui"));
    assert_eq!(app.ui_entry.as_deref(), Some("index.html"));
    assert!(app.operations.is_empty());
    let aip = app.aip53.unwrap();
    assert_eq!(aip.agents[0].id, "clerk");
    assert_eq!(aip.agents[0].body.as_deref(), Some("You file papers."));
    assert_eq!(aip.workflows[0].frontmatter["steps"][0]["agent"]["ref"], "clerk");
    assert_eq!(aip.workflows[0].frontmatter["steps"][0]["prompt"], "File this paper.");
    assert_eq!(aip.ui_tools, ["app_data_read"]);
    assert_eq!(aip.frontmatter["verify"]["command"], "unknown keys are kept");
}

#[test]
fn an_agent_without_a_prompt_has_no_body() {
    let app = loaded(agent_md("You file papers.", ""));
    assert_eq!(app.aip53.unwrap().agents[0].body, None);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_read() {
    let text = String::from_utf8(aip53_app()[APP_MD].clone()).unwrap();
    let app = loaded(with(aip53_app(), APP_MD, &format!("\u{feff}{}", text.replace('\n', "\r\n"))));
    assert_eq!(app.declared_id, "@inn/filing");
}

#[test]
fn attachment_is_checked_in_both_directions() {
    let refusal = load_refusal(agent_md("workflows: [filing]", "workflows: []"));
    assert_violation(&refusal, WORKFLOW_MD, "no agent lists the workflow `filing`");
    let refusal = load_refusal(agent_md("[filing]", "[filing, taxes]"));
    assert_violation(&refusal, AGENT_MD, "refers to the workflow `taxes`; bundled are: filing");
    // A ref object matches by the same key; a path does not.
    loaded(agent_md("[filing]", "[{ ref: filing }]"));
    let refusal = load_refusal(agent_md("[filing]", "[{ file: ../../workflows/filing/WORKFLOW.md }]"));
    assert_violation(&refusal, WORKFLOW_MD, "no agent lists");
}

#[test]
fn missing_files_are_named() {
    let refusal = load_refusal(without(aip53_app(), AGENT_MD));
    assert_violation(&refusal, ".agentproto/APP.md#agents[0].path", AGENT_MD);
    let refusal = load_refusal(without(aip53_app(), WORKFLOW_MD));
    assert_violation(&refusal, ".agentproto/APP.md#workflows[0].path", WORKFLOW_MD);
    let refusal = load_refusal(without(aip53_app(), ".agentproto/ui/index.html"));
    assert_violation(&refusal, ".agentproto/APP.md#ui.path", ".agentproto/ui/index.html");
    let refusal = load_refusal(with(aip53_app(), ".agentproto/ui/index.html", " \n"));
    assert_violation(&refusal, ".agentproto/ui/index.html", "not blank");
}

#[test]
fn app_md_rules_are_kept() {
    let agents = "agents:\n  - id: clerk\n    path: .agentproto/agents/clerk/AGENT.md\n";
    for (from, to, place, what) in [
        ("schema: app/v1", "schema: app/v2", "#schema", "app/v1"),
        ("schema: app/v1\n", "", "#schema", "required"),
        ("id: '@inn/filing'", "id: '  '", "#id", "blank"),
        ("id: '@inn/filing'", "id: 7", "#id", "text"),
        ("version: 1.2.3", "version: 1.0", "#version", "text"),
        (agents, "", "#agents", "required"),
        (agents, "agents: clerk\n", "#agents", "list"),
        (agents, "agents: [clerk]\n", "#agents[0].id", "required"),
        ("ui:\n", "requires: 123\nui:\n", "#requires", "array of strings"),
        ("ui:\n", "requires: [a, '']\nui:\n", "#requires[1]", "blank"),
        ("ui:\n", "requires: [{ id: a }]\nui:\n", "#requires[0]", "text"),
        ("ui:\n", "requires: { apps: [{ id: a, version: '>=1.0.0' }] }\nui:\n", "#requires.apps[0].version", "^1"),
        ("ui:\n", "requires: { apps: [{ id: a, version: '*' }] }\nui:\n", "#requires.apps[0].version", "^1"),
        ("ui:\n", "requires: { apps: [{ id: a, extra: 1 }] }\nui:\n", "#requires.apps[0].extra", "unknown key"),
        ("ui:\n", "requires: { apps: [{ id: a, workflows: [1] }] }\nui:\n", "#requires.apps[0].workflows[0]", "text"),
        ("ui:\n", "placement: moon\nui:\n", "#placement", "local"),
        ("ui:\n", "exposes: { agents: [ghost] }\nui:\n", "#exposes.agents", "ghost"),
        ("ui:\n", "category: ' '\nui:\n", "#category", "blank"),
        ("ui:\n", "data: { dir: ' ' }\nui:\n", "#data.dir", "blank"),
        ("ui:\n", "dev: { launch: [] }\nui:\n", "#dev.launch", "empty"),
        ("ui:\n", "artifact: { path: nowhere.md }\nui:\n", "#artifact.path", "nowhere.md"),
        ("ui:\n", "skill: { path: .agentproto/ui }\nui:\n", "#skill.path", "SKILL.md"),
        ("ui:\n", "boundaries: { enforce: maybe }\nui:\n", "#boundaries.enforce", "required"),
        ("tools: [app_data_read]", "renders: [other]", "#ui.renders", "not in `ui.tools`"),
        ("tools: [app_data_read]", "build: { command: ' ' }", "#ui.build.command", "blank"),
        ("tools: [app_data_read]", "extensions: { google: {} }", "#ui.extensions.google", "unknown key"),
        ("tools: [app_data_read]", "extensions: { openai: { x: 1 } }", "#ui.extensions.openai.x", "unknown key"),
        (
            "tools: [app_data_read]",
            "extensions: { openai: { mentions: { searchTool: find } } }",
            "#ui.extensions.openai.mentions.searchTool",
            "`find`",
        ),
        (
            "tools: [app_data_read]",
            "extensions: { openai: { display: { availableModes: [inline], preferredMode: fullscreen } } }",
            "#ui.extensions.openai.display.preferredMode",
            "availableModes",
        ),
        (
            "tools: [app_data_read]",
            "extensions: { openai: { icons: [{ src: 'http://x/y.png' }] } }",
            "#ui.extensions.openai.icons[0].src",
            "https",
        ),
        (
            "tools: [app_data_read]",
            "extensions: { openai: { entrypoints: [{ type: file, suffixes: [md] }] } }",
            "#ui.extensions.openai.entrypoints[0].suffixes",
            ".md",
        ),
    ] {
        let refusal = load_refusal(app_md(from, to));
        assert_violation(&refusal, &format!("{APP_MD}{place}"), what);
    }
}

#[test]
fn what_the_reference_has_beyond_the_text_is_accepted() {
    let more = "requires: { browser: true, apps: [a, { id: b, version: ^1.2, workflows: [x] }, { id: c, version: 1.2.3 }] }\n\
                placement: split\nexposes: { agents: [clerk], workflows: [filing] }\naccepts: { tasks: true }\n\
                data: { dir: data }\ncategory: office\nexternalReadRoots: [~/docs]\nboundaries: { enforce: required }\n\
                package: { include: [src/**], stripBuild: true }\nstore: { any: thing }\nartifacts: [{ type: report }]\n\
                artifact: { path: .agentproto/ui/index.html }\nui:\n  port: 99999\n";
    let app = loaded(app_md("ui:\n", more));
    assert_eq!(app.aip53.unwrap().frontmatter["placement"], "split");
}

#[test]
fn an_app_needs_an_agent_or_a_ui() {
    let none = files(&[(APP_MD, "---\nschema: app/v1\nid: x\nagents: []\nworkflows: []\n---\n")]);
    assert_violation(&load_refusal(none), APP_MD, "at least one agent or a `ui` block");
    let ui_only = files(&[
        (APP_MD, "---\nschema: app/v1\nid: x\nagents: []\nworkflows: []\nui: { path: ui/index.html }\n---\n"),
        ("ui/index.html", "<p>hi"),
    ]);
    let app = loaded(ui_only);
    assert_eq!(app.version, "0.1.0", "an app with an id has a version");
    assert_eq!(app.ui_root.as_deref(), Some("ui"));
}

#[test]
fn an_anonymous_app_packs_but_cannot_be_installed() {
    let refusal = load_refusal(app_md("id: '@inn/filing'\n", ""));
    assert_violation(&refusal, ".agentproto/APP.md#id", "not installed");
}

#[test]
fn ids_are_unique() {
    let twice = app_md("workflows:\n", "  - id: clerk\n    path: .agentproto/agents/clerk/AGENT.md\nworkflows:\n");
    assert_violation(&load_refusal(twice), ".agentproto/APP.md#agents[1]", "listed twice");
}

/// H-5: `---js` frontmatter was evaluated, a workflow's `entry` imported.
#[test]
fn h5_no_frontmatter_is_code() {
    for tag in ["js", "javascript", "json", "toml", "coffee"] {
        let files = agent_md("---\nschema", &format!("---{tag}\nschema"));
        assert_violation(&load_refusal(files), AGENT_MD, &format!("marked `{tag}`"));
        let refusal = pack(app_md("---\nschema", &format!("---{tag}\nschema")), now()).unwrap_err();
        assert!(refusal.message.starts_with("malformed-app: "), "{}", refusal.message);
    }
    loaded(agent_md("---\nschema", "---yaml\nschema"));
    for key in ["entry: ./run.mjs", "code: x", "run: x", "runner: x", "secrets: [x]", "network: true"] {
        let refusal = load_refusal(workflow_md("inputs: {}", &format!("inputs: {{}}\n{key}")));
        assert_violation(&refusal, WORKFLOW_MD, "nothing in a bundle is imported or run");
    }
}

#[test]
fn yaml_that_is_not_plain_data_is_refused() {
    for (head, what) in [
        ("autonomy: 3\nautonomy: 4", "YAML"),
        ("tags: [!!js/function 'x']", "YAML"),
        ("tags: !custom x", "YAML"),
        ("tags: [", "YAML"),
    ] {
        let refusal = load_refusal(agent_md("model: role:default", &format!("model: role:default\n{head}")));
        assert_violation(&refusal, AGENT_MD, what);
    }
    for (text, what) in [
        ("---\nschema: agent/v1\n", "no closing line"),
        ("---\nschema: agent/v1\n---x\n", "no closing line"),
        ("---\n- a\n---\n", "mapping"),
        ("schema: agent/v1\n", "must start with a line `---`"),
        ("----\nschema: agent/v1\n----\n", "must start with a line `---`"),
    ] {
        assert_violation(&load_refusal(with(aip53_app(), AGENT_MD, text)), AGENT_MD, what);
    }
    let mut not_utf8 = aip53_app();
    not_utf8.insert(AGENT_MD.to_owned(), b"---\nid: \xff\n---\n".to_vec());
    assert_violation(&load_refusal(not_utf8), AGENT_MD, "UTF-8");
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut lines = vec!["---".to_owned(), "a: &a [x, x, x, x, x, x, x, x, x]".to_owned()];
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f"), ("h", "g")] {
        let items = vec![format!("*{of}"); 9].join(", ");
        lines.push(format!("{name}: &{name} [{items}]"));
    }
    lines.push("---\n".to_owned());
    let bomb = lines.join("\n");
    assert_violation(&load_refusal(with(aip53_app(), AGENT_MD, &bomb)), AGENT_MD, "YAML");
    let deep = format!("---\na: {}{}\n---\n", "[".repeat(500), "]".repeat(500));
    assert_violation(&load_refusal(with(aip53_app(), AGENT_MD, &deep)), AGENT_MD, "YAML");
}

#[test]
fn scalars_are_not_reinterpreted() {
    let app =
        loaded(agent_md("model: role:default", "model: role:default\ntags: [2026-07-31, 0123, 1_000, yes, 'no']"));
    let tags = app.aip53.unwrap().agents[0].frontmatter["tags"].clone();
    assert_eq!(tags, json!(["2026-07-31", "0123", "1_000", "yes", "no"]));
}

/// H-6: an agent id became a folder name.
#[test]
fn h6_agent_ids_cannot_climb_or_collide() {
    for id in ["@o/../../x", "..", "a/../b", "a/b", "@o/a/b", "@/x", "@o/", "UPPER", "x", "a..b", "@o@p/x"] {
        let files = edit(agent_md("id: clerk", &format!("id: '{id}'")), APP_MD, "id: clerk", &format!("id: '{id}'"));
        assert_violation(
            &load_refusal(edit(files, WORKFLOW_MD, "ref: clerk", &format!("ref: '{id}'"))),
            AGENT_MD,
            "no `..`",
        );
    }
    let scoped = edit(agent_md("id: clerk", "id: '@inn/clerk'"), APP_MD, "id: clerk", "id: '@inn/clerk'");
    loaded(scoped.clone());
    let other = ".agentproto/agents/other/AGENT.md";
    let both = edit(scoped, APP_MD, "workflows:\n", &format!("  - id: '@acme/clerk'\n    path: {other}\nworkflows:\n"));
    let text = "---\nschema: agent/v1\nid: '@acme/clerk'\ndescription: d\nmodel: m\n---\n";
    assert_violation(&load_refusal(with(both, other, text)), ".agentproto/APP.md#agents", "share the folder `clerk`");
}

/// H-7: paths of APP.md could be absolute or climb, and the UI could publish anything.
#[test]
fn h7_paths_stay_inside_the_bundle() {
    for path in ["/etc/passwd", "../../etc/passwd", "a/../../b", "C:/x", "a\\b"] {
        let refusal = load_refusal(app_md("path: .agentproto/ui/index.html", &format!("path: '{path}'")));
        assert_violation(&refusal, ".agentproto/APP.md#ui.path", "unsafe-path");
        let refusal = load_refusal(app_md("path: .agentproto/agents/clerk/AGENT.md", &format!("path: '{path}'")));
        assert_violation(&refusal, ".agentproto/APP.md#agents[0].path", "unsafe-path");
        let refusal = load_refusal(app_md("ui:\n", &format!("data: {{ dir: '{path}' }}\nui:\n")));
        assert_violation(&refusal, ".agentproto/APP.md#data.dir", "unsafe-path");
    }
    loaded(app_md("path: .agentproto/ui/index.html", "path: ./.agentproto/ui/index.html"));
}

#[test]
fn h7_a_ui_that_would_publish_the_apps_source_is_refused() {
    for path in ["index.html", ".agentproto/index.html", ".agentproto/agents/index.html"] {
        let files = with(app_md("path: .agentproto/ui/index.html", &format!("path: {path}")), path, "<p>hi");
        assert_violation(&load_refusal(files), ".agentproto/APP.md#ui.path", "a folder of its own");
    }
    let files = with(app_md("path: .agentproto/ui/index.html", "path: app/index.html"), "app/index.html", "<p>hi");
    let files = with(files, "app/pb/pb_schema.json", "[]");
    assert_violation(&load_refusal(files), ".agentproto/APP.md#ui.path", "a folder of its own");
}

/// H-8: drift between the ref and the file was never noticed.
#[test]
fn h8_the_id_in_the_file_is_the_id_of_the_ref() {
    let refusal = load_refusal(agent_md("id: clerk", "id: clark"));
    assert_violation(&refusal, ".agentproto/agents/clerk/AGENT.md#id", "is `clark` here and `clerk` in APP.md");
    let refusal = load_refusal(workflow_md("id: filing", "id: taxes"));
    assert_violation(&refusal, ".agentproto/workflows/filing/WORKFLOW.md#id", "is `taxes` here and `filing` in APP.md");
}

#[test]
fn agent_md_is_closed_and_checked() {
    for (from, to, place, what) in [
        ("model: role:default", "model: m\nsystemPrompt: x", "#systemPrompt", "unknown key"),
        ("schema: agent/v1", "schema: agent/v2", "#schema", "agent/v1"),
        ("description: Files papers.\n", "", "#description", "required"),
        ("model: role:default\n", "", "#model", "required"),
        ("model: role:default", "model: { temperature: 3 }", "#model.temperature", "0 to 2"),
        ("model: role:default", "model: m\nversion: 1", "#version", "1.2.3"),
        ("model: role:default", "model: m\nautonomy: 11", "#autonomy", "0 to 10"),
        ("model: role:default", "model: m\nboundaries: ['']", "#boundaries[0]", "blank"),
        ("model: role:default", "model: m\nmemory: { scope: forever }", "#memory.scope", "per-thread"),
        ("model: role:default", "model: m\ntools: [{ ref: a, other: b }]", "#tools[0].other", "unknown key"),
        ("model: role:default", "model: m\ntools: [7]", "#tools[0]", "`ref`"),
    ] {
        assert_violation(&load_refusal(agent_md(from, to)), &format!("{AGENT_MD}{place}"), what);
    }
}

#[test]
fn workflow_md_is_closed_and_checked() {
    let step =
        "  - id: file\n    kind: agent\n    prompt: File this paper.\n    agent: { ref: clerk }\n    next: $end\n";
    for (from, to, place, what) in [
        ("inputs: {}", "inputs: {}\nextra: 1", "#extra", "unknown key"),
        ("version: 1.0.0", "version: 1.0", "#version", "1.2.3"),
        ("outputs: {}", "outputs: 7", "#outputs", "JSON Schema"),
        ("inputs: {}\n", "", "#inputs", "required"),
        ("kind: agent", "kind: transform", "#steps[0].kind", "subworkflow"),
        ("kind: agent", "kind: gate", "#steps[0].kind", "runs none"),
        ("ref: clerk", "ref: ghost", "#steps[0].agent.ref", "bundled are: clerk"),
        ("    prompt: File this paper.\n", "", "#steps[0].prompt", "required"),
        ("next: $end", "next: nowhere", "#steps[0].next", "no step `nowhere`"),
        (step, "  []\n", "#steps", "at least one step"),
        ("inputs: {}", "inputs: {}\nstart: other", "#start", "id of a step"),
        ("inputs: {}", "inputs: {}\ntriggers: [{ kind: schedule, cron: '* * * * *' }]", "#triggers[0]", "never fire"),
        ("inputs: {}", "inputs: {}\nretry: { max_attempts: 99 }", "#retry.max_attempts", "1 to 20"),
        ("inputs: {}", "inputs: {}\ninputsFiles: { a: { path: ../x } }", "#inputsFiles.a.path", "unsafe-path"),
        ("    next: $end\n", "  - { id: file, kind: tool, tool: x }\n", "#steps[1].id", "another step"),
        ("    next: $end\n", "  - { id: b, kind: tool }\n", "#steps[1]", "exactly one of"),
        ("    next: $end\n", "  - { id: b, kind: tool, tool: { entry: ./x.mjs } }\n", "#steps[1].tool", "text"),
        ("    next: $end\n", "  - { id: b, kind: parallel, branches: [] }\n", "#steps[1].branches", "at least 2"),
        (
            "    next: $end\n",
            "  - { id: b, kind: subworkflow, workflow: no }\n",
            "#steps[1].workflow",
            "bundled are: filing",
        ),
        (
            "    next: $end\n",
            "  - { id: b, kind: loop, while: true, max_iterations: 0, steps: [] }\n",
            "#steps[1].max_iterations",
            "1000",
        ),
    ] {
        assert_violation(&load_refusal(workflow_md(from, to)), &format!("{WORKFLOW_MD}{place}"), what);
    }
    let more = "    next: gate-keeper\n  - id: gate-keeper\n    kind: branch\n    branches: [{ when: true, next: file }]\n    default: $end\n\
                \x20 - id: each\n    kind: map\n    over: $input.items\n    steps: [{ id: inner, kind: tool, tool: x }]\n\
                \x20 - id: ask\n    kind: approval\n    prompt: Sure?\n    approvers: [{ role: owner }]\n    on_reject: { next: $end }\n\
                \x20 - id: wait\n    kind: suspend\n    resume: { on: [signal] }\n";
    loaded(workflow_md("    next: $end\n", more));
}

#[test]
fn a_workspace_is_loaded_and_compared() {
    let declared = app_md("ui:\n", "workspace: '@inn/office'\nui:\n");
    assert_violation(
        &load_refusal(declared.clone()),
        ".agentproto/APP.md#workspace",
        "WORKSPACE.md is not in the bundle",
    );
    let text = "---\nschema: workspace/v1\nid: '@inn/office'\nversion: 1.0.0\nname: Office\n\
                owner: { type: user, id: u1, slug: inn }\nstorage: { inline: { provider: local-fs, config: {} } }\n---\n";
    loaded(with(declared.clone(), "WORKSPACE.md", text));
    for (from, to, place, what) in [
        ("'@inn/office'", "'@inn/other'", "#id", "`@inn/office` in APP.md"),
        ("slug: inn", "slug: office", "#owner.slug", "owner part"),
        ("storage: { inline", "storage: { ref: x, inline", "#storage", "exactly one"),
        ("name: Office", "name: Office\nextra: 1", "#extra", "unknown key"),
    ] {
        let refusal = load_refusal(edit(with(declared.clone(), "WORKSPACE.md", text), "WORKSPACE.md", from, to));
        assert_violation(&refusal, &format!("WORKSPACE.md{place}"), what);
    }
}

#[test]
fn a_broken_bundled_tool_or_driver_fails_the_whole_load() {
    let refusal = load_refusal(with(aip53_app(), ".agentproto/tools/scan/notes.txt", "x"));
    assert_violation(&refusal, ".agentproto/tools/scan/TOOL.md", "missing");
    let tool = ".agentproto/tools/scan/TOOL.md";
    let text =
        "---\nname: Scan\nid: scan\ndescription: d\nversion: 1.0.0\ninputs: { type: object }\noutputs: {}\n---\n";
    loaded(with(aip53_app(), tool, text));
    for (from, to, what) in [
        ("inputs: { type: object }", "inputs: { type: thing }", "JSON Schema"),
        ("outputs: {}", "outputs: {}\nrun: x", "unknown key"),
        ("outputs: {}", "outputs: {}\nmutates: ['file:x']", "approval"),
        ("id: scan", "id: SCAN", "a-z"),
    ] {
        assert_violation(&load_refusal(edit(with(aip53_app(), tool, text), tool, from, to)), tool, what);
    }
    let driver = ".agentproto/drivers/scan/DRIVER.md";
    let cli =
        "---\nname: Scan\nid: scan\ndescription: d\nversion: 1.0.0\nkind: cli\nimplements: [{ tool: scan }]\n---\n";
    assert_violation(&load_refusal(with(aip53_app(), driver, cli)), driver, "metadata.cli.bin");
    let climbing = cli.replace("kind: cli", "kind: cli\nmetadata: { cli: { bin: x, cwd: ../.. } }");
    assert_violation(&load_refusal(with(aip53_app(), driver, &climbing)), driver, "leaves the app's folder");
    loaded(with(aip53_app(), driver, &climbing.replace("../..", "tools")));
    loaded(with(aip53_app(), driver, &cli.replace("kind: cli", "kind: mcp")));
}

#[test]
fn every_problem_is_in_one_answer() {
    let files = edit(agent_md("model: role:default", "autonomy: 99"), APP_MD, "schema: app/v1", "schema: app/v9");
    let refusal = load_refusal(edit(files, WORKFLOW_MD, "version: 1.0.0", "version: one"));
    assert_violation(&refusal, ".agentproto/APP.md#schema", "app/v1");
    assert_violation(&refusal, ".agentproto/agents/clerk/AGENT.md#model", "required");
    assert_violation(&refusal, ".agentproto/agents/clerk/AGENT.md#autonomy", "0 to 10");
    assert_violation(&refusal, ".agentproto/workflows/filing/WORKFLOW.md#version", "1.2.3");
    assert!(refusal.message.contains("(and 3 more)"), "{}", refusal.message);
}
