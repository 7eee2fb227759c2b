//! What we add to a manifest, under the one key `innkeeper`.

use inn_protocol::app::{AppLimits, Capability};

use super::capabilities;
use crate::node::Node;
use crate::problem::Problems;

/// Both halves of a bundle may carry the key; what they say together must not contradict itself.
pub(super) fn load(extras: &[Option<Node<'_>>], problems: &mut Problems) -> (Vec<Capability>, AppLimits) {
    let mut found: Vec<Capability> = Vec::new();
    let mut limits: Option<AppLimits> = None;
    for extra in extras.iter().flatten() {
        if !extra.closed(&["capabilities", "limits"], problems) {
            continue;
        }
        if let Some(list) = extra.get("capabilities") {
            capabilities::load(&list, &mut found, problems);
        }
        if let Some(node) = extra.get("limits") {
            if limits.is_some() {
                node.problem("limits are already given by the other half of the bundle; keep one", problems);
            }
            limits = Some(read_limits(&node, problems));
        }
    }
    (found, limits.unwrap_or_default())
}

fn read_limits(node: &Node<'_>, problems: &mut Problems) -> AppLimits {
    node.closed(&["maxBodyBytes", "maxOpenRequests"], problems);
    let body = node.get("maxBodyBytes").and_then(|value| value.whole(1, 32 * 1024 * 1024, problems));
    let open = node.get("maxOpenRequests").and_then(|value| value.whole(1, 1_000_000, problems));
    AppLimits { max_body_bytes: body, max_open_requests: open.and_then(|open| u32::try_from(open).ok()) }
}
