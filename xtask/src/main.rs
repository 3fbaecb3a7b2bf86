// SPDX-License-Identifier: MIT OR Apache-2.0

//! The commands of nobounce. Each step is a module of its own and does the
//! steps that it needs first, so that any of them can be asked for alone.

mod archive;
mod bench;
mod check;
mod clean;
mod compile_fail;
mod demo;
mod devices;
mod doctor;
mod document;
mod failure;
mod fuzz;
mod guest;
mod initramfs;
mod kselftest;
mod lab;
mod library;
mod manual;
mod model;
mod module;
mod msrv;
mod mutate;
mod new_driver;
mod plugin;
mod qemu;
mod run;
mod setup;
mod snapshots;
mod spdx;
mod stamp;
mod test;
mod time_left;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use provision::{
    apt, bindgen, cache, cmd, distribution, hash, kernel, llvm, lock, names, packages, parallel,
    program, project, space, tools, ui, unpacked, version,
};

use crate::kernel::{KernelArgs, Use};
use crate::model::Model;
use crate::project::Project;

/// The exit status for arguments that aren't understood, as clap's.
const USAGE: i32 = 2;

/// Builds, boots, tests and checks nobounce.
///
/// Every command first does what it needs that hasn't been done yet. What is
/// downloaded or takes long to build is kept in ${XDG_CACHE_HOME:-~/.cache}/nobounce
/// for all checkouts; everything else is in target/ (in the cache, too, if this is
/// the installed program). Nothing of the system is
/// changed, except that `setup` (and whatever needs it) installs Debian packages
/// that are missing.
#[derive(Parser)]
#[command(name = "nobounce", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Environment:
  KDIR, KBUILD_OUTPUT  a kernel of your own, as --kdir and --kbuild-output
  QEMU                 the qemu-system-x86_64 to use (10.1 or newer, with igb)
  RUST_LIB_SRC         the `library` folder of Rust's source, for the kernel build
  LIBCLANG_PATH        the folder of the libclang that your own bindgen uses (17 or newer)
  NOBOUNCE_LAB         for exec and shell: a manifest, whose path `guest` prints, instead of making
                       anything
  NOBOUNCE_ACCEL       tcg or kvm [default: kvm where it works]
  XDG_CACHE_HOME       where the cache folder goes (about 5 GB)
  RUST_LOG             what the harness logs, such as `vm=debug`";

