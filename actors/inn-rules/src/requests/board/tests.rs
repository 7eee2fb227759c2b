use chrono::{DateTime, Utc};
use inn_protocol::queue::LimitKind;
use inn_protocol::request::ClaimOffer;
use inn_protocol::{AgentId, AppId, GrantId, TenantId, UserId};
use proptest::prelude::*;

use super::*;
use crate::requests::{Room, Rooms};

const CAPABILITY: &str = "summarise";

fn agent() -> AgentId {
    AgentId::parse(&"A".repeat(43)).unwrap()
}

fn offer(tenant: TenantId, app: AppId) -> ClaimOffer {
    ClaimOffer {
        tenant,
        app,
        capability: CAPABILITY.to_owned(),
        grant: GrantId::new(),
        grant_epoch: 1,
        user: UserId::new(),
        others: true,
    }
}

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn found(lane: &str, waiting: u32) -> Found {
    Found { lane: lane.to_owned(), waiting, from: at(0), weight: 1 }
}

fn look(offer: &ClaimOffer) -> Look {
    Look { app: offer.app, capability: offer.capability.clone(), lane: None, after: String::new() }
}

fn shown(board: &mut Board, offer: &ClaimOffer, lanes: &[(&str, u32)]) {
    let lanes = lanes.iter().map(|(lane, waiting)| found(lane, *waiting)).collect();
    board.found(&look(offer), lanes, true, Weights::default(), (0, 1));
}

/// Lanes of a turn, each as often as it has rows.
fn lanes(turn: &Turn) -> Vec<&str> {
    turn.picks.iter().flat_map(|pick| std::iter::repeat_n(pick.lane.as_str(), pick.quota as usize)).collect()
}

#[test]
fn requesters_take_turns_however_much_one_of_them_has() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    shown(&mut board, &offer, &[("ada", 100), ("bob", 1), ("cyd", 2)]);
    let offers = std::slice::from_ref(&offer);
    let served: Vec<String> =
        (0..7).map(|_| board.reserve(&agent(), offers, 1).unwrap().picks[0].lane.clone()).collect();
    assert_eq!(served, ["ada", "bob", "cyd", "ada", "cyd", "ada", "ada"]);
}

#[test]
fn a_requester_of_weight_three_is_served_three_times_in_a_row() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    let lanes = vec![Found { weight: 3, ..found("ada", 100) }, found("bob", 100)];
    board.found(&look(&offer), lanes, true, Weights::default(), (0, 1));
    let served: Vec<String> = (0..8)
        .map(|_| board.reserve(&agent(), std::slice::from_ref(&offer), 1).unwrap().picks[0].lane.clone())
        .collect();
    assert_eq!(served, ["ada", "ada", "ada", "bob", "ada", "ada", "ada", "bob"]);
}

#[test]
fn a_batch_is_shared_out_and_never_more_than_waits() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    shown(&mut board, &offer, &[("ada", 100), ("bob", 2)]);
    let turn = board.reserve(&agent(), std::slice::from_ref(&offer), 6).unwrap();
    let mut served = lanes(&turn);
    served.sort_unstable();
    assert_eq!(served, ["ada", "ada", "ada", "ada", "bob", "bob"]);
    assert_eq!(turn.picks.len(), 2, "one look at the index per requester");
    let rest = board.reserve(&agent(), std::slice::from_ref(&offer), 1000).unwrap();
    assert_eq!(lanes(&rest).len(), 96);
    assert_eq!(board.reserve(&agent(), std::slice::from_ref(&offer), 1), None);
}

#[test]
fn another_tenants_only_request_comes_second_at_the_latest() {
    let mut board = Board::default();
    let (big, small) = (offer(TenantId::new(), AppId::new()), offer(TenantId::new(), AppId::new()));
    shown(&mut board, &big, &[("ada", 100_000)]);
    let offers = [big.clone(), small.clone()];
    for _ in 0..50 {
        assert_eq!(board.reserve(&agent(), &offers, 10).unwrap().tenant, big.tenant);
    }
    shown(&mut board, &small, &[("zoe", 1)]);
    let next: Vec<TenantId> = (0..2).map(|_| board.reserve(&agent(), &offers, 10).unwrap().tenant).collect();
    assert!(next.contains(&small.tenant));
}

#[test]
fn apps_of_a_tenant_take_turns_by_weight() {
    let (mut board, tenant) = (Board::default(), TenantId::new());
    let offers = [offer(tenant, AppId::new()), offer(tenant, AppId::new())];
    for (offer, app) in offers.iter().zip([3, 1]) {
        board.found(&look(offer), vec![found("ada", 100)], true, Weights { tenant: 1, app }, (0, 1));
    }
    let turn = board.reserve(&agent(), &offers, 40).unwrap();
    let of = |offer: usize| turn.picks.iter().filter(|pick| pick.offer == offer).map(|pick| pick.quota).sum::<u32>();
    assert_eq!((of(0), of(1)), (30, 10));
}

