FROM scratch
COPY pause /pause
USER 10001:10001
ENTRYPOINT ["/pause"]
