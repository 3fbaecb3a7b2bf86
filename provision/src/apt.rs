// SPDX-License-Identifier: MIT OR Apache-2.0

//! A private apt state in the cache: packages of newer Debian suites, from the
//! mirror that the machine's own apt uses, with apt's own signature checks.
//! Nothing is added to the system's sources and nothing is installed: packages
//! are downloaded and unpacked. It needs apt, not root.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::cache::{self, Cache};
use crate::cmd::{Cmd, on_path};
use crate::distribution::Distribution;
use crate::lock::Lock;
use crate::names;
use crate::project::Project;
use crate::ui::Step;

/// Where Debian keeps its public keys (package `debian-archive-keyring`).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The suites of one state.
struct Suites {
    /// The folder in the cache.
    folder: &'static str,
    /// Where packages are looked for. Priorities are apt's: backports only when asked.
    all: &'static str,
    /// The one of them to ask for.
    newest: &'static str,
}

/// Where programs come from that run on the machine.
const BACKPORTS: Suites = Suites {
    folder: "apt",
    all: "trixie trixie-backports",
    newest: "trixie-backports",
};
/// Where the oldest Rust that we build with comes from.
const TRIXIE: Suites = Suites {
    folder: "apt-trixie",
    all: "trixie",
    newest: "trixie",
};
/// Where what must be as new as the kernel comes from: bindgen, and programs that run in a guest.
const FORKY: Suites = Suites {
    folder: "apt-forky",
    all: "forky",
    newest: "forky",
};

/// What a machine without Debian's packages can do.
const OWN_PARTS: &str = "name your own parts instead: KDIR=/path/to/linux (or KBUILD_OUTPUT=), \
     QEMU=/path/to/qemu-system-x86_64 (10.1 or newer), RUST_LIB_SRC=/path/to/rust/library; \
     bindgen 0.72.1 and libclang 17 or newer must be installed";

/// The private apt state. Its lists are fetched when the first package is asked for.
pub struct Apt {
    suites: Suites,
    dir: PathBuf,
    log: PathBuf,
    /// Held once they are read: apt itself would not wait.
    lists: OnceCell<Lock>,
}

impl Apt {
    /// The state in the project's cache; nothing is run yet.
    pub fn new(project: &Project) -> Self {
        Self::of(project, BACKPORTS)
    }

    /// The same, of Debian 13 without backports.
    pub fn trixie(project: &Project) -> Self {
        Self::of(project, TRIXIE)
    }

    /// The same, of the newest suite.
    pub fn forky(project: &Project) -> Self {
        Self::of(project, FORKY)
    }

    fn of(project: &Project, suites: Suites) -> Self {
        Self {
            dir: project.cache.path(suites.folder),
            log: project.log(suites.folder),
            suites,
            lists: OnceCell::new(),
        }
    }

    /// The Debian versions of `package` on offer (`1.95.0+dfsg1-2~bpo13+1`), newest first.
    ///
    /// # Errors
    ///
    /// When there is no apt, no mirror, no key, or no network.
    pub fn offers(&self, step: &Step, package: &str) -> Result<Vec<String>> {
        self.update(step)?;
        let text = self.run("apt-cache").args(["madison", package]).output()?;
        Ok(offers(&text))
    }

    /// Downloads one package, without what it depends on, and unpacks it into `into`.
    /// Returns its version.
    ///
    /// # Errors
    ///
    /// As [`Apt::offers`], and when the package isn't on offer or the disk is full.
    pub fn unpack(
        &self,
        step: &Step,
        cache: &Cache,
        package: &str,
        version: Option<&str>,
        into: &Path,
    ) -> Result<String> {
        self.update(step)?;
        let downloads = cache.scratch(&format!("deb-{package}"))?;
        let wanted = match version {
            Some(version) => format!("{package}={version}"),
            None => format!("{package}/{}", self.suites.newest),
        };
        step.detail(&format!("downloading {wanted}"));
        self.run("apt-get")
            .args(["download", &wanted])
            .dir(&downloads)
            .step(step, &self.log)?;
        let deb = debs(&downloads)?
            .pop()
            .with_context(|| format!("apt-get download {wanted} left no package"))?;
        step.detail(&format!("unpacking {wanted}"));
        Cmd::new("dpkg-deb")
            .arg("-x")
            .arg(&deb)
            .arg(into)
            .output()?;
        let version = Cmd::new("dpkg-deb")
            .arg("-f")
            .arg(&deb)
            .arg("Version")
            .output()?;
        fs::remove_dir_all(&downloads)?;
        Ok(version.trim().to_owned())
    }

