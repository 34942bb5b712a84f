package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"feedbox/infrastructure/lab/verify"
)

// A correct run with two contacts.
const (
	goodHistory = `{"contact":"a","outcome":"acked"}
{"contact":"a","outcome":"acked"}
{"contact":"b","outcome":"acked"}
{"contact":"b","outcome":"unknown"}
{"outcome":"unknown"}
`
	goodTopic = `{"id":"a1","session":"a","subject":"Created","version":1,"sequence":1,"number":1}
{"id":"b1","session":"b","subject":"Created","version":1,"sequence":1,"number":2}
{"id":"a2","session":"a","subject":"Renamed","version":2,"sequence":2,"number":3}

`
	goodStore = `{"kind":"aggregate","id":"a","version":2,"sequence":2}
{"kind":"aggregate","id":"b","version":1,"sequence":1}
{"kind":"event","id":"a1","key":"a","action":"Created","version":1,"sequence":1}
{"kind":"event","id":"a2","key":"a","action":"Renamed","version":2,"sequence":2}
{"kind":"event","id":"b1","key":"b","action":"Created","version":1,"sequence":1}
`
)

// verifyFiles writes the files and runs the command on them. It omits an empty store.
func verifyFiles(t *testing.T, history, topic, store string, more ...string) (code int, out, errOut string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"verify"}
	for name, text := range map[string]string{"history": history, "topic": topic, "store": store} {
		if name == "store" && text == "" {
			continue
		}
		path := filepath.Join(dir, name+".jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--"+name, path)
	}
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append(args, more...), &stdout, &stderr, nil)
	return code, stdout.String(), stderr.String()
}

func TestVerifyAcceptsAGoodRun(t *testing.T) {
	for _, store := range []string{goodStore, ""} {
		code, out, errOut := verifyFiles(t, goodHistory, goodTopic, store)
		if code != exitOK || errOut != "" {
			t.Errorf("exit code %d: %s%s", code, out, errOut)
		}
	}
}

func TestVerifyReportsWhatItChecked(t *testing.T) {
	code, out, _ := verifyFiles(t, goodHistory, goodTopic, goodStore, "-o", "json")
	var r verify.Verdict
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	want := []string{
		"2 aggregates, 3 events", "3 changes acknowledged, 2 of unknown outcome, 3 events, 0 parked",
		"3 messages in 2 sessions", "3 messages", "3 messages",
	}
	for i, p := range r.Promises {
		if p.Checked != want[i] || !p.Tested || p.Broken != 0 {
			t.Errorf("%s: %+v, want %q", p.ID, p, want[i])
		}
	}
	if !r.Kept || len(r.Promises) != len(want) {
		t.Errorf("report %+v", r)
	}
}

// A redelivered message is not a duplicate; a message sent twice is.
func TestVerifyDistinguishesRedeliveryFromDuplicate(t *testing.T) {
	again := `{"id":"a2","session":"a","subject":"Renamed","version":2,"sequence":2,"number":3}` + "\n"
	if code, out, _ := verifyFiles(t, goodHistory, goodTopic+again, goodStore); code != exitOK {
		t.Errorf("redelivered: exit code %d: %s", code, out)
	}
	ghost := strings.ReplaceAll(again, "a2", "a3") // a redelivery has the id of the first delivery, too
	if code, out, _ := verifyFiles(t, goodHistory, goodTopic+ghost, goodStore); code != exitBroken || !strings.Contains(out, "I5 message a3 of session a") {
		t.Errorf("another message with the number of one: exit code %d: %s", code, out)
	}
	twice := strings.Replace(again, `"number":3`, `"number":4`, 1)
	code, out, _ := verifyFiles(t, goodHistory, goodTopic+twice, goodStore)
	if code != exitBroken || !strings.Contains(out, "I4 message a2 of session a arrived twice") {
		t.Errorf("sent twice: exit code %d: %s", code, out)
	}
}

