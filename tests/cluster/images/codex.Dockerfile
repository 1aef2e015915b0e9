# The pinned Codex, a static program that looks for its helpers where its package has them; without the voice helper.
ARG BASE
FROM ${BASE}
COPY @openai/codex-linux-*/vendor/*/codex-package.json /opt/codex/
COPY @openai/codex-linux-*/vendor/*/bin/ /opt/codex/bin/
COPY @openai/codex-linux-*/vendor/*/codex-path/ /opt/codex/codex-path/
COPY @openai/codex-linux-*/vendor/*/codex-resources/bwrap /opt/codex/codex-resources/bwrap
ENV PATH=/opt/codex/bin:/usr/local/bin:/usr/bin:/bin
USER 10001:10001
CMD ["/opt/codex/bin/codex"]
