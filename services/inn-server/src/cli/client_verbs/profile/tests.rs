use super::*;
use std::os::unix::fs::PermissionsExt as _;

fn profile() -> (tempfile::TempDir, Profile) {
    let folder = tempfile::tempdir().unwrap();
    let profile = Profile::at(folder.path().join("deep/config"));
    (folder, profile)
}

#[test]
fn secrets_are_for_their_owner_only() {
    let (_folder, profile) = profile();
    profile.keep_session("http://a", "me@example.com", "ses_secret").unwrap();
    let agent = AgentFile::new("bot", &AgentKey::from_seed([1; 32])).unwrap();
    profile.keep_agent(&agent).unwrap();
    profile.keep_tokens("bot", "http://a", &TokenCache::default()).unwrap();
    for file in [profile.sessions_file(), profile.agent_file("bot"), profile.tokens_file("bot")] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    assert!(!format!("{agent:?}").contains("PRIVATE"));
}

#[test]
fn sessions_are_kept_by_platform_and_the_last_one_is_the_default() {
    let (_folder, profile) = profile();
    assert_eq!(profile.last_platform().unwrap(), None);
    profile.keep_session("http://a", "", "ses_a").unwrap();
    profile.keep_session("http://b", "", "ses_b").unwrap();
    assert_eq!(profile.last_platform().unwrap().as_deref(), Some("http://b"));
    assert_eq!(profile.session("http://a").unwrap().as_deref(), Some("ses_a"));
    profile.forget_session("http://a").unwrap();
    assert_eq!(profile.session("http://a").unwrap(), None);
}

#[test]
fn an_agent_reads_back_with_its_key_and_the_only_one_needs_no_name() {
    let (_folder, profile) = profile();
    assert!(matches!(profile.agent(None), Err(CliError::Local { code: "no_agent", .. })));
    let key = AgentKey::from_seed([2; 32]);
    profile.keep_agent(&AgentFile::new("one", &key).unwrap()).unwrap();
    let read = profile.agent(None).unwrap();
    assert_eq!(read.key().unwrap().public(), key.public());
    profile.keep_agent(&AgentFile::new("two", &AgentKey::from_seed([3; 32])).unwrap()).unwrap();
    assert!(matches!(profile.agent(None), Err(CliError::Usage(_))), "two agents: no guessing");
    assert_eq!(profile.agent(Some("two")).unwrap().name, "two");
    assert!(matches!(profile.agent(Some("three")), Err(CliError::Local { .. })));
}

#[test]
fn a_name_cannot_leave_the_folder() {
    let (_folder, profile) = profile();
    for name in ["", "..", "../x", "a/b", ".hidden", &"x".repeat(41)] {
        assert!(matches!(profile.agent(Some(name)), Err(CliError::Usage(_))), "{name}");
    }
}

#[test]
fn the_newest_grant_request_for_an_app_comes_first() {
    let mut agent = AgentFile::new("bot", &AgentKey::from_seed([1; 32])).unwrap();
    for (id, app) in [("grq_1", "kanban"), ("grq_2", "other"), ("grq_3", "kanban")] {
        agent.add_asked("http://a", id, app);
    }
    agent.granted("http://a", "grq_1", "grt_1");
    let asked = agent.asked("http://a", "kanban");
    assert_eq!(asked.iter().map(|asked| asked.id.as_str()).collect::<Vec<_>>(), ["grq_3", "grq_1"]);
    assert_eq!(asked.last().unwrap().grant.as_deref(), Some("grt_1"));
    assert_eq!(agent.apps("http://a"), ["kanban", "other"]);
    for turn in 0..300 {
        agent.add_asked("http://a", &turn.to_string(), "kanban");
    }
    assert_eq!(agent.asked("http://a", "kanban").len(), MAX_ASKED, "memory is bounded");
}
