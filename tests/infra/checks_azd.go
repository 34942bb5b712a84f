package infra

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// read parses YAML into plain values.
func read(w *world, file string, report func(string, ...any)) any {
	var v any
	if err := yaml.Unmarshal([]byte(w.texts[file]), &v); err != nil || v == nil {
		report("%s is not YAML: %v", file, err)
	}
	return v
}

func keys(v any) []string {
	o, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(o))
}

var azdChecks = []check{
	{
		"azd finds templates, apps and image targets", azd,
		[]seed{
			{"azure.yaml", "path: bicep", "path: infra"},
			{"azure.yaml", "  relay:\n", "  worker:\n"},
			{"azure.yaml", "target: relay", "target: api"},
			{"azure.yaml", "host: containerapp", "host: appservice"},
			{relayFile, "'azd-service-name': 'relay'", "'azd-service-name': 'worker'"},
			{"Dockerfile", "AS relay", "AS worker"},
			{"bicep/main.bicep", "'azd-env-name': environmentName, ", ""},
			{"bicep/main.bicep", "output AZURE_CONTAINER_REGISTRY_ENDPOINT", "output REGISTRY"},
		},
	},
	{
		"azd keeps the running image and finishes the first deployment", func(w *world, report func(string, ...any)) {
			for _, variable := range []string{"SERVICE_API_RESOURCE_EXISTS", "SERVICE_RELAY_RESOURCE_EXISTS", "AZURE_ENV_NAME", "AZURE_LOCATION"} {
				if !strings.Contains(w.texts["bicep/main.bicepparam"], "'"+variable+"'") {
					report("main.bicepparam does not read %s", variable)
				}
			}
			hooks := at(read(w, "azure.yaml", report), "hooks")
			for _, shell := range []string{"posix", "windows"} {
				if !strings.Contains(text(at(hooks, "postdeploy", shell, "run")), "azd provision") {
					report("the hook postdeploy for %s does not provision again", shell)
				}
				if !strings.Contains(text(at(hooks, "preprovision", shell, "run")), "FEEDBOX_API_TOKEN_KEYS") {
					report("the hook preprovision for %s makes no token keys", shell)
				}
			}
		},
		[]seed{
			{"bicep/main.bicepparam", "SERVICE_RELAY_RESOURCE_EXISTS", "SERVICE_WORKER_RESOURCE_EXISTS"},
			{"azure.yaml", "      run: azd provision --no-prompt\n", "      run: true\n"},
			{"azure.yaml", "  preprovision:\n", "  preup:\n"},
		},
	},
}

func azd(w *world, report func(string, ...any)) {
	project := read(w, "azure.yaml", report)
	if file := text(at(project, "infra", "path")) + "/main.bicep"; w.files[file] == nil {
		report("azure.yaml looks for %s", file)
	}
	tags := map[string]bool{}
	apps(w, report, func(process string, _ resource) { tags[process] = true })
	services := at(project, "services")
	want(report, "services of azure.yaml", fmt.Sprint(keys(services)), fmt.Sprint(slices.Sorted(maps.Keys(tags))))
	for _, name := range keys(services) {
		service := at(services, name)
		want(report, "the host of "+name, at(service, "host"), "containerapp")
		want(report, "the target of "+name, at(service, "docker", "target"), any(name))
		if !strings.Contains(w.texts[text(at(service, "docker", "path"))], " AS "+name+"\nCMD [\""+name+"\"]") {
			report("the image has no target %s that runs it", name)
		}
	}
	for _, r := range w.dev {
		if r.Type == "Microsoft.Resources/resourceGroups" {
			want(report, "the tag azd-env-name", at(r.Body, "tags", "azd-env-name"), "e")
		}
	}
	for _, output := range []string{"AZURE_CONTAINER_REGISTRY_ENDPOINT", "AZURE_RESOURCE_GROUP"} {
		found := false
		for _, o := range w.files["bicep/main.bicep"].All("output") {
			found = found || o.Name == output
		}
		if !found {
			report("main.bicep has no output %s", output)
		}
	}
}

var imageChecks = []check{
	{
		"the image is static, empty, and run by nobody", func(w *world, report func(string, ...any)) {
			for _, line := range []string{
				`(?m)^RUN CGO_ENABLED=0 go build .*-trimpath.* \./cmd/feedbox$`,
				`(?m)^ARG BASE_IMAGE=gcr\.io/distroless/static-debian\d+:nonroot@`,
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
			for _, needed := range []string{"go.mod", "go.sum", "LICENSE", "NOTICE", "application", "changefeed", "cmd", "domain", "infrastructure"} {
				if !slices.Contains(kept, needed) {
					report(".dockerignore leaves out %s", needed)
				}
			}
			if len(kept) != 9 {
				report(".dockerignore lets in %v", kept)
			}
		},
		[]seed{{".dockerignore", "*\n!go.mod", "!go.mod"}, {".dockerignore", "!domain\n", ""}, {".dockerignore", "!go.sum\n", "!go.sum\n!.azure\n"}},
	},
}