    /// Downloads packages, of the newest suite where it has them, and everything that they
    /// need, as on a machine with nothing installed, and unpacks all of it but `not_needed` into
    /// `into`.
    ///
    /// # Errors
    ///
    /// As [`Apt::unpack`].
    pub fn unpack_whole(
        &self,
        step: &Step,
        cache: &Cache,
        packages: &[&str],
        not_needed: &[&str],
        into: &Path,
    ) -> Result<()> {
        self.update(step)?;
        let first = packages.first().context("no package is named")?;
        let downloads = cache.scratch(&format!("deb-{first}"))?;
        fs::create_dir_all(downloads.join("partial"))?;
        self.run("apt-get")
            .args(["install", "--download-only", "--yes"])
            .args(["--no-install-recommends", "-t", self.suites.newest])
            .args(packages)
            .arg("-o")
            .arg(format!("Dir::Cache::archives={}", downloads.display()))
            .step(step, &self.log)?;
        let debs = debs(&downloads)?;
        if debs.is_empty() {
            bail!(
                "apt-get downloaded nothing for {}; see {}",
                packages.join(", "),
                self.log.display()
            );
        }
        for deb in &debs {
            step.detail(&format!(
                "unpacking {}",
                deb.file_name().unwrap_or_default().to_string_lossy()
            ));
            Cmd::new("dpkg-deb").arg("-x").arg(deb).arg(into).output()?;
        }
        fs::remove_dir_all(&downloads)?;
        not_needed
            .iter()
            .try_for_each(|part| cache::remove_dir(&into.join(part)))
    }

    fn update(&self, step: &Step) -> Result<()> {
        if self.lists.get().is_some() {
            return Ok(());
        }
        let lock = Lock::hold(&self.dir.join("lock"), "Debian's package lists")?;
        step.detail("reading the package lists of Debian's newer suites");
        let distribution = Distribution::here();
        let Some(codename) = distribution.debian.as_ref().filter(|_| on_path("dpkg-deb")) else {
            let name = &distribution.name;
            let mut text = format!(
                "this machine isn't Debian 12 or newer with apt ({name}), and Debian's mirror is \
                 where the kernel source, QEMU and the core library source come from; {OWN_PARTS}"
            );
            let parts = [names::QEMU, names::RUST_SRC];
            if let Some(command) = names::command(&parts, &distribution) {
                text += &format!("\n\nTwo of them may be packages here:\n\n  {command}");
            }
            bail!("{}", distribution.with_container(text));
        };
        if !Path::new(KEYRING).is_file() {
            bail!("{KEYRING} isn't there; install the package debian-archive-keyring");
        }
        // Without release info it names what the sources say, fetched or not.
        let targets = Cmd::new("apt-get")
            .args(["indextargets", "--no-release-info"])
            .args(["--format", "$(RELEASE) $(SITE)"])
            .arg("Created-By: Packages")
            .output()?;
        let mirror = mirror(&targets, codename).with_context(|| {
            format!(
                "the machine's apt names no Debian mirror for `{codename}` (see `apt-get \
                 indextargets`), and newer packages come from that same mirror; add the release \
                 to apt's sources, or {OWN_PARTS}"
            )
        })?;
        for sub in ["lists/partial", "archives/partial", "state"] {
            fs::create_dir_all(self.dir.join(sub))?;
        }
        fs::write(
            self.dir.join("debian.sources"),
            sources(mirror, self.suites.all),
        )?;
        fs::write(self.dir.join("apt.conf"), configuration(&self.dir))?;
        // An empty status: dependencies are resolved as if nothing were installed.
        fs::write(self.dir.join("status"), "")?;
        self.run("apt-get")
            .arg("update")
            // A suite that can't be fetched is an error here, not a warning.
            .args(["--error-on=any"])
            .step(step, &self.log)?;
        self.lists.set(lock).ok();
        Ok(())
    }

