package infra

import "feedbox/tests/infra/bicep"

// resource is one that is deployed.
type resource = bicep.Resource

// check is one rule.
type check struct {
	// name is what the rule demands.
	name string
	run  func(w *world, report func(format string, args ...any))
	// seeds are mistakes that it has to find.
	seeds []seed
}

// seed is a mistake: in file, old becomes new. old must be there; where it is empty,
// file is added.
type seed struct{ file, old, new string }

// checks are all rules, by family.
func checks() []check {
	var all []check
	for _, family := range [][]check{
		databaseChecks, messagingChecks, rightsChecks, appChecks, settingsChecks, wiringChecks, watchingChecks, azdChecks, kubernetesChecks, kubernetesPlaceChecks, kubernetesPairChecks, imageChecks, workflowChecks,
	} {
		all = append(all, family...)
	}
	return all
}

// want reports what is not as it has to be.
func want(report func(string, ...any), what string, got, wanted any) {
	if got != wanted {
		report("%s is %v, it has to be %v", what, got, wanted)
	}
}