#[derive(Subcommand)]
enum Command {
    /// Say what this machine has and lacks, and how to fix it; changes nothing
    Doctor,
    /// Boot, and run the demonstration
    Run {
        /// Write the report as JSON, too
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Make the NICs this model of the 82576
        #[arg(long, default_value = "qemu")]
        model: Model,
    },
    /// Run a program in a guest that has our NICs and this machine's files
    ///
    /// The program sees the file system, the working directory and the environment
    /// that it would see here; what it changes goes to memory, except in --rw
    /// folders. It has the terminal, or the pipes; its exit status is passed on,
    /// signals reach it. Variables named NOBOUNCE_... and a line on standard error
    /// say what the lab has. Other exit statuses: 124 it took longer than --timeout,
    /// 125 the guest failed, or its kernel complained, 126 and 127 it can't be
    /// executed or found, 128 and the signal's number if one ended it.
    Exec(lab::Options),
    /// Run your shell in a guest that has our NICs and this machine's files
    Shell(lab::ShellOptions),
    /// Run your shell, or a program, in a guest of exec or shell that is running
    ///
    /// It ends with the guest, which ends with the program that it was started for.
    Enter(lab::EnterOptions),
    /// List the guests of exec and shell that are running: name, process ID, program
    Ls,
    /// Run the host tests, the end-to-end cases and the kernel's driver selftests
    ///
    /// The cases run on rigb, then on the NICs in harness/nics. JUnit XML goes to a file.
    Test(test::Options),
    /// Write a skeleton network driver on `net`, which builds and loads
    NewDriver(new_driver::Options),
    /// Pack the cases and all that they boot into a file, which runs them elsewhere
    ///
    /// Unpacked, its program `run` takes options of cargo-nextest, such as --partition hash:1/4. It
    /// needs nothing but this file there. Prints the file.
    Archive(archive::Options),
    /// Count instructions and memory traffic per payload byte, by driver and data path
    ///
    /// On the lean kernel.
    Bench(bench::Options),
    /// Measure a part of what `bench` does, and fail when a figure is worse than the committed one
    BenchCheck(bench::CheckOptions),
    /// Run the kernel's own driver selftests in guests, against Documentation/selftests.md
    ///
    /// They are built from the source of the guest's kernel, and run unmodified in a
    /// root file system of Debian's packages.
    /// Each boots a guest with two NICs. Fails when a sub-case doesn't pass that
    /// passed when the table was written.
    Kselftest(kselftest::Options),
    /// Put small faults into the drivers, one at a time, and check that a test catches each
    ///
    /// The list is in xtask/mutations. Cases that are likely to catch a fault run first, the rest
    /// only if they don't; the checkout itself is left alone. It takes up to two hours; results are
    /// kept, so that the next run goes on where one was interrupted.
    Mutate(mutate::Options),
    /// Have our model of the NIC inject faults (lies), by plans generated from seeds
    ///
    /// Each plan is carried out under traffic; then all must work again. Fails if one makes the
    /// kernel complain or hang, the driver do what it must not do, or wrong bytes pass as good; its
    /// seed and the lies that cause it are printed. Documentation/reliability.md has the figures.
    Fuzz(fuzz::Options),
    /// Measure goodput on our model's wires: with a rate, over losses, beside QEMU's model
    ///
    /// Also how much of what is received over a bad wire needs no copy to be contiguous. It takes half an hour;
    /// Documentation/wire.md has the figures.
    Wire(wire::Options),
    /// Check what needs no guest: rustfmt, clippy, rustdoc and its examples, licence headers
    ///
    /// Also that misuse of `net` doesn't compile, that modules have no panics, that each feature builds
    /// alone and all with the oldest Rust, and that the library's crates can be packaged.
    Check,
    /// Build the documentation of the crates
    Doc,
    /// Write man pages and completions for bash, zsh and fish, as `make install` does
    Manual(manual::Options),
    /// Remove what was built of the checkout, and with --cache all that was downloaded and built
    Clean {
        /// Remove the cache folder, too
        #[arg(long)]
        cache: bool,
    },
    /// Install what is missing: Debian packages, bindgen, cargo-nextest
    ///
    /// Debian packages need root or a sudo that asks for no password; otherwise
    /// the list of what to install is printed and nothing is done. bindgen,
    /// cargo-nextest and the core library's source go to the cache, and only
    /// where the machine has none that suits.
    Setup,
    /// Get the kernel source: Debian's linux-source-7.3, unpacked into the cache
    ///
    /// It comes from the mirror that the machine's own apt uses, through a
    /// private apt state with apt's own signature checks; no apt source is added.
    /// Prints the folder.
    Source,
    /// Build the guest's kernel (bzImage and modules)
    ///
    /// Built in the cache, in a folder named by source, configuration and
    /// compilers; an interrupted build goes on where it was. With --kbuild-output,
    /// or a --kdir that has a .config, that kernel is checked instead: its
    /// options, its version, its rustc. Prints the build folder.
    Kernel,
    /// Build rigb.ko, rwire.ko, rtest.ko, ivshmem_mem.ko and copy_engine.ko against that kernel
    ///
    /// Prints the modules' files; the last two are built where the kernel has
    /// peer-to-peer DMA.
    Module,
    /// Find QEMU 10.1 or newer with igb, or unpack Debian's newest into the cache
    Qemu,
    /// Build the counter, a plugin for that QEMU
    Plugin,
    /// Build the guest's PID 1, a static program
    Agent,
    /// Pack the agent, our modules and the kernel's into the guest's initramfs
    Initramfs,
    /// Do all of these steps, and write the manifest target/nobounce/guest.json
    ///
    /// Tests started by hand need it: NOBOUNCE_GUEST=target/nobounce/guest.json
    /// cargo nextest run.
    Guest,
}

fn main() -> ExitCode {
    let parsed = Cli::command().bin_name(program::name()).try_get_matches();
    let matches = parsed.unwrap_or_else(|error| {
        // clap doesn't say which.
        let argument = std::env::args_os().find(|argument| argument.to_str().is_none());
        if let (ErrorKind::InvalidUtf8, Some(argument)) = (error.kind(), argument) {
            eprintln!("error: the argument {argument:?} is not valid UTF-8");
            std::process::exit(USAGE);
        }
        error.exit()
    });
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // What a program of the user's doesn't return.
    let failure = match cli.command {
        Command::Exec(_) | Command::Shell(_) | Command::Enter(_) => ExitCode::from(lab::FAILED),
        _ => ExitCode::FAILURE,
    };
    let logged = std::env::var("RUST_LOG").unwrap_or_default();
    let logged = logged.parse::<Targets>().unwrap_or_else(|error| {
        eprintln!("RUST_LOG={logged} is not understood: {error}");
        Targets::default()
    });
    tracing_subscriber::registry()
        .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr))
        .with(logged)
        .init();
    match run(cli) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("error: {error:#}");
            if disk_is_full(&error) {
                eprintln!("  way out: {}", cmd::disk_full());
            }
            failure
        }
    }
}

