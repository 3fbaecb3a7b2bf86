// SPDX-License-Identifier: MIT OR Apache-2.0

//! The cases on another NIC or driver than rigb: what it lacks is skipped, with the reason.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cases::{Driver, Nic};
use fs_err::{self as fs, File};

use super::left_out;
use super::skipped::{Counts, Skipped, cases};
use super::store::{self, Verb};
use super::threads::{THREADS, threads};
use crate::cmd::Cmd;
use crate::failure;
use crate::guest;
use crate::lock;
use crate::project::Project;
use crate::time_left;
use crate::ui;

/// The cases that any NIC may pass: not those about rigb, about the other drivers of the tree, about an
/// engine without a driver, and about the harness.
const CASES: &str = "kind(test) - binary(rigb) - binary(rtest) - binary(rwire) - binary(engine) - binary(snapshots)";
/// Those, and those about rigb.
const CASES_OF_RIGB: &str =
    "kind(test) - binary(rtest) - binary(rwire) - binary(engine) - binary(snapshots)";

/// The nextest profile of `.config/nextest.toml`.
const PROFILE: &str = "nic";

/// The cases of rigb that `make test` runs on our model, beside QEMU's: those that QEMU's can't pass, the
/// way of payload, and those in which the datasheet is read more strictly than there (registers, splits,
/// checksums, segments); not those that ask for our model in any run. Documentation/models.md has what each
/// takes.
const ON_OUR_MODEL: &str =
    "binary(steering) + binary(link) + binary(hostile) + binary(iommu)
    + binary(devmem_rx) + binary(devmem_tx) + binary(zcrx) + binary(rss)
    + (binary(rigb) - test(/^signals::/)) + binary(checksums) + binary(header_split) + binary(offloads)
    + binary(teardown) & test(/^receiving::/)";

/// Which cases run on a NIC.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// nextest's set.
    cases: &'static str,
    /// What they may take, and what ends the run: with fewer left they are skipped.
    minutes: i64,
}

/// All of them.
pub(crate) const ALL: Wanted = Wanted {
    cases: "all()",
    minutes: 4,
};

/// Descriptions of NICs whose cases are part of `make test`, and which of them.
pub(super) const COMMITTED: [(&str, Wanted); 6] = [
    (
        "harness/nics/rigb-model.toml",
        Wanted {
            cases: ON_OUR_MODEL,
            minutes: 20,
        },
    ),
    ("harness/nics/igb-model.toml", ALL),
    ("harness/nics/igb.toml", ALL),
    ("harness/nics/e1000e.toml", ALL),
    ("harness/nics/virtio-net.toml", ALL),
    ("harness/nics/rwire.toml", ALL),
];

/// A NIC, and the guest that it is tested in.
pub(crate) struct Prepared {
    /// Its description.
    pub(crate) file: PathBuf,
    nic: Nic,
    /// What reports call it: with the kernel's name, if it is one of several.
    name: String,
    /// What its guest is made of.
    pub(crate) manifest: PathBuf,
    out: PathBuf,
    wanted: Wanted,
    /// No other run makes anything in `out` meanwhile.
    _lock: File,
}

/// Builds what a description names, and packs a guest's initramfs with it, for these cases.
///
/// # Errors
///
/// When the description is wrong, a module is missing or can't be built, the guest can't be
/// prepared, or another run is at it.
pub(crate) fn prepare(project: &Project, file: &Path, wanted: Wanted) -> Result<Prepared> {
    let nic = Nic::read(file).map_err(failure::of_case)?;
    let out = project.out("nics").join(&nic.name);
    fs::create_dir_all(&out)?;
    // To wait would keep others waiting, as we have the lock of the target folder.
    let Some(_lock) = lock::try_folder(&out)? else {
        bail!(
            "another run is testing {} in {}: wait until it has ended, or give one of them another `name`",
            nic.name,
            out.display()
        );
    };
    let manifest = guest::prepare_nic(project, &nic, &out)?;
    let name = match &project.kernel.of_several {
        Some(kernel) => format!("{}-{}", nic.name, kernel.name),
        None => nic.name.clone(),
    };
    Ok(Prepared {
        file: fs::canonicalize(file)?,
        nic,
        name,
        manifest,
        out,
        wanted,
        _lock,
    })
}

