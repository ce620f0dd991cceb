# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The images of tools/images/recipe.go, for Docker with BuildKit and for Podman. A test of that module compares the two.
#
#     docker build --target agent --build-arg VERSION=v1.2.3 --build-arg REVISION="$(git rev-parse HEAD)" -t tombolo-agent .
#
# --platform=linux/amd64,linux/arm64 builds for both without emulation. "make images" builds the same images without a daemon.

ARG VERSION=dev
ARG REVISION=unknown

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION

FROM build AS agent-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C tools/images run . files -image=tombolo-agent -platform="$TARGETOS/$TARGETARCH" -version="$VERSION" -out=/image.tar && \
    mkdir /image && tar -x -p -f /image.tar -C /image

# Tombolo agent
FROM scratch AS agent
ARG VERSION
ARG REVISION
COPY --from=agent-files /image /
WORKDIR /
LABEL org.opencontainers.image.description="Makes a Kubernetes cluster a member of a clusterset: publishes what it exports, imports what the others do" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.source="https://github.com/tombolo-mcs/tombolo" \
    org.opencontainers.image.title="Tombolo agent" \
    org.opencontainers.image.version="$VERSION"
# metrics
EXPOSE 8080/tcp
# /healthz and /readyz
EXPOSE 8081/tcp
USER 65532:65532
ENTRYPOINT ["/tombolo-agent"]

FROM build AS gateway-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C tools/images run . files -image=tombolo-gateway -platform="$TARGETOS/$TARGETARCH" -version="$VERSION" -out=/image.tar && \
    mkdir /image && tar -x -p -f /image.tar -C /image

# Tombolo gateway
FROM scratch AS gateway
ARG VERSION
ARG REVISION
COPY --from=gateway-files /image /
WORKDIR /
LABEL org.opencontainers.image.description="Forwards connections between a Kubernetes cluster and the gateways of other clusters of a clusterset" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.source="https://github.com/tombolo-mcs/tombolo" \
    org.opencontainers.image.title="Tombolo gateway" \
    org.opencontainers.image.version="$VERSION"
# metrics
EXPOSE 8080/tcp
# /healthz and /readyz
EXPOSE 8081/tcp
# gateways of other clusters
EXPOSE 8443/tcp
USER 65532:65532
ENTRYPOINT ["/tombolo-gateway"]

FROM build AS dns-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C tools/images run . files -image=tombolo-dns -platform="$TARGETOS/$TARGETARCH" -version="$VERSION" -out=/image.tar && \
    mkdir /image && tar -x -p -f /image.tar -C /image

# CoreDNS with Tombolo's plugin clusterset
FROM scratch AS dns
ARG VERSION
ARG REVISION
COPY --from=dns-files /image /
WORKDIR /
LABEL org.opencontainers.image.description="CoreDNS with the plugins that a cluster uses and clusterset, which answers for clusterset.local" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.source="https://github.com/tombolo-mcs/tombolo" \
    org.opencontainers.image.title="CoreDNS with Tombolo's plugin clusterset" \
    org.opencontainers.image.version="$VERSION"
# DNS, on a port that needs no privilege; the Service maps port 53 to it
EXPOSE 1053/tcp
EXPOSE 1053/udp
# /health
EXPOSE 8080/tcp
# /ready
EXPOSE 8181/tcp
# metrics
EXPOSE 9153/tcp
USER 65532:65532
ENTRYPOINT ["/tombolo-dns"]