/// Whether this program itself could not write; of others `cmd` knows.
fn disk_is_full(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::StorageFull)
}

/// Returns the exit status.
fn run(cli: Cli) -> Result<u8> {
    let mut args = cli.kernel;
    match &cli.command {
        Command::Manual(options) => {
            manual::write(&options.share, Cli::command())?;
            return Ok(0);
        }
        Command::Exec(options) => {
            let images = lab::images(args.for_programs()?, options.model())?;
            return lab::exec(images, options);
        }
        Command::Shell(options) => {
            let images = lab::images(args.for_programs()?, options.model())?;
            return lab::shell(images, options);
        }
        Command::Enter(options) => return lab::enter(options),
        Command::Ls => {
            lab::print_list()?;
            return Ok(0);
        }
        _ => {}
    }
    match &cli.command {
        Command::Kselftest(_) => args = args.for_programs()?,
        Command::Bench(_) => args = kernel::for_figures(args)?,
        _ => {}
    }
    let project = &Project::open(args)?;
    if let Command::Doctor = cli.command {
        doctor::run(project)?;
        return Ok(0);
    }
    if let Command::NewDriver(options) = &cli.command {
        new_driver::run(project, options)?;
        return Ok(0);
    }
    if let Command::Clean { cache } = cli.command {
        clean::run(project, cache)?;
        return Ok(0);
    }
    let lock = project.lock()?;
    match cli.command {
        Command::Setup => setup::run(project)?,
        Command::Source => made(&kernel::fetch(project)?.dir),
        Command::Kernel => made(&kernel(project, Use::Guest)?.build),
        Command::Module => module::build(project, &kernel(project, Use::Module)?)?
            .iter()
            .for_each(|module| made(module)),
        Command::Qemu => made(&qemu::program(&qemu::prepare(project)?)),
        Command::Plugin => {
            let qemu = qemu::prepare(project)?;
            made(&plugin::build(project, &qemu)?);
        }
        Command::Agent => made(&guest::agent(project)?),
        Command::Initramfs => {
            let kernel = kernel(project, Use::Guest)?;
            let modules = module::build(project, &kernel)?;
            made(&guest::initramfs(project, &kernel, &modules)?);
        }
        Command::Guest => {
            guest::prepare_for_cases(project)?;
            made(&guest::manifest_path(project));
        }
        Command::Run { json, model } => run::run(project, lock, json.as_deref(), model)?,
        // Above: they make nothing here.
        Command::Clean { .. }
        | Command::Doctor
        | Command::NewDriver(_)
        | Command::Exec(_)
        | Command::Shell(_)
        | Command::Enter(_)
        | Command::Ls
        | Command::Manual(_) => {}
        Command::Test(options) => test::run(project, lock, &options)?,
        Command::Archive(options) => made(&archive::run(project, &options)?),
        Command::Bench(options) => bench::run(project, lock, &options)?,
        Command::BenchCheck(options) => bench::compare(project, lock, &options)?,
        Command::Kselftest(options) => kselftest::run(project, lock, &options)?,
        Command::Mutate(options) => mutate::run(project, lock, &options)?,
        Command::Fuzz(options) => fuzz::run(project, lock, &options)?,
        Command::Wire(options) => wire::run(project, lock, &options)?,
        Command::Check => check::run(project)?,
        Command::Doc => check::doc(project)?,
    }
    Ok(0)
}

fn kernel(project: &Project, wanted: Use) -> Result<kernel::Kernel> {
    packages::install_missing(project)?;
    kernel::prepare(project, wanted)
}

/// Prints what a command made, alone on standard output, for scripts.
fn made(path: &Path) {
    println!("{}", path.display());
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_full_disk_is_recognised_whatever_was_being_written() {
        let full = fs_err::write("/dev/full", "x").context("can't write it");
        assert!(disk_is_full(&full.unwrap_err()));
        let other = fs_err::write("/no/such/folder", "x").context("can't write it");
        assert!(!disk_is_full(&other.unwrap_err()));
    }
}
