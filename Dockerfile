# The hub and nothing else, from what make release-snapshot built:
#
#   make release-snapshot
#   docker build -t parley .
#   docker run --network host -v parley:/data parley
#
# It listens on loopback until it is told otherwise. In a network of its own give it
# an address, a certificate and a key; see docs/operate.md.
FROM scratch
ARG TARGETARCH=amd64
COPY --chmod=0755 build/release/parley_*_linux_${TARGETARCH} /parley
COPY --chown=65532:65532 --chmod=0700 packaging/image/data /data
USER 65532:65532
VOLUME /data
EXPOSE 7440
ENV PARLEY_DATA_DIR=/data/hub
HEALTHCHECK --interval=30s --timeout=10s --start-period=5s CMD ["/parley", "doctor"]
ENTRYPOINT ["/parley"]
CMD ["serve"]
