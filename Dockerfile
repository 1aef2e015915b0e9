# The image of Caisson: one static program, and git with CA certificates to fetch what it works on.
#
#   docker build --tag registry.example/caisson:0.1 .
#
# Both images from outside are arguments, for a mirror of your own and for a digest, which is what pins them:
#
#   --build-arg RUST=registry.example/rust@sha256:…      compiles
#   --build-arg DEBIAN=registry.example/debian@sha256:…  holds the result; one that has git is taken as it is
#
# A static `caisson` that is built already takes the place of the first stage: --build-context build=DIRECTORY
ARG RUST=rust:1.95-slim-bookworm
ARG DEBIAN=debian:bookworm-slim

FROM ${RUST} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin caisson && cp target/*/release/caisson /caisson

FROM ${DEBIAN}
RUN if ! git --version || ! test -s /etc/ssl/certs/ca-certificates.crt; then \
        apt-get update \
        && apt-get install --yes --no-install-recommends ca-certificates git \
        && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=build /caisson /usr/local/bin/caisson
# A number: Kubernetes can't tell whether a name is root's.
USER 10001:10001
ENTRYPOINT ["/usr/local/bin/caisson"]
