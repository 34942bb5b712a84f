package infra

import (
	"regexp"
	"slices"
	"strings"
)

var imageChecks = []check{
	{
		"the image is static, empty, and run by nobody", func(w *world, report func(string, ...any)) {
			for _, line := range []string{
				`(?m)^RUN CGO_ENABLED=0 go build .*-trimpath.* \./cmd/feedbox$`,
				`(?m)^ARG BASE_IMAGE=gcr\.io/distroless/static-debian\d+:nonroot$`,
				`(?m)^FROM \$\{BASE_IMAGE\} AS feedbox$`,
				`(?m)^USER 65532:65532$`,
				`(?m)^ENTRYPOINT \["/feedbox"\]$`,
			} {
				if !regexp.MustCompile(line).MatchString(w.texts["Dockerfile"]) {
					report("the Dockerfile has no line %s", line)
				}
			}
			if strings.Contains(w.texts["Dockerfile"], "feedbox-dev") {
				report("the Dockerfile builds the emulators")
			}
		},
		[]seed{
			{"Dockerfile", "CGO_ENABLED=0 ", ""},
			{"Dockerfile", " -trimpath", ""},
			{"Dockerfile", "USER 65532:65532", "USER root"},
			{"Dockerfile", "./cmd/feedbox\n", "./cmd/feedbox-dev\n"},
			{"Dockerfile", "FROM ${BASE_IMAGE} AS feedbox", "FROM debian AS feedbox"},
		},
	},
	{
		"nothing enters the image's build but sources", func(w *world, report func(string, ...any)) {
			var kept []string
			for line := range strings.Lines(w.texts[".dockerignore"]) {
				if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
					kept = append(kept, name)
				}
			}
			if !strings.Contains(w.texts[".dockerignore"], "\n*\n") {
				report(".dockerignore does not begin with nothing")
			}
			for _, needed := range []string{"go.mod", "go.sum", "application", "changefeed", "cmd", "domain", "infrastructure"} {
				if !slices.Contains(kept, needed) {
					report(".dockerignore leaves out %s", needed)
				}
			}
			if len(kept) != 7 {
				report(".dockerignore lets in %v", kept)
			}
		},
		[]seed{{".dockerignore", "*\n!go.mod", "!go.mod"}, {".dockerignore", "!domain\n", ""}, {".dockerignore", "!go.sum\n", "!go.sum\n!.azure\n"}},
	},
}