// Empty files break no promise, and must not pass either.
func TestVerifyFailsIfNothingWasChecked(t *testing.T) {
	for name, c := range map[string]struct {
		history, topic, store string
		code                  int
		want                  string
	}{
		"nothing":              {"", "", "", exitUsage, "nothing to check: the history has no acknowledged change; run feedbox-dev load"},
		"nothing acknowledged": {`{"outcome":"unknown"}`, "", "", exitUsage, "nothing to check: the history"},
		"lost without a store": {goodHistory, "", "", exitBroken, "a promise of the outbox is broken"},
		"all lost":             {goodHistory, "", goodStore, exitBroken, "a promise of the outbox is broken"},
	} {
		if code, out, errOut := verifyFiles(t, c.history, c.topic, c.store); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
	}
}

func TestVerifyFindsEachBreach(t *testing.T) {
	without := func(text, line string) string {
		var kept []string
		for l := range strings.Lines(text) {
			if !strings.Contains(l, line) {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "")
	}
	for name, c := range map[string]struct{ history, topic, store, want string }{
		"event without its change":     {goodHistory, goodTopic, without(goodStore, `"aggregate","id":"b"`), "I1 key b"},
		"change without its event":     {goodHistory, goodTopic, without(goodStore, `"id":"a2"`), "I1 aggregate a"},
		"acknowledged and not stored":  {goodHistory + `{"contact":"a","outcome":"acked"}`, goodTopic, goodStore, "I2 aggregate a"},
		"stored and not sent":          {goodHistory, without(goodTopic, `"a2"`), goodStore, "I2 event a2"},
		"gap":                          {goodHistory, without(goodTopic, `"a1"`), goodStore, "I3 session a"},
		"ghost":                        {goodHistory, goodTopic + `{"id":"g","session":"b","subject":"Renamed","version":2,"sequence":2}`, goodStore, "I5 message g"},
		"no store: acknowledged, lost": {goodHistory, without(goodTopic, `"a2"`), "", "I2 aggregate a"},
		"no store: gap":                {goodHistory, without(goodTopic, `"a1"`), "", "I3 session a"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := verifyFiles(t, c.history, c.topic, c.store)
			if code != exitBroken || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, exitBroken, c.want, out, errOut)
			}
		})
	}
}

