package main

import (
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
)

// exception is a live test, or subtests, that cannot pass here, with the reason.
type exception struct{ pattern, reason string }

var exceptions = []exception{
	{"TestReceiveWithDelay", "needs an external fault injector"},
	{"TestReceiveWithDifferentWaitTime", "demands that 1,000 of 10,000 messages do not arrive within 20 ms; a local broker is faster"},
	{"UnauthorizedCreds/invalid_identity_creds", "subtests that log in to Entra ID"},
}

func exceptionFor(t test) (exception, bool) {
	for _, e := range exceptions {
		if !strings.Contains(e.pattern, "/") && regexp.MustCompile("^"+e.pattern+"$").MatchString(t.name) {
			return e, true
		}
	}
	return exception{}, false
}

// report prints the results of the live tests and returns the exit code.
func report(w io.Writer, live map[test]bool, results map[test]*result, o *options) int {
	tests := make([]test, 0, len(live))
	for t := range live {
		tests = append(tests, t)
	}
	sort.Slice(tests, func(i, j int) bool {
		return tests[i].pkg < tests[j].pkg || tests[i].pkg == tests[j].pkg && tests[i].name < tests[j].name
	})
	filter := regexp.MustCompile(o.run)
	passed, failed, excepted := 0, 0, 0
	byPackage := map[string][2]int{}
	for _, t := range tests {
		if !filter.MatchString(t.name) {
			continue
		}
		count := byPackage[t.pkg]
		count[1]++
		r := results[t]
		e, isException := exceptionFor(t)
		switch {
		case r != nil && r.action == "pass":
			passed++
			count[0]++
		case isException && !o.all:
			excepted++
			fmt.Fprintf(w, "not run  %s%s: %s\n", t.pkg, " "+t.name, e.reason)
		default:
			failed++
			what := "did not end"
			if r != nil && r.action != "" {
				what = r.action
			}
			fmt.Fprintf(w, "%-8s %s %s\n", what, t.pkg, t.name)
			if o.verbose && r != nil {
				fmt.Fprintln(w, r.output.String())
			}
		}
		byPackage[t.pkg] = count
	}
	for pkg, n := range byPackage {
		fmt.Fprintf(w, "%3d of %3d  %s\n", n[0], n[1], sdkModule+pkg)
	}
	fmt.Fprintf(w, "%d of %d live tests pass, %d fail, %d not run\n", passed, passed+failed+excepted, failed, excepted)
	if failed > 0 || o.run == "" && passed < o.min {
		return 1
	}
	return 0
}
