//! `inn tenant`

use clap::{Args, Subcommand};

use super::context::{Common, Context};
use super::error::CliResult;
use super::out::text;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn tenant ls
  inn tenant create garden --name \"Garden club\"
  inn tenant switch garden")]
pub struct TenantArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: TenantVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum TenantVerb {
    /// Tenants you are a member of
    Ls,
    /// Create a tenant and own it
    Create {
        /// Short name: lower-case letters, digits and hyphens
        slug: String,
        /// Name for people; without it the short one
        #[arg(long)]
        name: Option<String>,
    },
    /// Work in another tenant from here on
    Switch {
        /// Short name of the tenant
        slug: String,
    },
}

pub(crate) async fn run(args: TenantArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let person = context.person()?;
    match args.verb {
        TenantVerb::Ls => {
            let answer = person.tenants().await?.json()?;
            let columns = [("slug", "/slug"), ("name", "/name"), ("role", "/role"), ("id", "/id")];
            context.out.table(&answer, &columns, "You are a member of no tenant.");
        }
        TenantVerb::Create { slug, name } => {
            let answer = person.create_tenant(&slug, name.as_deref().unwrap_or(&slug)).await?.json()?;
            context.out.answer(&answer, |tenant| {
                format!("Created {}. `inn tenant switch {slug}` works in it.", text(tenant, "/slug"))
            });
        }
        TenantVerb::Switch { slug } => {
            let answer = person.switch(&slug).await?.json()?;
            context.out.answer(&answer, |answer| {
                format!("Working in {} as {}.", text(answer, "/session/tenant/slug"), text(answer, "/session/role"))
            });
        }
    }
    Ok(())
}