#[test]
fn an_offer_without_others_gets_its_own_persons_lane_only() {
    let (mut board, mut own) = (Board::default(), offer(TenantId::new(), AppId::new()));
    own.others = false;
    shown(&mut board, &own, &[("ada", 5)]);
    let offers = std::slice::from_ref(&own);
    assert_eq!(board.reserve(&agent(), offers, 1), None);
    board.waits(own.app, CAPABILITY, &lane(own.user), at(3));
    let turn = board.reserve(&agent(), offers, 5).unwrap();
    assert_eq!((lanes(&turn), turn.picks[0].from), (vec![lane(own.user).as_str()], at(3)));
}

#[test]
fn what_comes_is_known_at_once_and_what_is_gone_is_forgotten() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    let offers = std::slice::from_ref(&offer);
    board.waits(offer.app, CAPABILITY, "ada", at(1));
    assert_eq!(board.reserve(&agent(), offers, 1), None, "nobody has looked there yet: a look comes first");
    shown(&mut board, &offer, &[]);
    board.waits(offer.app, CAPABILITY, "ada", at(1));
    let turn = board.reserve(&agent(), offers, 1).unwrap();
    assert_eq!(board.reserve(&agent(), offers, 1), None, "it is kept for the first");
    board.settle(&offer, &turn.picks[0], 0, None);
    assert_eq!(board.reserve(&agent(), offers, 1), None);

    // What came while others were wrong about the rest stays.
    shown(&mut board, &offer, &[("ada", 10)]);
    let turn = board.reserve(&agent(), offers, 4).unwrap();
    board.waits(offer.app, CAPABILITY, "ada", at(9));
    board.settle(&offer, &turn.picks[0], 1, Some(at(5)));
    assert_eq!(lanes(&board.reserve(&agent(), offers, 4).unwrap()), ["ada"]);
}

#[test]
fn claims_go_past_rows_that_are_gone_until_the_next_look() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    let offers = std::slice::from_ref(&offer);
    shown(&mut board, &offer, &[("ada", 10)]);
    let turn = board.reserve(&agent(), offers, 3).unwrap();
    board.settle(&offer, &turn.picks[0], 3, Some(at(30)));
    assert_eq!(board.reserve(&agent(), offers, 1).unwrap().picks[0].from, at(30));
    // An older one came back, from this node or another.
    board.waits(offer.app, CAPABILITY, "ada", at(7));
    assert_eq!(board.reserve(&agent(), offers, 1).unwrap().picks[0].from, at(7));
    shown(&mut board, &offer, &[("ada", 10)]);
    assert_eq!(board.reserve(&agent(), offers, 1).unwrap().picks[0].from, at(0));
}

#[test]
fn a_picture_is_looked_at_again_after_a_second_or_later_when_looking_takes_long() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    let offers = std::slice::from_ref(&offer);
    assert_eq!(board.stale(offers, 0), [look(&offer)]);
    board.found(&look(&offer), Vec::new(), true, Weights::default(), (5_000, 2));
    assert_eq!(board.stale(offers, 5_999), []);
    assert_eq!(board.stale(offers, 6_000), [look(&offer)]);
    assert_eq!(board.unseen_since(offers, 5_000), []);
    assert_eq!(board.unseen_since(offers, 5_001), [look(&offer)]);
    board.found(&look(&offer), Vec::new(), true, Weights::default(), (6_000, 300));
    assert_eq!(board.stale(offers, 11_999), []);
    assert_eq!(board.stale(offers, 12_000), [look(&offer)], "at most a twentieth of the time is spent on looks");
}

#[test]
fn an_own_lane_is_looked_at_by_itself_when_not_all_are_known() {
    let (mut board, mut offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    offer.others = false;
    let own = Look { lane: Some(lane(offer.user)), ..look(&offer) };
    assert_eq!(board.stale(std::slice::from_ref(&offer), 0), std::slice::from_ref(&own));
    board.found(&own, Vec::new(), true, Weights::default(), (10, 1));
    assert_eq!(board.stale(std::slice::from_ref(&offer), 500), []);
    // A look at all of them does for everybody, as long as it saw them all.
    board.found(&look(&offer), vec![found("a", 1)], true, Weights::default(), (2_000, 1));
    assert_eq!(board.stale(std::slice::from_ref(&offer), 2_500), []);
    board.found(&look(&offer), vec![found("a", 1)], false, Weights::default(), (4_000, 1));
    assert_eq!(board.stale(std::slice::from_ref(&offer), 4_500).len(), 1);
}

#[test]
fn looks_go_round_the_ring_when_there_are_many_requesters() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    let offers = std::slice::from_ref(&offer);
    board.found(&look(&offer), vec![found("b", 1), found("d", 1)], false, Weights::default(), (0, 1));
    let next = board.stale(offers, 10_000).remove(0);
    assert_eq!(next.after, "d");
    // Behind "d" comes "e", and then it begins again with "a"; "b" was not seen this time and is still believed.
    board.found(&next, vec![found("e", 1), found("a", 1)], false, Weights::default(), (10_000, 1));
    let served: Vec<String> =
        (0..4).map(|_| board.reserve(&agent(), offers, 1).unwrap().picks[0].lane.clone()).collect();
    assert_eq!(served, ["a", "b", "d", "e"]);
}

