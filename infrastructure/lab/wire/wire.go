// Package wire has the list of assumptions about Azure (UNVERIFIED.md) and the results of the scripts
// that check them. Packages cosmoswire and buswire have the scripts; the tests of tests/conformance and
// feedbox-dev certify play them.
package wire

import (
	"context"
	"crypto/rand"
	_ "embed" // UNVERIFIED.md
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// Verdict is the result of a script, or of a row of UNVERIFIED.md.
type Verdict string

// The verdicts.
const (
	Confirmed    Verdict = "confirmed"
	Contradicted Verdict = "contradicted"
	NotReached   Verdict = "not reached" // nothing is known: it did not run, or it was not answered
)

// Outcome is the result of one script.
type Outcome struct {
	Script  string        `json:"script"` // its name in UNVERIFIED.md
	Verdict Verdict       `json:"verdict"`
	Details []string      `json:"details,omitempty"` // why it is not confirmed
	Took    time.Duration `json:"tookNs"`
}

// Trial collects the findings of one script while it runs. Only the script's goroutine may use it.
type Trial struct {
	contradictions []string
	unknown        []string
}

// Contradict records that the service behaved in another way than UNVERIFIED.md says.
func (t *Trial) Contradict(format string, args ...any) {
	t.contradictions = append(t.contradictions, fmt.Sprintf(format, args...))
}

// Must ends the script if err is not nil. If the service refused the call, the script is contradicted;
// after other errors nothing is known.
func (t *Trial) Must(what string, err error) {
	if err == nil {
		return
	}
	text := fmt.Sprintf("%s: %v", what, err)
	if refused(err) {
		t.contradictions = append(t.contradictions, text)
	} else {
		t.unknown = append(t.unknown, text)
	}
	t.Stop()
}

type stopped struct{}

// Stop ends the script.
func (t *Trial) Stop() { panic(stopped{}) }

// Pause waits, or ends the script when ctx ends.
func (t *Trial) Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		t.Must("pause", ctx.Err())
	}
}

// Play runs a script.
func Play(name string, run func(t *Trial)) Outcome {
	t, began := &Trial{}, time.Now()
	t.run(run)
	o := Outcome{Script: name, Verdict: Confirmed, Details: slices.Concat(t.contradictions, t.unknown), Took: time.Since(began)}
	switch {
	case len(t.contradictions) > 0:
		o.Verdict = Contradicted
	case len(t.unknown) > 0:
		o.Verdict = NotReached
	}
	return o
}

func (t *Trial) run(run func(t *Trial)) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil, stopped:
		default: // an answer that the script does not expect, such as a missing header
			t.unknown = append(t.unknown, fmt.Sprintf("the script failed: %v\n%s", r, debug.Stack()))
		}
	}()
	run(t)
}

// refused reports whether the service itself refused a call because of its content. Missing rights,
// throttling, timeouts and broken connections say nothing about the behaviour.
func refused(err error) bool {
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		if reply.StatusCode == http.StatusNotFound && reply.RawResponse != nil {
			sub := reply.RawResponse.Header.Get("x-ms-substatus") // its container is new (1013) or gone (1003)
			return sub != "1013" && sub != "1003"
		}
		return reply.StatusCode >= 400 && reply.StatusCode < 500 && !slices.Contains([]int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests,
		}, reply.StatusCode)
	}
	if bus, ok := errors.AsType[*azservicebus.Error](err); ok {
		return bus.Code == azservicebus.CodeNotFound || bus.Code == azservicebus.CodeLockLost
	}
	if condition, ok := errors.AsType[*amqp.Error](err); ok {
		return !slices.Contains([]amqp.ErrCond{
			amqp.ErrCondUnauthorizedAccess, amqp.ErrCondInternalError, amqp.ErrCondResourceLimitExceeded, "com.microsoft:server-busy", "com.microsoft:timeout", "com.microsoft:entity-disabled",
		}, condition.Condition)
	}
	return false
}

// RandomName returns a name that no one else uses.
func RandomName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

//go:embed UNVERIFIED.md
var unverified string

// Row is a row of UNVERIFIED.md: one behaviour that was never observed on Azure.
type Row struct {
	ID        string   `json:"id"` // such as C1
	Behaviour string   `json:"behaviour"`
	Mark      string   `json:"mark"`       // D documented, S implied, G guessed; several with their parts
	Verify    string   `json:"verifyWith"` // its scripts, and which part of it they do not check
	Scripts   []string `json:"-"`          // such as cosmos/batch-is-atomic
}

var (
	rowID  = regexp.MustCompile(`^[A-Z]\d+$`)
	script = regexp.MustCompile("`((?:cosmos|servicebus)/[a-z0-9-]+)`")
)

// Rows returns the rows of UNVERIFIED.md.
func Rows() []Row {
	var rows []Row
	for line := range strings.Lines(unverified) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 4 || !rowID.MatchString(strings.TrimSpace(cells[0])) {
			continue
		}
		plain := func(cell string) string { return strings.TrimSpace(strings.ReplaceAll(cell, "`", "")) }
		row := Row{ID: plain(cells[0]), Behaviour: plain(cells[1]), Mark: plain(cells[2]), Verify: plain(cells[len(cells)-1])}
		for _, named := range script.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			row.Scripts = append(row.Scripts, named[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// Scripts returns the names of all scripts that UNVERIFIED.md names, with their prefixes.
func Scripts() map[string]bool {
	names := map[string]bool{}
	for _, named := range script.FindAllStringSubmatch(unverified, -1) {
		names[named[1]] = true
	}
	return names
}

// Judge returns the verdict on a row. One contradicted script contradicts it; it is confirmed if all of
// its scripts are. The outcomes that decided are returned, too.
func (r *Row) Judge(outcomes map[string]Outcome) (Verdict, []Outcome) {
	verdict, evidence := Confirmed, []Outcome{}
	for _, name := range r.Scripts {
		o, played := outcomes[name]
		switch {
		case !played:
			o = Outcome{Script: name, Verdict: NotReached, Details: []string{"it did not run"}}
			fallthrough
		case o.Verdict == NotReached:
			if verdict == Confirmed {
				verdict = NotReached
			}
		case o.Verdict == Contradicted:
			verdict = Contradicted
		}
		evidence = append(evidence, o)
	}
	if len(r.Scripts) == 0 {
		verdict = NotReached
	}
	return verdict, evidence
}
