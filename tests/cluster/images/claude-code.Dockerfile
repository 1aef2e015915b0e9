# The pinned Claude Code, a native program that needs the C library of its base.
ARG BASE
FROM ${BASE}
COPY @anthropic-ai/claude-code/bin/claude.exe /usr/local/bin/claude
USER 10001:10001
CMD ["/usr/local/bin/claude"]