// The table has the number of all breaches, also after many of another promise.
func TestVerifyCountsTheBreachesOfEachPromise(t *testing.T) {
	var topic, store strings.Builder
	for n := range 101 {
		fmt.Fprintf(&topic, `{"id":"ghost%d","session":"g%d","subject":"Created","version":1,"sequence":1}`+"\n", n, n)
		fmt.Fprintf(&store, `{"kind":"aggregate","id":"c%d","version":1,"sequence":1}`+"\n", n)
	}
	code, out, _ := verifyFiles(t, goodHistory, goodTopic+topic.String(), goodStore+store.String(), "-o", "json")
	var r verify.Verdict
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitBroken {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	for i, want := range []int{101, 1, 0, 0, 101} {
		if p := r.Promises[i]; p.Broken != want {
			t.Errorf("%s: %d breaches, want %d", p.ID, p.Broken, want)
		}
	}
	if n := len(r.Breaches); n != 43 {
		t.Errorf("%d lines, want 20 examples and the number of the others for each of two promises, and one breach of I2: %q", n, r.Breaches)
	}
}

func TestVerifyAcceptsParkedEvents(t *testing.T) {
	topic := strings.Split(goodTopic, "\n")
	code, out, _ := verifyFiles(t, goodHistory, strings.Join(topic[:2], "\n"), goodStore+`{"kind":"parked","id":"a2"}`)
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestVerifyRefusesWrongInput(t *testing.T) {
	for name, c := range map[string]struct{ history, topic, store, want string }{
		"not JSON":          {"hello\n", goodTopic, goodStore, "history.jsonl:1: not a record of this file"},
		"cut off":           {goodHistory, goodTopic + `{"id":"a3","ses`, goodStore, "topic.jsonl:5: the JSON object is cut off"},
		"another file":      {goodTopic, goodTopic, goodStore, `history.jsonl:1: not a record of this file: unknown field "id"`},
		"two on a line":     {goodHistory + "{\"outcome\":\"unknown\"}{}\n", goodTopic, goodStore, "history.jsonl:6: more than one"},
		"unknown outcome":   {`{"contact":"a","outcome":"maybe"}`, goodTopic, goodStore, `history.jsonl:1: outcome is "maybe"`},
		"whose change":      {`{"outcome":"acked"}`, goodTopic, goodStore, "history.jsonl:1: contact is missing"},
		"message, no id":    {goodHistory, `{"session":"a","version":1,"sequence":1}`, goodStore, "topic.jsonl:1: id is missing"},
		"no session":        {goodHistory, `{"id":"a","version":1,"sequence":1}`, goodStore, "topic.jsonl:1: session is missing"},
		"no sequence":       {goodHistory, `{"id":"a","session":"a","version":1}`, goodStore, "topic.jsonl:1: sequence is 0"},
		"kind":              {goodHistory, goodTopic, "\n" + `{"kind":"car","id":"a"}`, `store.jsonl:2: kind is "car"`},
		"event, no key":     {goodHistory, goodTopic, `{"kind":"event","id":"a","version":1,"sequence":1}`, "store.jsonl:1: key is missing"},
		"contact, no count": {goodHistory, goodTopic, `{"kind":"aggregate","id":"a"}`, "store.jsonl:1: sequence is 0"},
		"long line":         {goodHistory, goodTopic + strings.Repeat(" ", lineLimit) + "{}", goodStore, "topic.jsonl:5: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := verifyFiles(t, c.history, c.topic, c.store)
			if code != exitUsage || !strings.Contains(errOut, c.want) || out != "" {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, exitUsage, c.want, out, errOut)
			}
		})
	}
}

// healthcheck fails with 1 where other commands fail with 2, because a container health check
// allows 0 and 1 only.
func TestHealthcheckFailsWithoutAProcess(t *testing.T) {
	for _, command := range []string{"healthcheck", "healthcheck --ready-file nowhere"} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), strings.Fields(command), &out, &errOut, nil); code != exitFailure || !strings.Contains(errOut.String(), "feedbox-dev") {
			t.Errorf("%s: exit code %d: %s", command, code, errOut.String())
		}
	}
}

func TestWrongUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ready.json")
	if err := os.WriteFile(file, []byte(`{"cosmosEndpoint":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"verify": "--history and --topic are required",
		"verify --history nowhere --topic nowhere":                  "no such file",
		"verify --history a --topic b -o xml":                       `"xml" is no format`,
		"verify a":                                                  "takes no arguments",
		"dump --topic a":                                            "no feedbox-dev runs on the data folder .feedbox",
		"env":                                                       "start it, change to the folder where it was started",
		"poison --ready-file nowhere":                               "is feedbox-dev running with --ready-file?",
		"dump --ready-file a":                                       "give --topic, --store or both",
		"dump --ready-file nowhere --store a":                       "is feedbox-dev running with --ready-file?",
		"dump --ready-file a --store b --idle 1ms":                  "at least 100ms",
		"load --history a":                                          "no feedbox-dev runs on the data folder .feedbox",
		"load --history a --api http://x --ready-file b":            "exclude each other",
		"load --api http://127.0.0.1:1":                             "--history is missing",
		"load --api http://x --history a --changes 5 --contacts 10": "at least as many as contacts",
		"load --history a --ready-file " + file:                     "there is no API",
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), strings.Fields(command), &out, &errOut, nil)
		if code != exitUsage || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s", command, code, exitUsage, want, errOut.String())
		}
	}
}
