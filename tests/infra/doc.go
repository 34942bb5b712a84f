// Package infra holds the deployment against rules: what bicep/, azure.yaml, the
// Dockerfile, bicep/kubernetes and .github/workflows say is read, the Bicep is
// evaluated as Azure would, and each rule is a named check with mistakes that it has
// to find.
//
// Files: world.go reads and evaluates everything; checks_*.go hold the rules, one
// family each; policy_test.go runs them, and runs each again over texts with a mistake
// in them.
//
// rights_test.go then runs API and relay on the emulators with the rights that the Bicep
// grants and no others: gate_test.go stands before the Cosmos DB emulator and enforces
// them as the service's data plane does. The processes' goroutines end with each test;
// the package is checked for leaks.
//
// What it does not do: it knows no schema of Azure's. bicep-check.sh does that, where
// the type data is at hand.
package infra