#[test]
fn what_is_capped_is_passed_over_and_nothing_else_is() {
    let (mut board, tenant) = (Board::default(), TenantId::new());
    let offers = [offer(tenant, AppId::new()), offer(tenant, AppId::new())];
    for offer in &offers {
        shown(&mut board, offer, &[("ada", 100), ("bob", 100)]);
    }
    let room = |kind, app, subject: &str, left| Room { kind, app, subject: subject.to_owned(), left };
    let served = |board: &mut Board, rooms: Vec<Room>| {
        board.set_rooms(tenant, Rooms::new(rooms));
        let turn = board.reserve(&agent(), &offers, 10);
        turn.map(|turn| turn.picks.iter().map(|pick| (pick.offer, pick.lane.clone(), pick.quota)).collect::<Vec<_>>())
    };
    let some = |picks: Option<Vec<(usize, String, u32)>>| picks.unwrap_or_default();
    let picks = some(served(&mut board, vec![room(LimitKind::App, Some(offers[0].app), "", 0)]));
    assert!(picks.iter().all(|(offer, ..)| *offer == 1), "{picks:?}");
    let picks = some(served(&mut board, vec![room(LimitKind::Person, None, "ada", 1)]));
    assert_eq!(picks.iter().filter(|(_, lane, _)| lane == "ada").map(|(.., n)| n).sum::<u32>(), 1, "{picks:?}");
    let picks = some(served(&mut board, vec![room(LimitKind::Capability, Some(offers[1].app), CAPABILITY, 2)]));
    assert_eq!(picks.iter().filter(|(offer, ..)| *offer == 1).map(|(.., n)| n).sum::<u32>(), 2, "{picks:?}");
    let picks = some(served(&mut board, vec![room(LimitKind::Agent, None, agent().as_str(), 3)]));
    assert_eq!(picks.iter().map(|(.., n)| n).sum::<u32>(), 3, "{picks:?}");
    assert_eq!(served(&mut board, vec![room(LimitKind::Agent, None, agent().as_str(), 0)]), None);
    assert!(board.capped(tenant));
    assert_eq!(some(served(&mut board, Vec::new())).iter().map(|(.., n)| n).sum::<u32>(), 10);
    assert!(!board.capped(tenant));
}

proptest! {
    /// Whatever claims and arrivals do: nothing is kept twice, and what nobody took is found by the next look.
    #[test]
    fn no_row_is_kept_for_two_claims(steps in prop::collection::vec((0_usize..4, 0_usize..3, 1_u32..8), 1..60)) {
        let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
        let offers = std::slice::from_ref(&offer);
        let names = ["ada", "bob", "cyd"];
        let mut waiting = [0_u32; 3];
        let show = |board: &mut Board, waiting: &[u32; 3]| {
            let lanes = names.iter().zip(waiting).filter(|(_, n)| **n > 0).map(|(lane, n)| found(lane, *n)).collect();
            board.found(&look(&offer), lanes, true, Weights::default(), (0, 1));
        };
        show(&mut board, &waiting);
        for (step, who, many) in steps {
            match step {
                0 | 1 => {
                    waiting[who] += 1;
                    board.waits(offer.app, CAPABILITY, names[who], at(0));
                }
                2 => show(&mut board, &waiting),
                _ => {
                    let turn = board.reserve(&agent(), offers, many);
                    prop_assert_eq!(turn.is_some(), waiting.iter().any(|n| *n > 0));
                    for pick in turn.iter().flat_map(|turn| &turn.picks) {
                        let lane = names.iter().position(|name| *name == pick.lane).unwrap();
                        prop_assert!(pick.quota <= waiting[lane]);
                        waiting[lane] -= pick.quota;
                        board.settle(&offer, pick, pick.quota, Some(at(0)));
                    }
                }
            }
        }
    }
}

#[test]
fn in_doubt_everything_is_looked_at_again() {
    let (mut board, offer) = (Board::default(), offer(TenantId::new(), AppId::new()));
    shown(&mut board, &offer, &[("ada", 1)]);
    assert_eq!(board.stale(std::slice::from_ref(&offer), 1), []);
    board.doubt();
    assert_eq!(board.stale(std::slice::from_ref(&offer), 1), [look(&offer)]);
}
