// Package infra checks the deployment. It reads bicep/, azure.yaml, the Dockerfile,
// bicep/kubernetes and .github/workflows, evaluates the Bicep as Azure would, and runs
// named checks. Each check must also find some mistakes that the tests make on purpose.
//
// Files: world.go reads and evaluates everything; checks_*.go have the rules, one family
// each; policy_test.go runs them, also with each mistake. rules_test.go runs the alerts of
// Prometheus with promtool.
//
// rights_test.go then runs API and relay on the emulators with exactly the rights that the
// Bicep grants. gate_test.go is a proxy in front of the Cosmos DB emulator that enforces
// them like the data plane of the service. The goroutines of the processes end with each
// test; the package is checked for leaks.
//
// The package does not know Azure's schemas. bicep-check.sh checks them if the type data is
// installed.
package infra
