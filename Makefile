# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The commands that a person types; `cargo xtask --help` has all of them.

# A kernel of your own; see `make help`.
KDIR ?=
KBUILD_OUTPUT ?=

# Where `make install` puts the commands nobounce and devmem-tcp; no root is needed.
PREFIX ?= $(HOME)/.local

# kbuild is told these in its own way, as absolute paths.
MAKEOVERRIDES := $(filter-out KDIR=% KBUILD_OUTPUT=%,$(MAKEOVERRIDES))

have-cargo = @command -v cargo >/dev/null || { \
	echo 'cargo is missing: install Rust 1.85 or newer (rustup, or the packages' >&2; \
	echo 'cargo and rustc of a suite that has it), and see that it is on PATH' >&2; \
	exit 1; }

# The first run begins with the kernel while the commands are still being compiled.
first = $(if $(KDIR)$(KBUILD_OUTPUT),cargo build --package xtask,cargo run --package provision)

xtask = $(have-cargo); \
	[ -x target/debug/nobounce ] || { echo '=> building the commands first' >&2; $(first) || exit; }; \
	env -u KDIR -u KBUILD_OUTPUT $(if $(KDIR),KDIR='$(abspath $(KDIR))') \
	$(if $(KBUILD_OUTPUT),KBUILD_OUTPUT='$(abspath $(KBUILD_OUTPUT))') cargo xtask

.PHONY: help install uninstall run test test-debug test-debug-part kselftest bench bench-check module check doc clean

help:
	@echo 'make install  put the commands nobounce and devmem-tcp, their man pages, completions'
	@echo '              and header into PREFIX=$(PREFIX) (make uninstall removes them)'
	@echo 'make run      set up, build, boot a guest and run the demonstration'
	@echo "make test     run the host tests, the end-to-end cases and the kernel's driver selftests"
	@echo 'make test-debug  run the end-to-end cases on a debug kernel: KASAN, lockdep, kmemleak …'
	@echo 'make test-debug-part  run a part of them: what .ci/run does on every change'
	@echo "make kselftest  run the kernel's own driver selftests on rigb, in guests"
	@echo 'make bench    measure what the processor does for a byte, next to the C driver'
	@echo '              (bench-check: fail when a committed figure got worse)'
	@echo 'make module   build rigb.ko and the other modules; with KDIR= or KBUILD_OUTPUT='
	@echo '              by plain make, with nothing but that built tree, rustc and bindgen'
	@echo 'make check    rustfmt, clippy, rustdoc and its examples, licence headers, what must not compile'
	@echo 'make doc      build the documentation of the crates'
	@echo 'make clean    remove what was built (cargo xtask clean --cache: downloads, too)'
	@echo
	@echo 'KDIR=/path/to/linux       your own kernel: a source tree is built in the cache,'
	@echo '                          a tree with a .config is used as it is'
	@echo 'KBUILD_OUTPUT=/path       the output folder (O=) of a kernel that you built'
	@echo
	@echo 'cargo xtask --help        every step, each usable alone'

doc clean: first = cargo build --package xtask

run kselftest bench check doc clean:
	$(xtask) $@

# With MINUTES_LEFT=, what that is too little time for is skipped: `test --help`, `bench-check --help`.
left = $(if $(MINUTES_LEFT),--minutes-left $(MINUTES_LEFT))

test bench-check:
	$(xtask) $@ $(left)

test-debug:
	$(xtask) test --debug

test-debug-part:
	$(xtask) test --debug --part $(left)

install:
	$(have-cargo)
	cargo build --package xtask
	cargo build --release --package devmem-tcp-cli
	install -D target/debug/nobounce '$(DESTDIR)$(PREFIX)/bin/nobounce'
	install -D target/release/devmem-tcp '$(DESTDIR)$(PREFIX)/bin/devmem-tcp'
	install -D -m 644 harness/marker/include/nobounce.h '$(DESTDIR)$(PREFIX)/include/nobounce.h'
	target/debug/nobounce manual '$(DESTDIR)$(PREFIX)/share'
	target/release/devmem-tcp manual '$(DESTDIR)$(PREFIX)/share'
	@case ":$$PATH:" in *:'$(PREFIX)/bin':*) ;; *) \
		echo 'nobounce and devmem-tcp are in $(PREFIX)/bin, which is not on your PATH' >&2 ;; esac

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)'/include/nobounce.h
	for command in nobounce devmem-tcp; do rm -f \
		'$(DESTDIR)$(PREFIX)'/bin/$$command \
		'$(DESTDIR)$(PREFIX)'/share/man/man1/$$command.1 \
		'$(DESTDIR)$(PREFIX)'/share/man/man1/$$command-*.1 \
		'$(DESTDIR)$(PREFIX)'/share/bash-completion/completions/$$command \
		'$(DESTDIR)$(PREFIX)'/share/zsh/site-functions/_$$command \
		'$(DESTDIR)$(PREFIX)'/share/fish/vendor_completions.d/$$command.fish; done

ifeq ($(KDIR)$(KBUILD_OUTPUT),)
module:
	$(xtask) $@
else
# The same as `make -C <kernel> M=$PWD MO=<folder> modules` in any other module.
module: kernel := $(abspath $(or $(KBUILD_OUTPUT),$(KDIR)))
module: out := $(CURDIR)/target/module
module:
	@[ -f '$(kernel)/.config' ] || { \
		echo '$(kernel) has no .config: it must be a kernel tree, or an' >&2; \
		echo 'output folder, that is configured and built (make bzImage modules)' >&2; \
		exit 1; }
	@for option in RUST MODULES NET_DEVMEM; do \
		grep -q "^CONFIG_$$option=y" '$(kernel)/.config' || { \
			echo "the kernel in $(kernel) lacks CONFIG_$$option=y" >&2; \
			exit 1; }; \
	done
	@[ -f '$(kernel)/Module.symvers' ] || { \
		echo 'the kernel in $(kernel) is configured but not built:' >&2; \
		echo 'run `make bzImage modules` there' >&2; \
		exit 1; }
	@command -v $(or $(BINDGEN),bindgen) >/dev/null || { \
		echo 'bindgen is missing: cargo install --locked bindgen-cli, and see that' >&2; \
		echo 'it is on PATH' >&2; \
		exit 1; }
	@here=$$($(or $(RUSTC),rustc) --version) || { \
		echo 'rustc is missing: it must be the one that the kernel was built with' >&2; \
		exit 1; }; \
	built=$$(sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"$$/\1/p' '$(kernel)/.config'); \
	[ "$$built" = "$$here" ] || { \
		echo "the kernel in $(kernel) was built with \`$$built\`," >&2; \
		echo "and rustc here is \`$$here\`: take that one (rustup" >&2; \
		echo 'override set), or build the kernel anew with this one' >&2; \
		exit 1; }
	@mkdir -p $(out)
	+env -u KDIR -u KBUILD_OUTPUT $(MAKE) -C $(kernel) M=$(CURDIR) MO=$(out) modules
endif
