# One static binary on an empty base, run by an unprivileged user. The two targets differ
# only in their default command; both contain "feedbox api" and "feedbox relay".
#
#   docker build --target api   -t feedbox-api .
#   docker build --target relay -t feedbox-relay .
#
# Both images are pinned by the digest of their index, which has all platforms. dependabot.yml proposes
# newer ones; until one is merged, a build does not have the fixes of the base.
#
# It uses no BuildKit feature, so that az acr build can build it.
ARG GO_IMAGE=golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab

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
