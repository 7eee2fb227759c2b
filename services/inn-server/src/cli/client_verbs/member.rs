//! `inn member`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{items, text};
use super::secret;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn member ls
  inn member add ann@example.com --role editor --password-file ann.txt
  inn member rm ann@example.com

Removing a member revokes every grant that member gave.")]
pub struct MemberArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: MemberVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum MemberVerb {
    /// Members of the tenant and their roles
    Ls,
    /// Add a member, or change a role
    Add {
        email: String,
        /// viewer reads, editor also writes and runs operations, owner also deploys, grants and manages
        #[arg(long, default_value = "viewer", value_parser = ["viewer", "editor", "owner"])]
        role: String,
        /// File whose first line is the password of somebody new here
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Take a membership away, and every grant with it
    Rm {
        /// Email or id of the member
        member: String,
    },
}

pub(crate) async fn run(args: MemberArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let person = context.person()?;
    match args.verb {
        MemberVerb::Ls => {
            let answer = person.members().await?.json()?;
            let columns = [("email", "/email"), ("role", "/role"), ("since", "/since"), ("id", "/user")];
            context.out.table(&answer, &columns, "The tenant has no members.");
        }
        MemberVerb::Add { email, role, password_file } => {
            let password = password_file.as_deref().map(|file| secret::password(Some(file), "Password")).transpose()?;
            let answer = person.set_member(&email, &role, password.as_deref()).await?.json()?;
            context.out.answer(&answer, |_| format!("{email} is a member: {role}."));
        }
        MemberVerb::Rm { member } => {
            let user = if member.contains('@') {
                let members = person.members().await?.json()?;
                let found = items(&members).iter().find(|one| text(one, "/email").eq_ignore_ascii_case(&member));
                let none =
                    || CliError::local("not_found", format!("{member} is no member here. `inn member ls` lists them."));
                text(found.ok_or_else(none)?, "/user")
            } else {
                member.clone()
            };
            let answer = person.remove_member(&user).await?.json()?;
            context
                .out
                .answer(&answer, |_| format!("{member} is no member any more; the grants {member} gave are revoked."));
        }
    }
    Ok(())
}
