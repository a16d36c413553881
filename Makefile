# Two commands: `make tour` shows what Loadline does, `make test` checks a change.
# What they need is cargo and a C compiler; where one is missing they say the line that brings it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help tour test bench credibility soak memcheck fuzz races peers fmt needs

# A shell that was open while Rust was installed does not have cargo on its path yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Says the line that brings what is missing, and ends with a status.
define needed
  command -v cargo >/dev/null || { \
    echo 'cargo is missing; this line brings it:' >&2; \
    echo "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y" >&2; \
    exit $(1); }; \
  command -v cc >/dev/null || { \
    echo 'a C compiler is missing; this line brings it (with sudo, where you are not root):' >&2; \
    echo '  apt-get install -y gcc libc6-dev' >&2; \
    exit $(1); }
endef

help:
	@echo 'make tour    build loadline and run six short experiments: suites/tour*.toml'
	@echo 'make test    everything that a change must pass: format, tidy, lints, docs, tests'
	@echo 'make bench   measure, and write README.md, BENCHMARKS.md and docs/benchmarks'
	@echo 'make credibility   hold what the lab says against the truth; goes on where it was left'
	@echo 'make soak    run the heavy proofs, then abuse the services for five minutes: right answers, flat memory, no lost places'
	@echo 'make memcheck  run the records under valgrind while everything is remade all the time'
	@echo 'make fuzz    run every fuzz target for half a minute (nightly compiler, cargo-fuzz)'
	@echo 'make races   run threads that meet under ThreadSanitizer (nightly compiler, rust-src)'
	@echo 'make peers   install the programs that Loadline is measured against (Debian, root)'
	@echo 'make fmt     format the code'

# It ends in a sentence, whatever happens: a verdict that can't be given is no error of make's.
tour:
	@trap : INT; \
	$(call needed,0); \
	cargo build --profile tour --locked -p loadline || \
	  { echo 'The tour ends here: the program is not built, for the reason above.'; exit 0; }; \
	loadline=$${CARGO_TARGET_DIR:-target}/tour/loadline; \
	for suite in tour tour-records tour-arrays tour-conditions tour-workflow tour-rpc; do \
	  "$$loadline" run --wait suites/$$suite.toml; \
	  code=$$?; \
	  case $$code in \
	    0) ;; \
	    3) echo '(exit code 3: a requirement is broken, as said above)' ;; \
	    4) echo "(exit code 4: can't tell is an answer too)" ;; \
	    130) echo 'The tour ends here, because it was interrupted.'; exit 0 ;; \
	    *) echo "The tour ends here: suites/$$suite.toml was not measured (exit code $$code)."; exit 0 ;; \
	  esac; \
	done; \
	echo; echo "What do two writes wait for? $$ loadline rpc why tcp: --writes struct --nagle --server …"; \
	"$$loadline" rpc why tcp: --writes struct --nagle --time 1s \
	  --server "exec '$$loadline' serve rpc --listen 127.0.0.1:0 --threads 1 --log warn" || \
	  { echo "The tour ends here: it was not found out (exit code $$?)."; exit 0; }; \
	echo 'That was the tour. Measure your own next: docs/first-question.md'

test: needs
	@cargo --locked xtask test

bench: needs
	@cargo --locked xtask bench

credibility: needs
	@cargo --locked xtask credibility

soak: needs
	@cargo --locked xtask soak

memcheck: needs
	@cargo --locked xtask memcheck

fuzz: needs
	@cargo --locked xtask fuzz

races: needs
	@cargo --locked xtask races

peers: needs
	@cargo --locked xtask peers

fmt: needs
	@cargo fmt --all

needs:
	@$(call needed,2)
