package main

import (
	"fmt"
	"slices"
	"strings"

	"feedbox/tests/bench/api"
	"feedbox/tests/bench/cosmos"
	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/processor"
	"feedbox/tests/bench/relay"
	"feedbox/tests/bench/servicebus"
)

// stage is one part of the system that is measured.
type stage struct {
	name            string
	measure, growth measure.Stage
}

// allStages lists the stages in the order of their measurement.
var allStages = []stage{
	{"api", api.Measure, api.Growth},
	{"cosmos", cosmos.Measure, cosmos.Growth},
	{"servicebus", servicebus.Measure, servicebus.Growth},
	{"changefeed", processor.Measure, processor.Growth},
	{"relay", relay.Measure, relay.Growth},
}

func stageNames() []string {
	names := make([]string, len(allStages))
	for i, s := range allStages {
		names[i] = s.name
	}
	return names
}

// stagesOf returns the stages in a comma-separated list; an empty list means all.
func stagesOf(list string) ([]stage, error) {
	if list == "" {
		return allStages, nil
	}
	var found []stage
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(stageNames(), strings.TrimSpace(name))
		if i < 0 {
			return nil, usageError(fmt.Sprintf("there is no stage %q; there are %s", name, strings.Join(stageNames(), ", ")))
		}
		found = append(found, allStages[i])
	}
	return found, nil
}
