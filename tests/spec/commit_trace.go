package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"feedbox/tests/spec/steps"
)

// commitAttempts is the default of Options.Attempts in package unitofwork.
const commitAttempts = 3

// commitModule returns the module that TLC loads for a recording of clients, its configuration, and
// the lines of its only behavior.
func commitModule(all []steps.CommitStep) (module, config string, names []string, lines [][]string) {
	versions := map[string]int{} // ETags in the order in which they were written; 0 is the first that was read
	written := 0
	var aggregate string
	clients, commits := map[string]int{}, map[string]string{} // commits and the last batch's first id, by client
	back := map[string]bool{}                                 // the client reads back
	most := 1
	var out []string
	add := func(kind string, args ...any) { out = append(out, line(kind, args...)) }
	for i := range all {
		switch s := &all[i]; s.Do {
		case "get":
			switch {
			case back[s.Client] && s.ID == commits[s.Client] && s.Kind == "lost":
				back[s.Client] = false
				add("back", s.Client, "lost")
			case back[s.Client] && s.ID == commits[s.Client] && s.Kind == "missing":
				back[s.Client] = false
				add("back", s.Client, "missing")
			case back[s.Client] && s.ID != commits[s.Client]:
				// The other documents of the batch are read for their ETags. Without all of them the
				// outcome is unknown.
				back[s.Client] = false
				if s.Kind == "lost" {
					add("back", s.Client, "lost")
				} else {
					add("back", s.Client, "found")
				}
			case !back[s.Client] && s.Kind == "found":
				if aggregate == "" {
					aggregate = s.ID
				}
				if s.ID == aggregate {
					clients[s.Client]++
					most = max(most, clients[s.Client])
					add("read", s.Client, versions[s.ETag])
				}
			}
		case "send":
			commits[s.Client] = s.ID
			add("send", s.Client, s.Call, versions[s.Match])
		case "arrive":
			if s.Kind == "stored" {
				written++
				versions[s.ETag] = written
			}
			add("arrive", s.Call, s.Kind)
		case "answer":
			back[s.Client] = s.Kind == "taken"
			add("answer", s.Client, s.Kind, s.Call)
		case "result":
			add("result", s.Client, s.Kind)
		}
	}
	var defs, cfg strings.Builder
	defs.WriteString("---- MODULE MC ----\nEXTENDS CommitTrace\n")
	cfg.WriteString("SPECIFICATION Explained\nCHECK_DEADLOCK FALSE\nCONSTANTS\n")
	for name, value := range map[string]string{
		"Clients": string(set(slices.Sorted(maps.Keys(clients)))), "Attempts": fmt.Sprint(commitAttempts), "Commits": fmt.Sprint(most),
		"WithEvent": "TRUE", "Trace": "<<\n" + strings.Join(out, ",\n") + ">>",
	} {
		fmt.Fprintf(&defs, "c_%s == %s\n", name, value)
		fmt.Fprintf(&cfg, "  %s <- c_%s\n", name, name)
	}
	defs.WriteString("====\n")
	return defs.String(), cfg.String(), []string{""}, [][]string{out}
}
