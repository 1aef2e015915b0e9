# A shell and network tools, for tests of the network: one static program under each of its names.
FROM scratch
COPY . /
USER 10001:10001
CMD ["/bin/sh"]