    fn run(&self, program: &str) -> Cmd {
        Cmd::new(program)
            .arg("-c")
            .arg(self.dir.join("apt.conf"))
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
    }
}

/// `Targets: Packages` leaves out translations, contents and AppStream data.
/// Old snapshots of a mirror are fine: versions are checked by those who ask.
fn sources(mirror: &str, suites: &str) -> String {
    format!(
        "Types: deb\nURIs: {mirror}\nSuites: {suites}\nComponents: main\nArchitectures: amd64\n\
         Targets: Packages\nCheck-Valid-Until: no\nSigned-By: {KEYRING}\n"
    )
}

/// Read after the machine's own configuration, whose proxies and credentials
/// stay in force while its hooks and pins do not.
fn configuration(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        r#"Dir::Etc::sourcelist "{dir}/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "{dir}/state";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}";
Dir::Cache::archives "{dir}/archives";
Dir::Log "{dir}";
#clear APT::Architectures;
#clear APT::Update;
#clear APT::Default-Release;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
APT::Architecture "amd64";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
"#
    )
}

/// The mirror that serves the machine's release: of the lines `RELEASE SITE` the
/// one whose release is the codename, else a side suite on the same kind of mirror
/// (`-updates`, `-backports`; not `-security`), else a release by its role.
fn mirror<'a>(index_targets: &'a str, codename: &str) -> Option<&'a str> {
    let pairs = || index_targets.lines().filter_map(|l| l.split_once(' '));
    let wanted = [
        codename.to_owned(),
        format!("{codename}-updates"),
        format!("{codename}-backports"),
        "stable".to_owned(),
        "testing".to_owned(),
        "unstable".to_owned(),
        "sid".to_owned(),
    ];
    wanted
        .iter()
        .find_map(|name| pairs().find(|(release, _)| release == name))
        .map(|(_, site)| site.trim())
}

fn offers(madison: &str) -> Vec<String> {
    madison
        .lines()
        .filter_map(|line| line.split('|').nth(1))
        .map(|version| version.trim().to_owned())
        .collect()
}

fn debs(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_of_the_machines_own_release() {
        let targets = "nodistro http://other.example/node\n\
                       bookworm-security http://mirror.example/debian-security\n\
                       bookworm http://mirror.example/debian\n\
                       bookworm-updates http://second.example/debian\n";
        assert_eq!(
            mirror(targets, "bookworm"),
            Some("http://mirror.example/debian")
        );
        assert_eq!(mirror(targets, "trixie"), None);
        let updates = "bookworm-updates http://mirror.example/debian\n";
        assert_eq!(
            mirror(updates, "bookworm"),
            Some("http://mirror.example/debian")
        );
    }

    #[test]
    fn madison_lines_give_the_versions() {
        let text = " rust-src | 1.96.1+dfsg1-2~bpo13+1 | http://m.example/debian trixie-backports/main amd64 Packages\n \
                    rust-src | 1.85.1+dfsg1-1+deb13u1 | http://m.example/debian trixie/main amd64 Packages\n";
        assert_eq!(
            offers(text),
            ["1.96.1+dfsg1-2~bpo13+1", "1.85.1+dfsg1-1+deb13u1"]
        );
        assert!(offers("").is_empty());
    }

    #[test]
    fn packages_are_only_taken_signed_and_nothing_of_the_system_is_written() {
        let sources = sources("http://m.example/debian", "trixie");
        assert!(
            sources.contains("Signed-By: /usr/share/keyrings/"),
            "{sources}"
        );
        assert!(!sources.to_lowercase().contains("trusted"), "{sources}");
        let conf = configuration(Path::new("/c/apt"));
        for line in conf.lines().filter(|l| l.contains('/')) {
            assert!(
                line.contains("\"/c/apt") || line.contains("/dev/null"),
                "outside the cache: {line}"
            );
        }
    }
}
