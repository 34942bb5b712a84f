package infra

import (
	"regexp"
	"strings"
)

const (
	workflows   = ".github/workflows/"
	emulatorYML = workflows + "emulators.yml"
	knownIssues = workflows + "emulators/known-issues.txt"
)

var (
	issueLine = regexp.MustCompile(`^[a-z-]+ +#\d+( #\d+)* +\S.{10,}$`)
	usedTag   = regexp.MustCompile(`uses: (\S+)`)
	atCommit  = regexp.MustCompile(`^\s*(?:- )?uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	atVersion = regexp.MustCompile(`@(v\d[\w.]*|[0-9a-f]{40})$`)
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
					if at(v, "jobs", job, "timeout-minutes") == nil {
						report("%s: job %s has no timeout", file, job)
					}
				}
				for _, used := range usedTag.FindAllStringSubmatch(w.texts[file], -1) {
					if !atVersion.MatchString(used[1]) {
						report("%s uses %s without a version", file, used[1])
					}
				}
			}
		},
		[]seed{
			{workflows + "test.yml", "permissions: {contents: read}", "permissions: write-all"},
			{workflows + "lint.yml", "    timeout-minutes: 20\n", ""},
			{workflows + "lint.yml", "actions/cache@v4", "actions/cache@master"},
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
			{workflows + "image.yml", "11d5960a326750d5838078e36cf38b85af677262 # v4.4.0", "11d5960a326750d5838078e36cf38b85af677262"},
			{workflows + "bicep.yml", "azure/login@7184910d9eb2b1c5e48f7073824a90609bb9b6d6 # v2.3.1", "azure/login@v2"},
		},
	},
	{
		"the workflows that the deployment promises are there", func(w *world, report func(string, ...any)) {
			for file, needed := range map[string][]string{
				"test.yml": {"go test ./...", "go test -race ./..."}, "lint.yml": {"make lint", "make fmt-check"}, "image.yml": {"docker build"},
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
		[]seed{{emulatorYML, "./tests/conformance/...", "./tests/other/..."}, {workflows + "bicep.yml", "microsoft/ps-rule@v2.9.0", "actions/checkout@v4"}},
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
