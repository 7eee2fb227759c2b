use std::sync::Arc;
use std::time::Duration;

use inn_ports::Topic;
use inn_protocol::{AppId, TenantId};

use super::{Hub, POLICY_BACKLOG};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

#[tokio::test]
async fn a_waiter_is_woken_by_its_own_topic_only() {
    let hub = Arc::new(Hub::default());
    let (mine, other) = (AppId::new(), AppId::new());
    let waiter = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.wait(&[Topic::Requests(mine), Topic::Policy(TenantId::PLATFORM)], LONG).await }
    });
    while hub.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    hub.wake(Topic::Requests(other));
    tokio::time::sleep(SHORT).await;
    assert!(!waiter.is_finished());
    hub.wake(Topic::Requests(mine));
    assert!(waiter.await.unwrap());
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test]
async fn a_wake_after_the_first_pending_is_never_missed() {
    let hub = Hub::default();
    let topic = Topic::Requests(AppId::new());
    let topics = [topic];
    let mut wait = Box::pin(hub.wait(&topics, LONG));
    assert!(futures_util::poll!(wait.as_mut()).is_pending());
    hub.wake(topic);
    assert_eq!(futures_util::poll!(wait.as_mut()), std::task::Poll::Ready(true));
}

#[tokio::test]
async fn a_wait_ends_with_its_time_and_leaves_nothing_behind() {
    let hub = Hub::default();
    let topics = [Topic::Requests(AppId::new()), Topic::Requests(AppId::new())];
    assert!(!hub.wait(&topics, SHORT).await);
    assert_eq!(hub.waiting(), 0);
    {
        let mut dropped = Box::pin(hub.wait(&topics, LONG));
        assert!(futures_util::poll!(dropped.as_mut()).is_pending());
        assert_eq!(hub.waiting(), 2);
    }
    assert_eq!(hub.waiting(), 0, "a canceled wait gives its places back");
}

#[tokio::test]
async fn a_topic_named_twice_is_one_place() {
    let hub = Hub::default();
    let topic = Topic::Requests(AppId::new());
    let twice = [topic, topic];
    let mut wait = Box::pin(hub.wait(&twice, LONG));
    assert!(futures_util::poll!(wait.as_mut()).is_pending());
    assert_eq!(hub.waiters.lock().get(&topic).map(Vec::len), Some(1));
    hub.wake(topic);
    assert!(wait.await);
}

#[tokio::test]
async fn a_missed_connection_wakes_everybody() {
    let hub = Hub::default();
    let mut hints = hub.policy_hints();
    let topics = [Topic::Requests(AppId::new())];
    let mut wait = Box::pin(hub.wait(&topics, LONG));
    assert!(futures_util::poll!(wait.as_mut()).is_pending());
    hub.wake_everything();
    assert!(wait.await);
    assert_eq!(hints.next().await, Some(None));
}

#[tokio::test]
async fn a_reader_that_fell_behind_is_told_to_forget_everything() {
    let hub = Hub::default();
    let mut hints = hub.policy_hints();
    let last = TenantId::new();
    for _ in 0..POLICY_BACKLOG {
        hub.wake(Topic::Policy(TenantId::new()));
    }
    hub.wake(Topic::Policy(last));
    assert_eq!(hints.next().await, Some(None));
    let mut newest = None;
    for _ in 0..POLICY_BACKLOG {
        newest = hints.next().await;
    }
    assert_eq!(newest, Some(Some(last)), "what came after the gap is still delivered");
    drop(hub);
    assert_eq!(hints.next().await, None);
}
