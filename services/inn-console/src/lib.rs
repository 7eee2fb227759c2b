//! The web console: pages rendered on the server, plain forms, no JavaScript.
//!
//! A page makes the calls the API makes, through the same gateway: it decides nothing and writes nothing itself. Each
//! call a page makes has its own id and its own line in the register. What a page shows went through a template that
//! escapes everything, because names, reasons and sentences come from apps and agents.

mod assets;
mod audit;
mod consent;
mod entry;
mod error;
mod form;
mod frame;
mod grants;
mod home;
mod mail;
mod open;
mod page;
#[cfg(test)]
mod samples;
mod session;
mod stamp;
#[cfg(test)]
mod tests;
mod visit;

use actix_web::web::{self, ServiceConfig};

/// Every page, for the platform's origin: pass it to [`inn_http::configure`].
pub fn routes(config: &mut ServiceConfig) {
    config
        .route("/", web::get().to(home::show))
        // A form's own address, typed or reloaded, leads to its page.
        .service(
            web::resource("/sign-in").route(web::post().to(session::sign_in)).route(web::get().to(session::form_page)),
        )
        .service(
            web::resource("/sign-out")
                .route(web::post().to(session::sign_out))
                .route(web::get().to(session::form_page)),
        )
        .route("/enter", web::get().to(session::enter))
        .route("/open/{slug}", web::get().to(open::open))
        .service(
            web::resource("/consent/{id}").route(web::get().to(consent::show)).route(web::post().to(consent::decide)),
        )
        .route("/grants", web::get().to(grants::list))
        .route("/grants/{id}", web::get().to(grants::show))
        .service(
            web::resource("/grants/{id}/revoke")
                .route(web::post().to(grants::revoke))
                .route(web::get().to(grants::revoke_page)),
        )
        .route("/mail", web::get().to(mail::show))
        .route("/audit", web::get().to(audit::search))
        .route("/audit/verify", web::get().to(audit::verify))
        .route(assets::STYLE, web::get().to(assets::style))
        .route(assets::ICON, web::get().to(assets::icon));
}
