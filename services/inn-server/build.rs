//! Puts the demo apps of `ops/demo` into the binary: one list of files an app.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Largest file of a demo app, in bytes. What is larger is no part of one.
const LARGEST: u64 = 1 << 20;

fn main() -> io::Result<()> {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../ops/demo").canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut text = String::from("pub(crate) static DEMO_APPS: &[DemoApp] = &[\n");
    for app in sorted(&root)? {
        let is_app = app.is_dir() && (app.join("manifest.json").is_file() || app.join(".agentproto/APP.md").is_file());
        if !is_app {
            continue;
        }
        let mut files = Vec::new();
        walk(&app, &mut files)?;
        writeln!(text, "DemoApp {{ slug: {:?}, files: &[", text_of(app.file_name().unwrap_or_default().as_ref())?)
            .map_err(io::Error::other)?;
        for file in files {
            println!("cargo::rerun-if-changed={}", file.display());
            let name = text_of(file.strip_prefix(&app).map_err(io::Error::other)?)?;
            writeln!(text, "({name:?}, include_bytes!({:?})),", text_of(&file)?).map_err(io::Error::other)?;
        }
        text.push_str("] },\n");
    }
    text.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("demo.rs"), text)
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", dir.display());
    for path in sorted(dir)? {
        if path.is_dir() {
            walk(&path, files)?;
        } else if fs::metadata(&path)?.len() > LARGEST {
            return Err(io::Error::other(format!(
                "{} is too large for a demo app: is it a left-over?",
                path.display()
            )));
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The same order everywhere, so that the binary is the same.
fn sorted(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Source code is UTF-8, so names in it have to be.
fn text_of(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))
}
