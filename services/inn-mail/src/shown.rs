//! Development: nobody's mail server is bothered, and whoever sits at the machine reads what would have been sent.

use std::collections::VecDeque;

use async_trait::async_trait;
use chrono::Utc;
use inn_ports::{Mail, MailError, Message, ShownMail};
use inn_protocol::TenantId;
use parking_lot::Mutex;

use crate::text::plain;

/// Mails kept in memory; the oldest go.
const KEPT: usize = 200;

/// Keeps the last mails in memory and writes each into the log.
#[derive(Default)]
pub struct Shown(Mutex<VecDeque<ShownMail>>);

#[async_trait]
impl Mail for Shown {
    fn is_ready(&self) -> bool {
        true
    }

    async fn send(&self, message: &Message) -> Result<(), MailError> {
        let text = plain(&message.html);
        tracing::info!(
            app = message.app_name,
            to = message.to,
            subject = message.subject,
            "mail (shown instead of sent, no mail server is set):\n{text}"
        );
        let mut kept = self.0.lock();
        kept.truncate(KEPT - 1);
        kept.push_front(ShownMail { at: Utc::now(), message: message.clone(), text });
        Ok(())
    }

    fn shown(&self, tenant: TenantId) -> Option<Vec<ShownMail>> {
        let of_tenant = |mail: &&ShownMail| mail.message.tenant == tenant;
        Some(self.0.lock().iter().filter(of_tenant).cloned().collect())
    }
}
