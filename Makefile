# Floe: make run shows it, make test checks it. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

export CARGO_TARGET_DIR := $(CURDIR)/target
FLOE := target/debug/floe
GUEST_CARGO := plugins/toolchain/guest-cargo
# Programs that the checks need are built once, outside the repository.
PROGRAMS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/floe/programs
CARGO_DENY := $(PROGRAMS)/cargo-deny-0.20.2/bin/cargo-deny
CARGO_COMPONENT := $(PROGRAMS)/cargo-component-0.21.1/bin/cargo-component
CARGO_FUZZ := $(PROGRAMS)/cargo-fuzz-0.13.1/bin/cargo-fuzz
COMPONENTIZE_PY := $(PROGRAMS)/componentize-py-0.25.1/bin/componentize-py
RIPGREP := $(PROGRAMS)/ripgrep-15.1.0/bin/rg
MCP_CLIENTS := $(PROGRAMS)/mcp-clients-2.3.0-2.12.0
PYRIGHT := $(PROGRAMS)/pyright-1.1.414

# Every folder of plugins/ with a Cargo.toml is a tool that the binary embeds, but the SDK, what editors and what HTTP tools share, and the tests of the contract.
FOLDERS := $(filter-out sdk editing web contract,$(patsubst plugins/%/Cargo.toml,%,$(wildcard plugins/*/Cargo.toml)))
CORES := $(patsubst %,target/guests/wasm32-wasip1/release/%.wasm,$(subst -,_,$(FOLDERS)))
# Beside the folder, whose contents are an input of the binary.
COMPONENTS := target/components.made
# The tools that are embedded, so that one that was removed goes.
LIST := target/components.list
# What the compiled form of a component depends on, beside the component.
ENGINE := Cargo.lock $(shell find host/protocol/src host/runtime/src host/cli -name '*precompile*' -o -path '*runtime/src/*.rs' -o -path '*protocol/src/*.rs')
BIN ?= $(or $(CARGO_HOME),$(HOME)/.cargo)/bin
FUZZ_SECONDS ?= 60
# The same packages and features everywhere, so that nothing is built twice.
WORKSPACE := --workspace --features floe-cli/embed

# The workspaces that are built for wasm32-wasip1.
GUESTS := plugins plugins/contract tests/guests

say = @printf 'make: %s\n' "$(1)"

.PHONY: help setup components guests bubblewrap language-servers build run test test-contract test-mcp lint fix bench install advisories fuzz clean force

help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Installs what is missing to build for wasm32-wasip1.
	@plugins/toolchain/setup.sh

$(CORES) &: force | setup
	$(call say,tools: compiling $(words $(CORES)))
	@$(GUEST_CARGO) build --quiet --manifest-path plugins/Cargo.toml --workspace --release --target wasm32-wasip1

$(LIST): force
	@mkdir -p $(@D); echo $(CORES) | cmp --silent - $@ || echo $(CORES) > $@

$(COMPONENTS): $(CORES) $(ENGINE) $(LIST)
	$(call say,host: compiling what makes components (the first time takes minutes))
	@cargo build --quiet --workspace
	$(call say,tools: making components)
	@$(FLOE) precompile --out target/components $(CORES)
	@touch $@

components: $(COMPONENTS) ## Builds the tools and makes components of them.

guests: setup ## Builds the guests that the tests need.
	$(call say,test: compiling guests)
	@$(GUEST_CARGO) build --quiet --manifest-path tests/guests/Cargo.toml --examples --release --target wasm32-wasip1

bubblewrap:
	@tests/install-bubblewrap

language-servers:
	@tests/install-language-servers $(PYRIGHT) $(lastword $(subst -, ,$(PYRIGHT)))

build: components ## Builds the binary, with the tools in it.
	$(call say,host: compiling)
	@cargo build --quiet $(WORKSPACE)

run: build ## Runs a sandboxed session on the example project.
	@examples/run.sh $(FLOE)

test: build guests bubblewrap language-servers ## Runs the tests.
	$(call say,test: host)
	@FLOE_TEST_PYRIGHT=$(PYRIGHT) cargo test --quiet --no-fail-fast $(WORKSPACE)
	$(call say,test: tools)
	@$(GUEST_CARGO) test --quiet --manifest-path plugins/Cargo.toml --workspace

test-contract: build $(CARGO_COMPONENT) $(COMPONENTIZE_PY) ## Builds a tool with plain cargo, cargo-component and Python, and runs the three.
	@plugins/contract/build $(CARGO_COMPONENT) $(COMPONENTIZE_PY)
	@$(FLOE) precompile --out target/contract/components target/contract/*.wasm
	$(call say,test: contract)
	@cargo test --quiet $(WORKSPACE) --test contract -- --ignored

test-mcp: build $(MCP_CLIENTS)/complete ## Lets the Python SDK of the Model Context Protocol and its Inspector use floe mcp.
	$(call say,test: clients of the Model Context Protocol)
	@MCP_CLIENTS=$(MCP_CLIENTS) cargo test --quiet $(WORKSPACE) --test mcp_clients -- --ignored

lint: build $(CARGO_DENY) ## Checks formatting, lints, documentation, licences and sources.
	$(call say,lint: the lock file and formatting)
	@cargo metadata --quiet --locked --format-version 1 >/dev/null
	@cargo fmt --all --check
	@for workspace in $(GUESTS); do cargo fmt --all --check --manifest-path $$workspace/Cargo.toml; done
	$(call say,lint: clippy)
	@cargo clippy --quiet $(WORKSPACE) --all-targets -- -D warnings
	@$(GUEST_CARGO) clippy --quiet --manifest-path plugins/Cargo.toml --workspace --all-targets -- -D warnings
	$(call say,lint: documentation)
	@RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps $(WORKSPACE)
	@RUSTDOCFLAGS='-D warnings' $(GUEST_CARGO) doc --quiet --no-deps --manifest-path plugins/Cargo.toml --workspace
	$(call say,lint: licences and sources)
	@$(CARGO_DENY) --log-level error check licenses bans sources
	@$(CARGO_DENY) --log-level error --manifest-path plugins/Cargo.toml --config deny.toml check licenses bans sources

fix: ## Formats the code.
	@cargo fmt --all
	@for workspace in $(GUESTS); do cargo fmt --all --manifest-path $$workspace/Cargo.toml; done

bench: build guests $(RIPGREP) ## Measures, beside the goals.
	$(call say,bench: compiling optimised (the first time takes ten minutes))
	@cargo build --quiet --release $(WORKSPACE) --bin floe
	@cargo bench --quiet $(WORKSPACE) --bench figures --no-run
	$(call say,bench: measuring)
	@RIPGREP=$(RIPGREP) cargo bench --quiet $(WORKSPACE) --bench figures -- --noplot --quiet

install: build ## Builds the binary optimised and puts it into BIN (default: cargo's own).
	$(call say,host: compiling optimised (the first time takes minutes))
	@cargo build --quiet --release $(WORKSPACE) --bin floe
	@install -D --mode=755 target/release/floe "$(BIN)/floe"
	$(call say,installed $(BIN)/floe)

advisories: $(CARGO_DENY) ## Checks dependencies against the advisory database (needs the network).
	@$(CARGO_DENY) check advisories
	@$(CARGO_DENY) --manifest-path plugins/Cargo.toml --config deny.toml check advisories

fuzz: $(CARGO_FUZZ) ## Fuzzes what parses bytes of others, FUZZ_SECONDS each (needs a nightly toolchain).
	@cargo +nightly --version >/dev/null || { echo 'make: no nightly toolchain; run: rustup toolchain install nightly' >&2; exit 1; }
	@for target in $$(cd tests && $(CARGO_FUZZ) list); do \
	  echo "make: fuzz: $$target"; \
	  mkdir -p target/fuzz/corpus/$$target tests/fuzz/corpus/$$target; \
	  cd tests && PATH="$(dir $(CARGO_FUZZ)):$$PATH" CARGO_TARGET_DIR=$(CURDIR)/target/fuzz \
	    cargo +nightly fuzz run $$target $(CURDIR)/target/fuzz/corpus/$$target fuzz/corpus/$$target \
	    -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0; cd ..; \
	done

clean: ## Removes what was built; the caches outside the repository stay.
	@rm -rf target

$(PROGRAMS)/cargo-%:
	$(call say,installing $(@F) once (a few minutes))
	@env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --profile dev $(@F) \
	  --root "$(patsubst %/bin,%,$(@D))" --version $(lastword $(subst -, ,$(firstword $(subst /, ,$*))))

# Something to measure beside, so it is built as its authors build it for release.
$(RIPGREP):
	$(call say,installing ripgrep once (a minute))
	@env -u CARGO_TARGET_DIR cargo install --quiet --locked --profile release-lto ripgrep \
	  --root "$(patsubst %/bin,%,$(@D))" --version 15.1.0

$(COMPONENTIZE_PY):
	$(call say,installing componentize-py once)
	@plugins/contract/install-componentize-py "$(patsubst %/bin,%,$(@D))" 0.25.1

$(MCP_CLIENTS)/complete:
	$(call say,installing clients of the Model Context Protocol once)
	@tests/mcp-clients/install $(@D) 2.3.0 2.12.0
