package main

// check lists the inputs of a check. A package or file that the check depends on and that is
// not listed here lets an old stamp match, so a list is generous rather than exact.
type check struct {
	dir      string   // the module that packages belong to, relative to the root
	packages []string // with their tests, and all that they import
	tags     string
	files    []string // files and folders, relative to the root
	tools    []string // programs, with the flag that prints the version
}

// everywhere are files that every check depends on. The Makefile has the commands.
var everywhere = []string{"go.mod", "go.sum", "Makefile"}

var checks = map[string]check{
	"lint": {
		packages: []string{"./..."}, tags: "faults,conformance,browser",
		files: []string{".golangci.yml"},
	},
	"module-check": {
		packages: []string{"./..."},
		files:    []string{"tests/module", "tests/adopter"},
	},
	"spec": {
		// It records runs of the processor, of the relay and of commits.
		packages: []string{"./tests/spec/...", "./changefeed/...", "./infrastructure/relay/relayservice", "./infrastructure/store/cosmos"},
		files:    []string{"tests/spec"},
		tools:    []string{"java --version", "mvn --version"},
	},
	"bicep-check": {
		files: []string{"bicep", "tests/infra/bicep-check.sh", "../shared/azure-types", "../shared/tools/bicep-check"},
		tools: []string{"node --version"},
	},
	"browser": {
		packages: []string{"./tests/page", "./cmd/feedbox", "./cmd/feedbox-dev"}, tags: "browser",
		files: []string{"tests/page"},
		tools: []string{"chromium --version", "npm --version"},
	},
	"conformance-cosmos": {
		packages: []string{"./tests/conformance/cosmos/..."}, tags: "conformance",
		files: []string{"tests/conformance/cosmos"},
		tools: []string{"node --version", "python3 --version", "java --version", "mvn --version"},
	},
	"conformance-servicebus": {
		packages: []string{"./tests/conformance/servicebus/..."},
		files:    []string{"tests/conformance/servicebus"},
		tools:    []string{"node --version", "python3 --version", "java --version", "mvn --version"},
	},
}
