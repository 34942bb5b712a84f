# One static binary on an empty base, run by an unprivileged user. The two targets differ
# only in their default command; both contain "feedbox api" and "feedbox relay".
#
#   docker build --target api   -t feedbox-api .
#   docker build --target relay -t feedbox-relay .
#
# Pin both images by digest in production builds:
#   --build-arg GO_IMAGE=golang:1.26-bookworm@sha256:...
#   --build-arg BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:...
# This file has no digests: nobody has looked them up from a machine that reaches the registries. CI
# resolves the tags, builds from the digests and prints them; dependabot.yml covers this file.
#
# It uses no BuildKit feature, so that az acr build can build it.
ARG GO_IMAGE=golang:1.26-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/feedbox ./cmd/feedbox

FROM ${BASE_IMAGE} AS feedbox
COPY --from=build /out/feedbox /feedbox
COPY LICENSE NOTICE /
# A number, because Kubernetes cannot check runAsNonRoot for a name.
USER 65532:65532
# The contacts API; probes and metrics.
EXPOSE 8080 8090
# On SIGTERM the process drains.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/feedbox"]

FROM feedbox AS relay
CMD ["relay"]

FROM feedbox AS api
CMD ["api"]