impl Prepared {
    /// What reports call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where nextest keeps its reports of this NIC.
    fn reports(&self) -> PathBuf {
        self.out.join("nextest")
    }

    /// Where JUnit XML ends up.
    fn junit(&self, project: &Project) -> PathBuf {
        store::junit(project, PROFILE).with_file_name(format!("{}.xml", self.name))
    }

    /// What has nextest run or list the cases on the NIC, or those that `filters` choose.
    fn nextest(
        &self,
        project: &Project,
        nextest: &Path,
        verb: Verb,
        filters: &[String],
    ) -> Result<Cmd> {
        let text = self.configuration(project, &self.reports())?;
        let nextest = store::nextest_in(project, nextest, verb, PROFILE, &self.out, &text)?;
        Ok(nextest.args(["-p", "cases"]).args(filters))
    }

    /// nextest's configuration with the NIC's cases, and reports in a folder.
    ///
    /// # Errors
    ///
    /// When ours can't be read.
    pub(crate) fn configuration(&self, project: &Project, reports: &Path) -> Result<String> {
        let any = match self.nic.driver() == Driver::Rigb.name() {
            true => CASES_OF_RIGB,
            false => CASES,
        };
        let set = format!("({any}) & ({})", self.wanted.cases);
        store::configuration(project, reports, Some(&set))
    }

    /// What has nextest run them.
    ///
    /// # Errors
    ///
    /// When a file can't be read, written or removed.
    pub(super) fn run(
        &self,
        project: &Project,
        nextest: &Path,
        filters: &[String],
    ) -> Result<(Skipped, Cmd)> {
        store::forget(&store::junit_in(&self.reports(), PROFILE))?;
        let command = self
            .nextest(project, nextest, Verb::Run, filters)?
            .env(THREADS, threads())
            .env(vm::ENV, &self.manifest)
            .env(cases::NIC_ENV, &self.file);
        Skipped::of(command, &self.out)
    }

    /// Says that they are skipped, if they are too many for the minutes that are left.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written.
    pub(super) fn is_left_out(
        &self,
        project: &Project,
        nextest: &Path,
        filters: &[String],
        left: i64,
    ) -> Result<bool> {
        let Some(reason) = time_left::too_little(self.wanted.minutes, left) else {
            return Ok(false);
        };
        ui::note(&format!(
            "the cases on {} are skipped: {reason}",
            self.name()
        ));
        let list = self.nextest(project, nextest, Verb::List, filters)?;
        left_out::report(list, &self.junit(project), &reason)?;
        Ok(true)
    }

    /// Says what became of the cases.
    ///
    /// # Errors
    ///
    /// When a file can't be read or written.
    pub(super) fn report(&self, project: &Project, skipped: &Skipped) -> Result<Counts> {
        let (written, junit) = (
            store::junit_in(&self.reports(), PROFILE),
            self.junit(project),
        );
        if let Some(folder) = junit.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&written, &junit).context("cargo-nextest left no report")?;
        let counts = skipped.report(&junit)?;
        ui::note(&format!(
            "{}: ran {}, skipped {}",
            self.name(),
            cases(counts.ran()),
            cases(counts.skipped)
        ));
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_cases_run_on_each_nic_that_is_described() {
        let folder = "harness/nics";
        let described = fs::read_dir(crate::project::root().unwrap().join(folder)).unwrap();
        let described: BTreeSet<_> = described
            .map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        // The main run is on that.
        let main = format!("{folder}/rigb.toml");
        let run = COMMITTED.iter().map(|&(file, _)| file.to_owned());
        assert_eq!(run.chain([main]).collect::<BTreeSet<_>>(), described);
    }
}
