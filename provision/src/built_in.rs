// SPDX-License-Identifier: MIT OR Apache-2.0

//! Which checkout this was built in.

/// The root of it. `.cargo/config.toml` sets the variable: where a checkout was moved or copied with what was built
/// in it, cargo builds anew for that, as it doesn't for `CARGO_MANIFEST_DIR`.
pub(crate) const CHECKOUT: &str = match option_env!("NOBOUNCE_CHECKOUT") {
    Some(root) => root,
    // cargo was run in a folder outside of it.
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/.."),
};

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// Builds what is in a folder, and runs it.
    fn run(folder: &Path) -> String {
        let output = Command::new("cargo")
            .args(["run", "--quiet"])
            .current_dir(folder)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("NOBOUNCE_CHECKOUT")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        text.trim_end().trim_end_matches('/').to_owned()
    }

    /// The files below a folder, but what was built.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                sources(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn no_other_source_names_a_folder_when_it_is_built() {
        let root = crate::project::root().unwrap();
        let mut files = Vec::new();
        for folder in ["harness", "library", "provision", "xtask"] {
            sources(&root.join(folder), &mut files);
        }
        assert!(files.len() > 100, "{files:?}");
        // In two parts, as this is a source, too.
        let word = concat!("env!(\"CARGO", "_MANIFEST_DIR\")");
        files.retain(|file| fs::read_to_string(file).unwrap().contains(word));
        assert_eq!(files, [root.join("provision/src/built_in.rs")]);
    }

    #[test]
    fn a_copy_of_a_checkout_with_what_was_built_in_it_is_built_anew() {
        let tmp = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| tmp.path().join(name));
        fs::create_dir_all(old.join(".cargo")).unwrap();
        let manifest = "[package]\nname = \"it\"\nedition = \"2024\"\n[[bin]]\nname = \"it\"\npath = \"it.rs\"\n";
        let program = concat!(
            include_str!("built_in.rs"),
            "fn main() { println!(\"{CHECKOUT}\"); }\n"
        );
        for (name, text) in [
            ("Cargo.toml", manifest),
            ("it.rs", program),
            (
                ".cargo/config.toml",
                include_str!("../../.cargo/config.toml"),
            ),
        ] {
            fs::write(old.join(name), text).unwrap();
        }
        assert_eq!(run(&old), old.to_string_lossy());
        let copied = Command::new("cp").arg("-a").args([&old, &new]).status();
        assert!(copied.unwrap().success());
        assert_eq!(run(&new), new.to_string_lossy());
    }
}
