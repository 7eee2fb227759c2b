//! The faces of an app: A2App over PocketBase's record paths, and on its own origin the UI.

mod enter;
mod meta;
mod operations;
mod records;
mod tasks;
mod ui;

pub use enter::session_cookie;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, ServiceConfig};

/// `http://<slug>.<apps domain>/…`: the API and the UI.
pub fn on_own_origin(config: &mut ServiceConfig) {
    config.route("/_inn/enter", web::get().to(enter::enter));
    api(config);
    config.default_service(web::to(ui::serve));
}

/// `<platform>/apps/<slug>/…`: the same API for programs. Nothing served here can run on the platform's origin.
pub fn below_platform(config: &mut ServiceConfig) {
    config.service(
        web::scope("")
            .wrap(DefaultHeaders::new().add((CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"))))
            .configure(api)
            .default_service(web::to(operations::by_path)),
    );
}

fn api(config: &mut ServiceConfig) {
    config
        .route("/api/health", web::get().to(meta::health))
        .route("/api/_a2app", web::get().to(meta::identity))
        .route("/api/_a2app/describe", web::get().to(meta::describe))
        .route("/api/_a2app/whoami", web::get().to(meta::whoami))
        .route("/api/_ops", web::get().to(meta::operations))
        .service(web::resource("/api/_a2app/tasks").route(web::get().to(tasks::list)).route(web::post().to(tasks::ask)))
        .route("/api/_a2app/tasks/{id}", web::get().to(tasks::view))
        .route("/api/_a2app/tasks/{id}/cancel", web::post().to(tasks::cancel))
        .service(
            web::resource("/api/collections/{entity}/records")
                .route(web::get().to(records::list))
                .route(web::post().to(records::create)),
        )
        .service(
            web::resource("/api/collections/{entity}/records/{id}")
                .route(web::get().to(records::view))
                .route(web::patch().to(records::update))
                .route(web::delete().to(records::delete)),
        );
}
