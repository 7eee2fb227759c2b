//! The verbs that talk to a platform: what people, agents and scripts use.

mod agent;
mod app;
mod audit;
mod bundle;
mod context;
mod data;
mod demo;
mod error;
mod files;
mod grant;
mod job;
mod member;
mod out;
mod profile;
mod request;
mod run;
mod secret;
mod session;
mod tenant;

use std::process::ExitCode;

use clap::Subcommand;

use error::{CliError, CliResult};

/// Everything but running a platform.
#[derive(Debug, Clone, Subcommand)]
pub enum ClientVerb {
    /// Sign in to a platform
    Login(Box<session::Login>),
    /// Sign out and forget the session
    Logout(Box<session::Logout>),
    /// Who this machine is signed in as
    Whoami(Box<session::Whoami>),
    /// Tenants: list, create, work in another one
    Tenant(Box<tenant::TenantArgs>),
    /// Members of the tenant: list, add, remove
    Member(Box<member::MemberArgs>),
    /// Make a bundle of an app's folder
    Pack(Box<bundle::Pack>),
    /// Unpack a bundle into a new folder
    Unpack(Box<bundle::Unpack>),
    /// Say what is wrong with a bundle or a folder, without a platform
    Validate(Box<bundle::Validate>),
    /// Deploy a bundle or a folder
    Deploy(Box<app::Deploy>),
    /// Installed apps: list, show, releases, rollback, remove
    App(Box<app::AppArgs>),
    /// Agents: keys, registration, tokens, signed calls, work
    Agent(Box<agent::AgentArgs>),
    /// Grants: ask, decide, revoke, explain
    Grant(Box<grant::GrantArgs>),
    /// Read and write an app's records
    Data(Box<data::DataArgs>),
    /// Run an operation of an app
    Run(Box<run::Run>),
    /// Jobs: runs of long operations
    Job(Box<job::JobArgs>),
    /// Requests to agents: the queue
    Request(Box<request::RequestArgs>),
    /// The register: every call, and the proof that none is missing
    Audit(Box<audit::AuditArgs>),
    /// Show the receipt of a call
    Receipt(Box<audit::ReceiptArgs>),
    /// Play the whole main job against a running platform
    Demo(Box<demo::Demo>),
}

/// Runs a verb to its end. Data goes to standard output, talk to standard error; the code is 0 for done, 1 for refused,
/// 2 for wrong usage, 3 for a platform that cannot be reached.
pub fn run(verb: &ClientVerb) -> ExitCode {
    let json = wants_json(verb);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return CliError::io("this process cannot start its threads", &error).report(json),
    };
    let ended = runtime.block_on(dispatch(verb.clone()));
    // A thread that still waits for a terminal or a file must not keep the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}

fn wants_json(verb: &ClientVerb) -> bool {
    match verb {
        ClientVerb::Login(args) => args.common.json,
        ClientVerb::Logout(args) => args.common.json,
        ClientVerb::Whoami(args) => args.common.json,
        ClientVerb::Tenant(args) => args.common.json,
        ClientVerb::Member(args) => args.common.json,
        ClientVerb::Pack(args) => args.json,
        ClientVerb::Unpack(args) => args.json,
        ClientVerb::Validate(args) => args.json,
        ClientVerb::Deploy(args) => args.common.json,
        ClientVerb::App(args) => args.common.json,
        ClientVerb::Agent(args) => args.common.json,
        ClientVerb::Grant(args) => args.common.json,
        ClientVerb::Data(args) => args.json(),
        ClientVerb::Run(args) => args.common.json,
        ClientVerb::Job(args) => args.common.json,
        ClientVerb::Request(args) => args.common.json,
        ClientVerb::Audit(args) => args.common.json,
        ClientVerb::Receipt(args) => args.common.json,
        ClientVerb::Demo(args) => args.common.json,
    }
}

async fn dispatch(verb: ClientVerb) -> CliResult<()> {
    match verb {
        ClientVerb::Login(args) => Box::pin(session::login(*args)).await,
        ClientVerb::Logout(args) => Box::pin(session::logout(*args)).await,
        ClientVerb::Whoami(args) => Box::pin(session::whoami(*args)).await,
        ClientVerb::Tenant(args) => Box::pin(tenant::run(*args)).await,
        ClientVerb::Member(args) => Box::pin(member::run(*args)).await,
        ClientVerb::Pack(args) => bundle::pack(&args),
        ClientVerb::Unpack(args) => bundle::unpack(&args),
        ClientVerb::Validate(args) => bundle::validate(&args),
        ClientVerb::Deploy(args) => Box::pin(app::deploy(*args)).await,
        ClientVerb::App(args) => Box::pin(app::run(*args)).await,
        ClientVerb::Agent(args) => Box::pin(agent::run(*args)).await,
        ClientVerb::Grant(args) => Box::pin(grant::run(*args)).await,
        ClientVerb::Data(args) => Box::pin(data::run(*args)).await,
        ClientVerb::Run(args) => Box::pin(run::run(*args)).await,
        ClientVerb::Job(args) => Box::pin(job::run(*args)).await,
        ClientVerb::Request(args) => Box::pin(request::run(*args)).await,
        ClientVerb::Audit(args) => Box::pin(audit::run(*args)).await,
        ClientVerb::Receipt(args) => Box::pin(audit::receipt(*args)).await,
        ClientVerb::Demo(args) => Box::pin(demo::run(*args)).await,
    }
}

#[cfg(test)]
mod tests;
