//! The bus of a platform with one node.

use std::time::Duration;

use async_trait::async_trait;
use inn_ports::{Bus, PolicyHints, Topic};

use crate::hub::Hub;

#[derive(Default)]
pub(crate) struct LocalBus(Hub);

#[async_trait]
impl Bus for LocalBus {
    async fn publish(&self, topic: Topic) {
        self.0.wake(topic);
    }

    async fn wait(&self, topics: &[Topic], limit: Duration) -> bool {
        self.0.wait(topics, limit).await
    }

    fn policy_hints(&self) -> Box<dyn PolicyHints> {
        self.0.policy_hints()
    }
}
