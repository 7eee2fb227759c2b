//! Keeps one claim alive beside the program that works on it, and passes its progress on.

use std::time::Duration;

use inn_client::{Agent, ClientError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::output::Progress;

/// Least time between two calls for one claim: a program may say more than anybody reads.
const LEAST_GAP: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_secs(1);

/// One claim: the request and the epoch that fences it.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) agent: Agent,
    pub(super) request: String,
    pub(super) epoch: i64,
    pub(super) lease: Duration,
}

/// Sends heartbeats and progress until `done`. When the claim is lost, says why and cancels `lost`.
pub(super) async fn keep(
    claim: Claim,
    mut progress: watch::Receiver<Option<Progress>>,
    done: CancellationToken,
    lost: CancellationToken,
) -> Option<String> {
    let beat = (claim.lease / 3).max(PAUSE);
    let mut talks = true;
    // The first word says at once that the claim has arrived: until then its lease is a short one.
    let mut next = Duration::ZERO;
    loop {
        let newest = tokio::select! {
            () = done.cancelled() => return None,
            () = tokio::time::sleep(next) => None,
            changed = progress.changed(), if talks => {
                talks = changed.is_ok();
                if !talks {
                    continue;
                }
                progress.borrow_and_update().clone()
            }
        };
        next = beat;
        let sent = match newest {
            Some(step) => claim.agent.progress(&claim.request, claim.epoch, &step.step, step.percent).await,
            None => claim.agent.heartbeat(&claim.request, claim.epoch).await,
        };
        match sent {
            Err(error) if is_lost(&error) => {
                lost.cancel();
                return Some(error.to_string());
            }
            // A platform that is away may come back before the lease ends; if it does not, the next call says so.
            Err(_) => {
                next = PAUSE;
                tokio::time::sleep(PAUSE.min(beat)).await;
            }
            Ok(_) => tokio::time::sleep(LEAST_GAP).await,
        }
    }
}

/// The claim is somebody else's or nobody's now, and no waiting brings it back.
pub(super) fn is_lost(error: &ClientError) -> bool {
    let ClientError::Refused(body) = error else { return false };
    let timing = matches!(body.code.as_str(), "signature_expired" | "invalid_signature" | "replayed_nonce");
    !timing && body.retry == "no" && matches!(body.status, 401 | 403 | 404 | 409)
}

#[cfg(test)]
mod tests {
    use super::*;
    use inn_client::RefusalBody;

    #[test]
    fn a_claim_is_lost_by_a_refusal_and_not_by_a_bad_line() {
        let refused = |status: u16, code: &str, retry: &str| {
            let body = serde_json::json!({"code": code, "message": "m", "retry": retry});
            ClientError::Refused(Box::new(RefusalBody::read(status, body.to_string().as_bytes(), None).unwrap()))
        };
        for (status, code, retry, lost) in [
            (409, "claim_lost", "no", true),
            (401, "token_revoked", "no", true),
            (404, "not_found", "no", true),
            (401, "signature_expired", "no", false),
            (503, "overloaded", "after", false),
            (400, "invalid_parameter", "no", false),
            (409, "in_progress", "after", false),
        ] {
            assert_eq!(is_lost(&refused(status, code, retry)), lost, "{code}");
        }
        assert!(!is_lost(&ClientError::Unreachable { url: String::new(), cause: String::new(), sent: true }));
    }
}
