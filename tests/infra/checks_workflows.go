package infra

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	workflows   = ".github/workflows/"
	emulatorYML = workflows + "emulators.yml"
	knownIssues = workflows + "emulators/known-issues.txt"
	dependabot  = ".github/dependabot.yml"

	devDockerfile = "cmd/feedbox-dev/Dockerfile"
)

var (
	issueLine = regexp.MustCompile(`^[a-z-]+ +#\d+( #\d+)* +\S.{10,}$`)
	usedTag   = regexp.MustCompile(`uses: (\S+)`)
	atCommit  = regexp.MustCompile(`^\s*(?:- )?uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	image     = regexp.MustCompile(`(?m)^\s*(?:-\s*)?(?:image:|FROM(?: --platform=\S+)?|ARG \w*IMAGE=)\s*([^\s#]+)(?: AS (\w+))?`)
	digest    = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

var workflowChecks = []check{
	{
		"workflows may read only, unless a job says more, and end", func(w *world, report func(string, ...any)) {
			for file := range w.texts {
				if !strings.HasPrefix(file, workflows) || strings.Count(file, "/") != 2 {
					continue
				}
				v := read(w, file, report)
				want(report, file+": permissions", at(v, "permissions", "contents"), "read")
				for _, job := range keys(at(v, "jobs")) {
					if at(v, "jobs", job, "timeout-minutes") == nil && at(v, "jobs", job, "uses") == nil { // a called workflow has its own
						report("%s: job %s has no timeout", file, job)
					}
				}
				for line := range strings.Lines(w.texts[file]) {
					used := usedTag.FindStringSubmatch(line)
					if used == nil || atCommit.MatchString(strings.TrimRight(line, "\n")) || strings.HasPrefix(used[1], "./") {
						continue
					}
					report("%s uses %s, which is no commit with its version beside it", file, used[1])
				}
			}
		},
		[]seed{
			{workflows + "test.yml", "permissions: {contents: read}", "permissions: write-all"},
			{workflows + "lint.yml", "    timeout-minutes: 20\n", ""},
			{workflows + "lint.yml", "actions/cache@0057852bfaa89a56745cba8c7296529d2fc39830 # v4.3.0", "actions/cache@v4"},
		},
	},
	{
		"every image is a digest", pinnedImages,
		[]seed{
			{"Dockerfile", "@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d", ""},
			{"Dockerfile", "FROM ${BASE_IMAGE} AS feedbox", "FROM debian:12 AS feedbox"},
			{devDockerfile, "static-debian12:nonroot@sha256:afa5", "static-debian12:nonroot@sha256:0000"},
			{workflows + "emulators/servicebus.compose.yml", "@sha256:97b4", "@sha256:97g4"},
			{emulatorYML, "vnext-EN20260907@sha256:2db1f9e74c506bcf6fc347aa937aea1c00fa756061296a5a9efba530ce86ec02", "vnext-latest"},
			{baseFolder + "kustomization.yaml", "digest: sha256:", "newTag: "},
			{relayYAML, "image: feedbox", "image: feedbox:1.0.0"},
		},
	},
	{
		"where a job may write packages or get a token, each action is a commit", func(w *world, report func(string, ...any)) {
			guarded := 0
			for file := range w.texts {
				if !strings.HasPrefix(file, workflows) || strings.Count(file, "/") != 2 {
					continue
				}
				v := read(w, file, report)
				for _, job := range keys(at(v, "jobs")) {
					rights := at(v, "jobs", job, "permissions")
					if at(rights, "packages") != "write" && at(rights, "id-token") != "write" {
						continue
					}
					guarded++
					for _, line := range jobLines(w.texts[file], job) {
						if strings.Contains(line, "uses: ") && !atCommit.MatchString(line) {
							report("%s, job %s: %s is no commit with its version beside it", file, job, strings.TrimSpace(line))
						}
					}
				}
			}
			if guarded < 2 {
				report("only %d jobs have such rights", guarded)
			}
		},
		[]seed{
			{workflows + "image.yml", "docker/login-action@c94ce9fb468520275223c153574b00df6fe4bcc9 # v3.7.0", "docker/login-action@v3"},
			{workflows + "image.yml", "e8998f949152b193b063cb0ec769d69d929409be # v2.4.0", "e8998f949152b193b063cb0ec769d69d929409be"},
			{workflows + "bicep.yml", "azure/login@7184910d9eb2b1c5e48f7073824a90609bb9b6d6 # v2.3.1", "azure/login@v2"},
		},
	},
	{
		"a release is what was tested, and needs every check and an approval", func(w *world, report func(string, ...any)) {
			file := workflows + "image.yml"
			publish := at(read(w, file, report), "jobs", "publish")
			want(report, file+": needed before publishing", fmt.Sprint(at(publish, "needs")), "[build emulators test lint vulnerabilities]")
			want(report, file+": environment", at(publish, "environment"), "release")
			script := strings.Join(jobLines(w.texts[file], "publish"), "\n")
			if strings.Contains(script, "build-push-action") || strings.Contains(script, "docker build") || !strings.Contains(script, "--preserve-digests") || !strings.Contains(script, "cmp <(") {
				report("%s: publish does not push the archive that was tested", file)
			}
			for _, name := range []string{"test.yml", "lint.yml", "vulnerabilities.yml"} {
				if !strings.Contains(w.texts[workflows+name], "workflow_call:") || !strings.Contains(w.texts[file], "uses: ./"+workflows+name) {
					report("%s is not part of a release", name)
				}
			}
		},
		[]seed{
			{workflows + "image.yml", "needs: [build, emulators, test, lint, vulnerabilities]", "needs: build"},
			{workflows + "image.yml", "    environment: release\n", ""},
			{workflows + "image.yml", "--preserve-digests ", ""},
			{workflows + "image.yml", "          cmp <(tr", "          true <(tr"},
			{workflows + "lint.yml", "  workflow_call:\n", ""},
		},
	},
	{
		"updates of modules, actions and images are proposed", func(w *world, report func(string, ...any)) {
			for _, ecosystem := range []string{"gomod", "github-actions", "docker", "docker-compose"} {
				if !strings.Contains(w.texts[dependabot], "package-ecosystem: "+ecosystem+"\n") {
					report("%s does not have %s", dependabot, ecosystem)
				}
			}
		},
		[]seed{{dependabot, "package-ecosystem: docker\n", "package-ecosystem: npm\n"}},
	},
	{
		"the workflows that the deployment promises are there", func(w *world, report func(string, ...any)) {
			for file, needed := range map[string][]string{
				"test.yml": {"go test ./...", "go test -race ./..."}, "lint.yml": {"make lint", "make fmt-check"}, "image.yml": {"docker buildx build", "docker build "},
				"vulnerabilities.yml": {"govulncheck"}, "bicep.yml": {"az bicep build", "what-if", "ps-rule", "checkov", "./tests/infra/..."},
				"emulators.yml": {"./tests/conformance/...", "FEEDBOX_TEST_COSMOS_ENDPOINT", "FEEDBOX_TEST_SERVICEBUS_CONNECTION_STRING"},
			} {
				for _, words := range needed {
					if !strings.Contains(w.texts[workflows+file], words) {
						report("%s does not say %s", file, words)
					}
				}
			}
		},
		[]seed{{emulatorYML, "./tests/conformance/...", "./tests/other/..."}, {workflows + "bicep.yml", "microsoft/ps-rule@46451b8f5258c41beb5ae69ed7190ccbba84112c", "actions/checkout@11d5960a326750d5838078e36cf38b85af677262"}},
	},
	{
		"every known difference of Microsoft's emulator names its issues", func(w *world, report func(string, ...any)) {
			lines := 0
			for line := range strings.Lines(w.texts[knownIssues]) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if lines++; !issueLine.MatchString(line) {
					report("known-issues.txt: %q names no issue", line)
				}
			}
			if lines == 0 {
				report("known-issues.txt is empty")
			}
		},
		[]seed{{knownIssues, "#319 ", "     "}, {knownIssues, "patch                    #232                 PATCH is refused", "patch                    #232"}},
	},
}

// pinnedImages requires a digest of every image that is named outside Bicep, where the placeholder of
// the first deployment has a tag. Both Dockerfiles have the same bases. In Kubernetes the image has no
// tag, because kustomize sets its digest.
func pinnedImages(w *world, report func(string, ...any)) {
	bases := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(w.texts)) {
		if ext := path.Ext(file); ext != ".yml" && ext != ".yaml" && path.Base(file) != "Dockerfile" {
			continue
		}
		stages := map[string]bool{}
		for _, found := range image.FindAllStringSubmatch(w.texts[file], -1) {
			stages[found[2]] = true
			switch one := found[1]; {
			case strings.HasPrefix(one, "${") && strings.HasSuffix(one, "_IMAGE}") || stages[one]:
			case strings.HasPrefix(file, kubernetes) && one == "feedbox":
			case !digest.MatchString(one):
				report("%s uses %s, which is no digest", file, one)
			case path.Base(file) == "Dockerfile":
				bases[path.Dir(file)] += one + " "
			}
		}
	}
	want(report, "the bases of "+devDockerfile, bases["cmd/feedbox-dev"], bases["."])
	k := read(w, baseFolder+"kustomization.yaml", report)
	if !digest.MatchString("@"+text(at(k, "images", 0, "digest"))) || at(k, "images", 0, "newTag") != nil {
		report("Kubernetes runs the image by a tag")
	}
}

// jobLines returns the lines of one job of a workflow.
func jobLines(text, job string) []string {
	var lines []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(name, " ") && !strings.HasPrefix(name, "#") {
			inside = name == job+":"
		}
		if inside {
			lines = append(lines, line)
		}
	}
	return lines
}
