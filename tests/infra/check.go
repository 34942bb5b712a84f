package infra

import "feedbox/tests/infra/bicep"

// resource is a deployed resource.
type resource = bicep.Resource

// check is one rule.
type check struct {
	// name states the rule.
	name string
	run  func(w *world, report func(format string, args ...any))
	// seeds are mistakes that the check must find.
	seeds []seed
}

// seed is a mistake: in file, old is replaced by new. old must exist in file; if old is
// empty, file is added.
type seed struct{ file, old, new string }

// checks returns all rules by family.
func checks() []check {
	var all []check
	for _, family := range [][]check{
		databaseChecks, messagingChecks, rightsChecks, appChecks, settingsChecks, wiringChecks, watchingChecks, azdChecks, kubernetesChecks, kubernetesPlaceChecks, kubernetesPairChecks, imageChecks, workflowChecks,
	} {
		all = append(all, family...)
	}
	return all
}

// want reports a value that differs from the wanted one.
func want(report func(string, ...any), what string, got, wanted any) {
	if got != wanted {
		report("%s is %v, it has to be %v", what, got, wanted)
	}
}
