# The commands of the project. `just` only names them: each also runs as it stands.

# Where ./test builds its tools.
export PATH := justfile_directory() / "target/tools/bin:" + env("PATH")

[private]
default:
    @just --list --unsorted

# every check and test, as CI runs them
test:
    ./test

# the library's own tests
unit:
    ./test unit

# format, clippy, dependencies, scripts, documentation
lint:
    ./test lint

# the integration tests, or those with NAME
e2e *NAME:
    ./test e2e {{ NAME }}

# the tests of the test cluster itself; --kube 1.34 for another Kubernetes
cluster *ARGUMENTS:
    ./test cluster {{ ARGUMENTS }}

# switch guards off one by one; a test must fail for each
mutations *GUARD:
    ./test mutations {{ GUARD }}

# run benchmarks, or list them
bench *NAME:
    ./bench {{ NAME }}

# run benchmarks and put the results into docs/performance.md
record +NAME:
    ./bench --record {{ NAME }}

# what CI runs, with its time
ci:
    ./.ci/run

# rewrite the formatting
fmt:
    cargo fmt

# rewrite generated files (CRDs, tables in docs, recorded output)
update:
    CAISSON_UPDATE=1 cargo nextest run --locked

# known vulnerabilities of dependencies; needs a download
advisories:
    cargo deny --locked check advisories

# the documentation of the code
doc:
    cargo doc --no-deps --document-private-items --open

# run caisson from the tree
run *ARGUMENTS:
    cargo run --locked -- {{ ARGUMENTS }}
