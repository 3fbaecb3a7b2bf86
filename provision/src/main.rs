// SPDX-License-Identifier: MIT OR Apache-2.0

//! The first run: begins with what takes longest, the kernel that is built unless the user names another, and compiles the
//! commands meanwhile.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use provision::cmd::Cmd;
use provision::kernel::{self, KernelArgs, Use};
use provision::project::Project;
use provision::ui::Step;
use provision::{packages, parallel, program};

fn main() -> ExitCode {
    match provide() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn provide() -> Result<()> {
    let project = Project::open(KernelArgs::default())?;
    let _kept = project.cache.keep()?;
    packages::install(&project, &packages::to_install()?)?;
    // To unpack it takes the processors, too: whatever ran beside would delay the kernel.
    kernel::fetch_all(&project)?;
    parallel::both(
        || kernel::prepare(&project, Use::Guest),
        || {
            parallel::give_way();
            compile(&project)?;
            run(&project, "agent", "compiling the guest's PID 1")?;
            run(&project, "qemu", "getting QEMU")
        },
    )?;
    Ok(())
}

/// Compiles the commands.
fn compile(project: &Project) -> Result<()> {
    let step = Step::begin("commands", "compiling them");
    let build = project.cargo().args(["build", "--package", "xtask"]);
    build.step(&step, &project.log("commands"))?;
    step.done(&command(project).display().to_string());
    Ok(())
}

/// Has one of them do its part.
fn run(project: &Project, name: &'static str, doing: &str) -> Result<()> {
    let step = Step::begin(name, doing);
    let log = project.log(&format!("first-{name}"));
    Cmd::new(command(project)).arg(name).step(&step, &log)?;
    step.done("");
    Ok(())
}

fn command(project: &Project) -> PathBuf {
    project.target.join("debug").join(program::INSTALLED)
}
