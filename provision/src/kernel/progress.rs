// SPDX-License-Identifier: MIT OR Apache-2.0

//! What Kbuild prints while it builds: `  CC [M]  drivers/net/netdevsim/bus.o`.

/// The object that a line of make's output says is being made, as
/// `CC drivers/net/netdevsim/bus.o`; nothing for any other line.
pub(super) fn object(line: &str) -> Option<String> {
    let rest = line.strip_prefix("  ")?;
    let (action, rest) = rest.split_once(' ')?;
    let is_action = action.len() >= 2
        && action
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !is_action {
        return None;
    }
    // `[M]` for modules; rustc lines carry `L`, `P` or `T` for library, proc-macro, test.
    let target = rest
        .split_whitespace()
        .rfind(|word| !word.starts_with('[') && word.len() > 1)?;
    Some(format!("{action} {target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kbuild_lines_are_objects() {
        for (line, shown) in [
            ("  CC      init/main.o", "CC init/main.o"),
            (
                "  CC [M]  drivers/net/netdevsim/bus.o",
                "CC drivers/net/netdevsim/bus.o",
            ),
            ("  RUSTC L rust/core.o", "RUSTC rust/core.o"),
            ("  RUSTC P rust/libmacros.so", "RUSTC rust/libmacros.so"),
            (
                "  RUSTC [M] drivers/rigb/rigb.o",
                "RUSTC drivers/rigb/rigb.o",
            ),
            ("  AR      built-in.a", "AR built-in.a"),
        ] {
            assert_eq!(object(line).as_deref(), Some(shown), "{line}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for line in [
            "make[1]: Entering directory '/x'",
            "warning: unused variable",
            "    |  CC x",
            "",
            "  A b",
            "Kernel: arch/x86/boot/bzImage is ready  (#1)",
        ] {
            assert_eq!(object(line), None, "{line}");
        }
    }
}
