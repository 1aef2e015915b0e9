# The image of Caisson.
#
#   docker build --tag registry.example/caisson:0.1 .
#
# What comes from outside is an argument: a mirror of your own, pinned by a digest.
#
#   --build-arg RUST=registry.example/rust@sha256:…      compiles
#   --build-arg DEBIAN=registry.example/debian@sha256:…  what the result stands on
#   --build-arg BASE=registry.example/debian-git:…       the same, with git and CA certificates in it: nothing is installed
#   --build-arg BINARY=registry.example/caisson-bin:…    an image with a static /caisson: nothing is compiled
ARG RUST=rust:1.95-slim-bookworm
ARG DEBIAN=debian:bookworm-slim
ARG BASE=packages
ARG BINARY=build

FROM ${RUST} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin caisson && cp target/*/release/caisson /caisson

FROM ${DEBIAN} AS packages
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*

# `COPY --from` takes no argument, a stage of that name does.
FROM ${BINARY} AS binary

FROM ${BASE}
COPY --from=binary /caisson /usr/local/bin/caisson
# A number: Kubernetes can't tell whether a name is root.
USER 10001:10001
ENTRYPOINT ["/usr/local/bin/caisson"]
