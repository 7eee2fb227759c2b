//! Several nodes on one database.

use std::collections::HashMap;
use std::time::Duration;

use inn_tests::stream::Event;
use inn_tests::{Door, Papers, Redis, Stream, kanban, until};
use serde_json::json;

use super::{Chat, SLUG};

#[tokio::test]
async fn a_change_on_one_node_is_told_on_every_node_and_a_stream_may_go_on_at_another() {
    let mut chat = Chat::start().await;
    chat.host.add_node(|_| {}).await;
    let [first, second] = chat.host.doors() else { panic!("two nodes") };
    let (here, there) = (Stream::open(first, SLUG).await, Stream::open(second, SLUG).await);
    for stream in [&here, &there] {
        stream.subscribe(&["public/*"], Papers::Nobody).await;
    }
    let say = async |door: &Door| {
        let reply = door.post(Chat::records("public"), &json!({"text": "x"})).by(&chat.owner).send().await;
        format!("create public/{}", kanban::id(&reply.expect(200)))
    };
    // Without Redis the nodes do not wake each other: they look.
    let all = [say(first).await, say(second).await];
    assert_eq!(here.told(2).await, all);
    assert_eq!(there.told(2).await, all);
    let id = here.events()[0].id.clone();
    let on = Stream::resume(second, SLUG, &id).await;
    on.subscribe(&["public/*"], Papers::Nobody).await;
    assert_eq!(on.told(2).await[1], all[1]);
}

#[tokio::test]
async fn revoking_on_one_node_ends_the_stream_on_another() {
    let mut chat = Chat::start().await;
    chat.host.add_node(|_| {}).await;
    let ada = chat.sign_up("ada").await;
    let [first, second] = chat.host.doors() else { panic!("two nodes") };
    let stream = Stream::open(second, SLUG).await;
    stream.subscribe(&["public/*"], &ada).await;
    let path = format!("/apps/{SLUG}/api/collections/users/sign-out");
    first.post(path, &json!({})).by(&ada).send().await.expect(204);
    stream.wait_for_end().await;
}

/// Writes on both nodes at once, heard on both, while streams break off and go on at the other node: every event comes once,
/// and of one record in the order it happened.
async fn heard_once_and_in_order(chat: &Chat, redis: Option<&mut Redis>) {
    const WRITERS: usize = 4;
    const CHANGES: usize = 25;
    let [first, second] = chat.host.doors() else { panic!("two nodes") };
    let steady = [Stream::open(first, SLUG).await, Stream::open(second, SLUG).await];
    let mut moving = Stream::open(first, SLUG).await;
    for stream in steady.iter().chain([&moving]) {
        stream.subscribe(&["public/*"], Papers::Nobody).await;
    }
    let writers = (0..WRITERS).map(|writer| {
        let (doors, owner) = ([first.clone(), second.clone()], chat.owner.clone());
        tokio::spawn(async move {
            let made = doors[writer % 2].post(Chat::records("public"), &json!({"text": "w", "count": 0})).by(&owner);
            let id = kanban::id(&made.send().await.expect(200));
            for count in 1..CHANGES {
                // Each change of one record by the node that did not make the last.
                let door = &doors[(writer + count) % 2];
                let path = format!("{}/{id}", Chat::records("public"));
                door.patch(path, &json!({"count": count})).by(&owner).send().await.expect(200);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    if let Some(redis) = redis {
        steady[0].wait(WRITERS * 5).await;
        redis.kill();
    }
    // One stream breaks off again and again, and goes on at the other node from what it has heard last.
    let mut told: Vec<Event> = Vec::new();
    let mut turn = 0;
    let total = WRITERS * CHANGES;
    until("everything on the stream that moves", || async { (moving.events().len() >= 3).then_some(()) }).await;
    while told.len() < total {
        let heard = moving.events().into_iter().filter(|event| event.name == "public/*");
        // However many came at once, the next stream goes on from the seventh of them.
        let heard: Vec<Event> = heard.take(7).collect();
        let enough = heard.len() == 7 || told.len() + heard.len() == total;
        if !enough {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        let last = heard.last().unwrap().id.clone();
        told.extend(heard);
        turn += 1;
        moving = Stream::resume(&chat.host.doors()[turn % 2], SLUG, &last).await;
        moving.subscribe(&["public/*"], Papers::Nobody).await;
        let resumed = moving.wait(1).await.remove(0);
        assert_eq!((resumed.name.as_str(), &resumed.data), ("INN_RESUME", &json!({"resumed": true})));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut lists = vec![told];
    for stream in &steady {
        lists.push(stream.wait(total).await);
    }
    for events in lists {
        assert_eq!(events.len(), total, "none is missing and none comes twice");
        let mut counts: HashMap<String, Vec<u64>> = HashMap::new();
        for event in &events {
            let record = &event.data["record"];
            counts.entry(kanban::id(record)).or_default().push(record["count"].as_u64().unwrap());
        }
        assert_eq!(counts.len(), WRITERS);
        for (id, counts) in counts {
            assert_eq!(counts, (0..u64::try_from(CHANGES).unwrap()).collect::<Vec<_>>(), "of {id} in order");
        }
    }
    assert!(turn > 3, "it moved {turn} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_over_redis_tell_every_event_once() {
    let redis = Redis::start();
    let mut chat = Chat::with(|settings| settings.redis.url = Some(redis.url())).await;
    chat.host.add_node(|settings| settings.redis.url = Some(redis.url())).await;
    heard_once_and_in_order(&chat, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_whose_redis_dies_in_the_middle_tell_every_event_once() {
    let mut redis = Redis::start();
    let mut chat = Chat::with(|settings| settings.redis.url = Some(redis.url())).await;
    chat.host.add_node(|settings| settings.redis.url = Some(redis.url())).await;
    heard_once_and_in_order(&chat, Some(&mut redis)).await;
}
