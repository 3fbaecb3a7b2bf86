// SPDX-License-Identifier: MIT OR Apache-2.0

//! The cases on another NIC or driver than rigb: what it lacks is skipped, with the reason.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cases::{Driver, Nic};

use super::skipped::{Skipped, cases};
use super::store;
use super::threads::{THREADS, threads};
use crate::cmd::Cmd;
use crate::failure;
use crate::guest;
use crate::lock;
use crate::project::Project;
use crate::ui;

/// The cases that any NIC may pass: not those about rigb, about the other drivers of the tree, and about
/// the harness.
const CASES: &str = "kind(test) - binary(rigb) - binary(rtest) - binary(rwire) - binary(snapshots)";
/// Those, and those about rigb.
const CASES_OF_RIGB: &str = "kind(test) - binary(rtest) - binary(rwire) - binary(snapshots)";
/// All of those.
pub(super) const ALL: &str = "all()";

/// The nextest profile of `.config/nextest.toml`.
const PROFILE: &str = "nic";

/// The cases of rigb that `make test` runs on our model, beside QEMU's: those that QEMU's can't pass, the
/// way of payload, and those in which the datasheet is read more strictly than there (registers, splits,
/// checksums, segments). Documentation/models.md has what each takes.
const ON_OUR_MODEL: &str =
    "binary(steering) + binary(link) + binary(registers) + binary(hostile) + binary(iommu)
    + binary(devmem_rx) + binary(devmem_tx) + binary(zcrx) + binary(rss)
    + binary(rigb) + binary(checksums) + binary(header_split) + binary(offloads)
    + binary(teardown) & test(/^receiving::/)";

/// Descriptions of NICs whose cases are part of `make test`, and which of them.
pub(super) const COMMITTED: [(&str, &str); 6] = [
    ("harness/nics/igb.toml", ALL),
    ("harness/nics/e1000e.toml", ALL),
    ("harness/nics/virtio-net.toml", ALL),
    ("harness/nics/rwire.toml", ALL),
    ("harness/nics/igb-model.toml", ALL),
    ("harness/nics/rigb-model.toml", ON_OUR_MODEL),
];

/// A NIC, and the guest that it is tested in.
pub(super) struct Prepared {
    file: PathBuf,
    nic: Nic,
    manifest: PathBuf,
    out: PathBuf,
    cases: &'static str,
    /// No other run makes anything in `out` meanwhile.
    _lock: File,
}

/// Builds what a description names, and packs a guest's initramfs with it, for these cases.
///
/// # Errors
///
/// When the description is wrong, a module is missing or can't be built, the guest can't be
/// prepared, or another run is at it.
pub(super) fn prepare(project: &Project, file: &Path, cases: &'static str) -> Result<Prepared> {
    let nic = Nic::read(file).map_err(failure::of_case)?;
    let out = project.out("nics").join(&nic.name);
    fs::create_dir_all(&out).with_context(|| format!("can't create {}", out.display()))?;
    // To wait would keep others waiting, as we have the lock of the target folder.
    let Some(_lock) = lock::try_folder(&out)? else {
        bail!(
            "another run is testing {} in {}: wait until it has ended, or give one of them another `name`",
            nic.name,
            out.display()
        );
    };
    let manifest = guest::prepare_nic(project, &nic, &out)?;
    Ok(Prepared {
        file: fs::canonicalize(file)?,
        nic,
        manifest,
        out,
        cases,
        _lock,
    })
}

impl Prepared {
    /// What reports call it.
    pub(super) fn name(&self) -> &str {
        &self.nic.name
    }

    /// Where nextest keeps its reports of this NIC.
    fn reports(&self) -> PathBuf {
        self.out.join("nextest")
    }

    /// Where JUnit XML ends up.
    fn junit(&self, project: &Project) -> PathBuf {
        let name = format!("{}.xml", self.nic.name);
        store::junit(project, PROFILE).with_file_name(name)
    }

    /// What has nextest run the cases on the NIC, or those that `filters` choose.
    ///
    /// # Errors
    ///
    /// When a file can't be read, written or removed.
    pub(super) fn command(
        &self,
        project: &Project,
        nextest: &Path,
        filters: &[String],
    ) -> Result<(Skipped, Cmd)> {
        let any = match self.nic.driver() == Driver::Rigb.name() {
            true => CASES_OF_RIGB,
            false => CASES,
        };
        let (set, rest) = within(&format!("({any}) & ({})", self.cases), filters);
        let nextest = store::run_in(project, nextest, PROFILE, &self.out, &self.reports())?;
        let command = nextest
            .env(THREADS, threads())
            .args(["-p", "cases", "-E", &set])
            .args(rest)
            .env(vm::ENV, &self.manifest)
            .env(cases::NIC_ENV, &self.file);
        Skipped::of(command, &self.out)
    }

    /// Says what became of the cases; returns how many ran.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written.
    pub(super) fn report(&self, project: &Project, skipped: &Skipped) -> Result<usize> {
        let (written, junit) = (
            store::junit_in(&self.reports(), PROFILE),
            self.junit(project),
        );
        if let Some(folder) = junit.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&written, &junit)
            .with_context(|| format!("cargo-nextest left no {}", written.display()))?;
        let counts = skipped.report(&junit)?;
        let ran = counts.passed + counts.failed;
        ui::note(&format!(
            "{}: ran {}, skipped {}",
            self.name(),
            cases(ran),
            cases(counts.skipped)
        ));
        Ok(ran)
    }
}

/// A set of tests that is also in one of the user's, and the user's other words: nextest runs what any
/// of the sets has that it is given.
fn within(set: &str, words: &[String]) -> (String, Vec<String>) {
    let (mut users, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-E" | "--filterset" | "--filter-expr" => users.extend(words.next().cloned()),
            _ => rest.push(word.clone()),
        }
    }
    match users.is_empty() {
        true => (set.to_owned(), rest),
        false => (format!("{set} & (({}))", users.join(") + (")), rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_the_users_is_within_the_cases() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (set, rest) = within("all()", &words("-E test(a) --retries 0 -E test(b)"));
        assert_eq!(set, "all() & ((test(a)) + (test(b)))");
        assert_eq!(rest, words("--retries 0"));
        let (set, rest) = within("all()", &words("name"));
        assert_eq!((set.as_str(), rest), ("all()", words("name")));
    }
}
