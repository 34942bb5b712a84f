package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy says how feedbox push treats failures of one action. A zero member has the value of the variables.
type Policy struct {
	Attempts                     int // negative: no limit
	Backoff, BackoffMax, Timeout time.Duration
	Refused                      []int  // nil: not given; empty: no status refuses
	Then                         string // park, dead-letter or drop; "": park if FEEDBOX_PUSH_PARK is set
}

// firstBackoff is the pause after the first failure without a policy.
const firstBackoff = 500 * time.Millisecond

// readPolicies reads the file of FEEDBOX_PUSH_POLICIES, by action; that of "" is for all others. It reports
// all faults of the file. parks is whether FEEDBOX_PUSH_PARK is set.
func readPolicies(report *report, path string, parks bool) map[string]Policy {
	add := func(problem, hint string) { report.add("FEEDBOX_PUSH_POLICIES", "names "+path+", "+problem, hint) }
	content, err := readFile(path)
	if err == nil && len(content) > maxSecretFile {
		err = errors.New("it has more than 64 KB")
	}
	if err != nil {
		add("which cannot be read: "+err.Error(), "name a JSON file that the user of this process may read")
		return nil
	}
	const form = `write for example {"OrderPaid": {"attempts": 5, "then": "dead-letter"}, "*": {"timeout": "10s"}}`
	actions, err := membersOf(content)
	if err != nil {
		add("which "+err.Error(), form)
		return nil
	}
	all := make(map[string]Policy, len(actions))
	for _, one := range actions {
		fault := func(problem, hint string) { add(fmt.Sprintf("whose policy of %q %s", one.name, problem), hint) }
		members, err := membersOf(one.value)
		action := one.name
		if action == "*" {
			action = ""
		}
		switch _, twice := all[action]; {
		case one.name == "":
			fault("has no action", `write "*" for all other actions`)
		case twice:
			fault("is given twice", "keep the one that is meant")
		case err != nil:
			fault(err.Error(), form)
		}
		all[action] = policyOf(members, parks, fault)
	}
	return all
}

// policyOf reads the members of a policy.
func policyOf(members []member, parks bool, fault func(problem, hint string)) (p Policy) {
	for i, m := range members {
		ok, allowed := true, ""
		duration := func(to *time.Duration, least, most time.Duration) {
			text, isText := decoded[string](m.value)
			d, err := time.ParseDuration(text)
			*to, ok, allowed = d, isText && err == nil && d >= least && d <= most, fmt.Sprintf(`a duration from %s to %s, for example "5s"`, least, most)
		}
		switch m.name {
		case "attempts":
			p.Attempts, ok = decoded[int](m.value)
			ok, allowed = ok && p.Attempts >= 0 && p.Attempts <= 1_000_000, "a whole number from 0, which is no limit, to 1000000"
			p.Attempts = cmp.Or(p.Attempts, -1)
		case "backoff":
			duration(&p.Backoff, 100*time.Millisecond, time.Hour)
		case "backoffMax":
			duration(&p.BackoffMax, 100*time.Millisecond, time.Hour)
		case "timeout":
			duration(&p.Timeout, 100*time.Millisecond, 10*time.Minute)
		case "refused":
			p.Refused, ok = decoded[[]int](m.value)
			ok = ok && !slices.ContainsFunc(p.Refused, func(status int) bool { return status < 400 || status > 499 })
			allowed = "a list of statuses from 400 to 499, for example [400, 422]"
		case "then":
			p.Then, ok = decoded[string](m.value)
			ok, allowed = ok && slices.Contains([]string{"park", "dead-letter", "drop"}, p.Then), `"park", "dead-letter" or "drop"`
			if p.Then == "park" && !parks {
				fault("parks, but FEEDBOX_PUSH_PARK is not set", "set it, or write dead-letter or drop")
			}
		default:
			fault(fmt.Sprintf("has the unknown member %q", m.name), "allowed are attempts, backoff, backoffMax, timeout, refused and then")
		}
		if slices.ContainsFunc(members[:i], func(other member) bool { return other.name == m.name }) {
			fault(fmt.Sprintf("has %s twice", m.name), "keep the one that is meant")
		}
		if !ok {
			fault(fmt.Sprintf("has %s %.60s", m.name, strings.Join(strings.Fields(string(m.value)), " ")), "write "+allowed)
		}
	}
	if first := cmp.Or(p.Backoff, firstBackoff); p.BackoffMax > 0 && p.BackoffMax < first {
		fault(fmt.Sprintf("has backoffMax %s below the first backoff, %s", p.BackoffMax, first), "raise backoffMax, or lower backoff")
	}
	return p
}

// decoded decodes a value that is not null.
func decoded[T any](raw json.RawMessage) (value T, ok bool) {
	var p *T
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return value, false
	}
	return *p, true
}

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a JSON object in their order, also repeated ones, which json.Unmarshal
// would drop.
func membersOf(text []byte) (all []member, err error) {
	object, ok := decoded[map[string]json.RawMessage](text)
	if syntax, isWrong := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &object)); isWrong {
		return nil, fmt.Errorf("is not JSON in line %d: %w", 1+bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n")), syntax)
	}
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for _, err = d.Token(); err == nil && d.More(); {
		var name json.Token
		if name, err = d.Token(); err == nil {
			m := member{name: name.(string)} //nolint:forcetypeassert // the text is valid
			err = d.Decode(&m.value)
			all = append(all, m)
		}
	}
	return all, err
}
