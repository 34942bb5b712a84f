// Package infra checks the deployment: it reads bicep/, azure.yaml, the Dockerfile,
// bicep/kubernetes and .github/workflows, evaluates the Bicep as Azure would, and runs
// named checks, each of which also has to find some mistakes made on purpose.
//
// Files: world.go reads and evaluates everything; checks_*.go hold the rules, one
// family each; policy_test.go runs them, and runs each again over texts with a mistake
// in them.
//
// rights_test.go then runs API and relay on the emulators with the rights that the Bicep
// grants and no others: gate_test.go is a proxy in front of the Cosmos DB emulator and enforces
// them as the service's data plane does. The processes' goroutines end with each test;
// the package is checked for leaks.
//
// It does not know Azure's schemas. bicep-check.sh checks those, where the type data is
// installed.
package infra
