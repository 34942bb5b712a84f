package infra

import (
	"path"
	"strings"

	"feedbox/tests/infra/bicep"
)

var wiringChecks = []check{
	{
		"every parameter and variable is used", unused,
		[]seed{
			{alertsFile, "enabled: relayDeployed", "enabled: true"},
			{"bicep/modules/environment.bicep", "    workspaceId: workspaceId\n", "    workspaceId: '/x'\n"},
			{"bicep/main.bicep", "var drainSeconds = 20", "var spare = 1\nvar drainSeconds = 20"},
		},
	},
	{
		"every output of a module is used", unusedOutputs,
		[]seed{{busFile, "output topicName string", "@description('Unused.')\noutput spare string = topic.id\n\n@description('Name.')\noutput topicName string"}},
	},
	{
		"every parameter and output is described", described,
		[]seed{{busFile, "@description('Region of the namespace.')\n", ""}, {busFile, "@description('Name of the topic.')\n", ""}, {busFile, "'Name of the topic.'", "''"}},
	},
	{
		"every module is used", modules,
		[]seed{
			{"bicep/spare.bicep", "", "param spare string"},
		},
	},
	{
		"roles are assigned, and endpoints resolve, before the apps start", func(w *world, report func(string, ...any)) {
			for name, awaited := range map[string]string{
				"api": "[roles, cosmosEndpoint, registryEndpoint, vaultEndpoint]", "relay": "[roles, cosmosEndpoint, servicebusEndpoint, registryEndpoint]",
			} {
				d := w.files["bicep/main.bicep"].Find(name)
				if d == nil || !strings.Contains(bicep.Print(d.Value), "'dependsOn': "+awaited) {
					report("module %s does not wait for %s", name, awaited)
				}
			}
		},
		[]seed{{"bicep/main.bicep", "  dependsOn: [ roles, cosmos", "  dependsOn: [ cosmos"}, {"bicep/main.bicep", "registryEndpoint, vaultEndpoint ]", "registryEndpoint ]"}},
	},
	{
		"parameter files say nothing twice and what templates need", parameterFiles,
		[]seed{
			{"bicep/prod.bicepparam", "param production = true\n", ""},
			{"bicep/prod.bicepparam", "readEnvironmentVariable('FEEDBOX_DEPLOYED')", "readEnvironmentVariable('FEEDBOX_DEPLOYED', 'false')"},
			{"bicep/main.bicepparam", "using './main.bicep'", "using 'main.bicep'"},
		},
	},
}

// uses returns the names in the expressions of a file.
func uses(f *bicep.File) map[string]bool {
	used := map[string]bool{}
	visit := func(n *bicep.Node) {
		if n.Kind == bicep.Ident {
			used[n.Text] = true
		}
	}
	for _, d := range f.Declarations {
		bicep.Walk(d.Value, visit)
		bicep.Walk(d.Condition, visit)
		bicep.Walk(d.Loop, visit)
	}
	return used
}

func unused(w *world, report func(string, ...any)) {
	for _, file := range w.bicepFiles() {
		used := uses(w.files[file])
		for _, d := range w.files[file].Declarations {
			if (d.Keyword == "param" || d.Keyword == "var" || d.Existing) && !used[d.Name] {
				report("%s: %s %s is not used", file, d.Keyword, d.Name)
			}
		}
	}
}

func unusedOutputs(w *world, report func(string, ...any)) {
	used := map[string]bool{} // file and output
	for _, file := range w.bicepFiles() {
		f := w.files[file]
		for _, d := range f.Declarations {
			bicep.Walk(d.Value, func(n *bicep.Node) {
				if n.Kind != bicep.Member || n.Kids[0].Kind != bicep.Member || n.Kids[0].Text != "outputs" {
					return
				}
				of := n.Kids[0].Kids[0]
				if of.Kind == bicep.Index { // of a module in a loop
					of = of.Kids[0]
				}
				if m := f.Find(of.Text); of.Kind == bicep.Ident && m != nil && m.Keyword == "module" {
					used[path.Join(path.Dir(file), m.Target)+" "+n.Text] = true
				}
			})
		}
	}
	for _, file := range w.bicepFiles() {
		if file == "bicep/main.bicep" {
			continue
		}
		for _, o := range w.files[file].All("output") {
			if !used[file+" "+o.Name] {
				report("%s: output %s is not used", file, o.Name)
			}
		}
	}
}

func described(w *world, report func(string, ...any)) {
	for _, file := range w.bicepFiles() {
		for _, d := range w.files[file].Declarations {
			if d.Keyword != "param" && d.Keyword != "output" {
				continue
			}
			args, ok := d.Decorator("description")
			if !ok || len(args) != 1 {
				report("%s: %s %s is not described", file, d.Keyword, d.Name)
			} else if says, _ := args[0].Literal(); len(says) < 10 {
				report("%s: %s %s is described as %q", file, d.Keyword, d.Name, says)
			}
		}
	}
}

func modules(w *world, report func(string, ...any)) {
	used := map[string]bool{"bicep/main.bicep": true}
	for _, file := range w.bicepFiles() {
		for _, m := range w.files[file].All("module") {
			used[path.Join(path.Dir(file), m.Target)] = true
		}
	}
	for _, file := range w.bicepFiles() {
		if !used[file] {
			report("%s is not used", file)
		}
	}
}

func parameterFiles(w *world, report func(string, ...any)) {
	main := w.files["bicep/main.bicep"]
	for name, f := range w.files {
		if !strings.HasSuffix(name, ".bicepparam") {
			continue
		}
		want(report, "what "+name+" belongs to", f.Using, "./main.bicep")
		for _, p := range f.All("param") {
			if main.Find(p.Name) == nil {
				report("%s: there is no parameter %s", name, p.Name)
			}
		}
	}
	prod := w.files["bicep/prod.bicepparam"]
	if p := prod.Find("production"); p == nil || bicep.Print(p.Value) != "true" {
		report("prod.bicepparam does not say production = true")
	}
	for _, exists := range []string{"apiExists", "relayExists"} {
		if p := prod.Find(exists); p == nil || strings.Contains(bicep.Print(p.Value), "'false'") {
			report("prod.bicepparam has a default for %s: forgetting it would bring the placeholder back", exists)
		}
	}
}
