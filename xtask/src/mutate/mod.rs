// SPDX-License-Identifier: MIT OR Apache-2.0

//! `mutate`: small faults are put into the drivers, one at a time, and each must be caught by a
//! test. The list of them is in `xtask/mutations`.

mod list;
mod nextest;
mod results;
mod scratch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::document;
use crate::model::Model;
use crate::project::{Locked, Project};
use crate::ui;

use list::Mutation;
use nextest::Cases;
use results::{Outcome, Results};
use scratch::Scratch;

/// After this no other mutation is started; the next run continues.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

const PAGE: &str = "Documentation/testing.md";

/// What to run and where to write it.
#[derive(Args)]
pub(crate) struct Options {
    /// Write the results as JSON: name, file, caught, by
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Update the table in Documentation/testing.md: all of it, or the rows of those that are run
    #[arg(long, conflicts_with = "likely")]
    document: bool,
    /// Run only the cases that are likely to catch a mutation
    #[arg(long)]
    likely: bool,
    /// Only mutations whose names or files contain one of these
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Runs tests against each mutation until one fails, a line for each. Results are kept, so that a
/// run that was interrupted goes on.
///
/// # Errors
///
/// Those of the preparation, when a test fails without any mutation, and when a mutation cannot be
/// compiled or is not caught.
pub(crate) fn run(project: &Project, lock: Locked, options: &Options) -> Result<()> {
    let begun = Instant::now();
    let list = list::read(&project.root)?;
    let chosen: Vec<_> = list.iter().filter(|m| m.has(&options.words)).collect();
    if chosen.is_empty() {
        bail!("no mutation in xtask/mutations has such a name or file");
    }
    // Before the table makes the tree a changed one.
    let commit = document::commit(project);
    let scratch = Scratch::prepare(project)?;
    let cases = Cases::prepare(project, &scratch)?;
    // From here on the cache is only read.
    drop(lock);
    let results = Results::open(project, &scratch)?;
    for model in [Model::Qemu, Model::Nobounce] {
        baseline(&scratch, &cases, &results, &chosen, model)?;
    }

    let mut outcomes = Vec::new();
    let mut failed = 0;
    for mutation in &chosen {
        let outcome = match results.find(mutation)? {
            Some(outcome) => outcome,
            None if begun.elapsed() > LIMIT => {
                bail!("the time is up; run it again to go on");
            }
            None => match attempt(&scratch, &cases, mutation, options.likely) {
                Ok(outcome) => {
                    if outcome.caught || !options.likely {
                        results.keep(mutation, &outcome)?;
                    }
                    outcome
                }
                Err(error) => {
                    println!("ERROR    {}: {error:#}", mutation.name);
                    failed += 1;
                    continue;
                }
            },
        };
        println!("{}", line(mutation, &outcome));
        failed += u32::from(!outcome.expected(mutation));
        outcomes.push((*mutation, outcome));
        if let Some(path) = &options.json {
            results::write_json(path, &outcomes)?;
        }
    }
    let caught = outcomes.iter().filter(|(_, o)| o.caught).count();
    println!("{caught} of {} mutations are caught", chosen.len());
    if failed != 0 {
        bail!("{failed} of the mutations are not as the list says");
    }
    if options.document {
        let old = document::read(project, PAGE, "mutate")?;
        let table = results::table(&list, &outcomes, &old);
        let older = table.lines().count() - results::HEAD.lines().count() - outcomes.len();
        let older = match older {
            0 => String::new(),
            older => format!(" {older} rows are of earlier ones."),
        };
        let text = format!("Commit {commit}.{older}\n\n{table}");
        document::write(project, PAGE, "mutate", &text)?;
    }
    Ok(())
}

/// Sees to it that the likely cases of `mutations` on a model pass without any of them.
fn baseline(
    scratch: &Scratch,
    cases: &Cases,
    results: &Results,
    mutations: &[&Mutation],
    model: Model,
) -> Result<()> {
    let open = mutations.iter().filter(|m| m.model == model);
    let open = open.filter(|m| !results.has(m));
    let mut likely: Vec<_> = open.flat_map(|m| m.cases.iter().cloned()).collect();
    likely.sort();
    likely.dedup();
    likely.retain(|case| !results.passed(case));
    if likely.is_empty() {
        return Ok(());
    }
    ui::note(&format!(
        "{} cases have to pass without a mutation first",
        likely.len()
    ));
    scratch.build(None)?;
    if let Some(case) = cases.run(&likely, model)? {
        bail!("without any mutation, this fails: {case}");
    }
    likely.iter().try_for_each(|case| results.note_passed(case))
}

/// Runs tests with `mutation` in the drivers until one fails.
fn attempt(
    scratch: &Scratch,
    cases: &Cases,
    mutation: &Mutation,
    only_likely: bool,
) -> Result<Outcome> {
    scratch.write_sources(Some(mutation))?;
    if let Some(package) = mutation.host_package() {
        if let Some(test) = cases.run_on_host(package)? {
            return Ok(Outcome::caught(test));
        }
    }
    scratch
        .build(Some(mutation))
        .context("it cannot be compiled")?;
    if !mutation.cases.is_empty() {
        if let Some(case) = cases.run(&mutation.cases, mutation.model)? {
            return Ok(Outcome::caught(case));
        }
    }
    // It is known that no case can see it.
    if mutation.equivalent.is_some() || only_likely {
        return Ok(Outcome::survived());
    }
    let rest = cases.run_all_but(&mutation.cases)?;
    Ok(rest.map_or_else(Outcome::survived, Outcome::caught))
}

fn line(mutation: &Mutation, outcome: &Outcome) -> String {
    let name = &mutation.name;
    match (&outcome.by, &mutation.equivalent) {
        (Some(by), _) => format!("caught   {name}: {by}"),
        (None, Some(why)) => format!("the same {name}: {why}"),
        (None, None) => format!("SURVIVED {name} ({})", mutation.file),
    }
}
