//! The faces of an app: A2App over PocketBase's record paths, and on its own origin the UI.

mod auth;
mod batch;
mod enter;
mod files;
mod jobs;
mod meta;
mod operations;
mod realtime;
mod records;
mod tasks;
mod ui;

pub use enter::session_cookie;
pub use jobs::JobStreams;
pub(crate) use jobs::{missing as missing_job, request as request_of_job};
pub use realtime::{Realtime, RealtimeLimits};
pub(crate) use tasks::{label, may_see, new_request, only_of};

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use inn_protocol::{Code, Refusal};

use crate::error::{ApiError, Shape};
use crate::incoming::Incoming;

/// `http://<slug>.<apps domain>/…`: the API and the UI.
pub fn on_own_origin(config: &mut ServiceConfig) {
    config.route("/_inn/enter", web::get().to(enter::enter));
    config.route("/_/", web::get().to(auth::page)).route("/_/page.js", web::get().to(auth::script));
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
    let at = |path: &str| web::resource(path.to_owned()).default_service(web::to(wrong_method));
    config
        .service(at("/api/health").route(web::get().to(meta::health)))
        .service(at("/api/_a2app").route(web::get().to(meta::identity)))
        .service(at("/api/_a2app/describe").route(web::get().to(meta::describe)))
        .service(at("/api/_a2app/whoami").route(web::get().to(meta::whoami)))
        .service(at("/api/_ops").route(web::get().to(meta::operations)))
        .service(at("/api/_a2app/tasks").route(web::get().to(tasks::list)).route(web::post().to(tasks::ask)))
        .service(at("/api/_a2app/tasks/{id}").route(web::get().to(tasks::view)))
        .service(at("/api/_a2app/tasks/{id}/cancel").route(web::post().to(tasks::cancel)))
        .service(at("/api/_a2app/tasks/{id}/answer").route(web::post().to(tasks::answer)))
        .service(at("/api/_jobs/{id}").route(web::get().to(jobs::view)))
        .service(at("/api/_jobs/{id}/cancel").route(web::post().to(jobs::cancel)))
        .service(at("/api/realtime").route(web::get().to(realtime::connect)).route(web::post().to(realtime::subscribe)))
        .service(at("/api/batch").route(web::post().to(batch::batch)))
        .service(at("/api/files/token").route(web::post().to(files::take_token)))
        .service(
            at("/api/files/{entity}/{id}/{name}").route(web::get().to(files::serve)).route(web::head().to(files::head)),
        )
        .service(at("/api/collections/{entity}/auth-methods").route(web::get().to(auth::methods)))
        .service(at("/api/collections/{entity}/auth-with-password").route(web::post().to(auth::with_password)))
        .service(at("/api/collections/{entity}/auth-with-oauth2").route(web::post().to(auth::oauth2)))
        .service(at("/api/collections/{entity}/auth-with-otp").route(web::post().to(auth::with_otp)))
        .service(at("/api/collections/{entity}/auth-refresh").route(web::post().to(auth::refresh)))
        .service(at("/api/collections/{entity}/sign-out").route(web::post().to(auth::sign_out)))
        .service(at("/api/collections/{entity}/impersonate/{id}").route(web::post().to(auth::impersonate)))
        .service(at("/api/collections/{entity}/request-otp").route(web::post().to(auth::request_otp)))
        .service(
            at("/api/collections/{entity}/request-password-reset").route(web::post().to(auth::request_password_reset)),
        )
        .service(
            at("/api/collections/{entity}/confirm-password-reset").route(web::post().to(auth::confirm_password_reset)),
        )
        .service(at("/api/collections/{entity}/request-verification").route(web::post().to(auth::request_verification)))
        .service(at("/api/collections/{entity}/confirm-verification").route(web::post().to(auth::confirm_verification)))
        .service(at("/api/collections/{entity}/request-email-change").route(web::post().to(auth::request_email_change)))
        .service(at("/api/collections/{entity}/confirm-email-change").route(web::post().to(auth::confirm_email_change)))
        .service(
            at("/api/collections/{entity}/records")
                .route(web::get().to(records::list))
                .route(web::post().to(records::create)),
        )
        .service(
            at("/api/collections/{entity}/records/{id}")
                .route(web::get().to(records::view))
                .route(web::patch().to(records::update))
                .route(web::delete().to(records::delete)),
        );
}

/// A path of ours with another method. On record paths that is PocketBase's 404, so that its clients are not surprised.
async fn wrong_method(request: HttpRequest, incoming: Incoming) -> Result<HttpResponse, ApiError> {
    if incoming.shape == Shape::Records {
        return Err(incoming.fail(Refusal::not_found()));
    }
    let message =
        format!("{} is not answered here. `GET /api/_a2app/describe` shows the app's surface.", request.method());
    Err(incoming.fail(Refusal::new(Code::MethodNotAllowed, message)))
}
