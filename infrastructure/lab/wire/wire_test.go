package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// A report would be silent about a row that is not parsed.
func TestEveryRowOfUnverifiedIsParsed(t *testing.T) {
	lines := 0
	for line := range strings.Lines(unverified) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| |") && !strings.HasPrefix(line, "| mark |") && !strings.HasPrefix(line, "| **") {
			lines++
		}
	}
	rows, seen := Rows(), map[string]bool{}
	for _, r := range rows {
		if seen[r.ID] || r.Behaviour == "" || r.Mark == "" {
			t.Errorf("row %+v is incomplete or there twice", r)
		}
		seen[r.ID] = true
	}
	if len(rows) != lines || lines < 60 {
		t.Errorf("%d rows, want %d", len(rows), lines)
	}
}

func TestOneContradictedScriptContradictsTheRow(t *testing.T) {
	row := Row{Scripts: []string{"a", "b"}}
	for _, c := range []struct{ a, b, want Verdict }{
		{Confirmed, Confirmed, Confirmed},
		{Confirmed, NotReached, NotReached},
		{Confirmed, "", NotReached},
		{Contradicted, NotReached, Contradicted},
		{"", Contradicted, Contradicted},
	} {
		outcomes := map[string]Outcome{}
		for name, v := range map[string]Verdict{"a": c.a, "b": c.b} {
			if v != "" {
				outcomes[name] = Outcome{Script: name, Verdict: v}
			}
		}
		if got, evidence := row.Judge(outcomes); got != c.want || len(evidence) != 2 {
			t.Errorf("%s and %s: %s, %d outcomes; want %s", c.a, c.b, got, len(evidence), c.want)
		}
	}
	if got, _ := (&Row{}).Judge(nil); got != NotReached {
		t.Errorf("a row without scripts is %s", got)
	}
}

// Otherwise an account that is throttled, unreachable or closed would contradict everything.
func TestOnlyAnAnswerContradicts(t *testing.T) {
	reply := func(status int, sub string) error {
		r := &http.Response{StatusCode: status, Header: http.Header{"X-Ms-Substatus": {sub}}}
		return fmt.Errorf("wrapped: %w", &azcore.ResponseError{StatusCode: status, RawResponse: r})
	}
	for _, c := range []struct {
		err  error
		want Verdict
	}{
		{reply(400, ""), Contradicted},
		{reply(404, "0"), Contradicted},
		{reply(404, "1003"), NotReached},
		{reply(404, "1013"), NotReached},
		{reply(401, ""), NotReached},
		{reply(403, ""), NotReached},
		{reply(429, "3200"), NotReached},
		{reply(503, ""), NotReached},
		{context.DeadlineExceeded, NotReached},
		{errors.New("connection reset by peer"), NotReached},
		{&azservicebus.Error{Code: azservicebus.CodeLockLost}, Contradicted},
		{&azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, NotReached},
		{&amqp.Error{Condition: "amqp:not-allowed"}, Contradicted},
		{&amqp.Error{Condition: "com.microsoft:server-busy"}, NotReached},
	} {
		if o := Play("x", func(t *Trial) { t.Must("call", c.err) }); o.Verdict != c.want || len(o.Details) != 1 {
			t.Errorf("%v: %s %q, want %s", c.err, o.Verdict, o.Details, c.want)
		}
	}
	if o := Play("x", func(*Trial) { panic("no such header") }); o.Verdict != NotReached || !strings.Contains(o.Details[0], "no such header") {
		t.Errorf("a script that fails itself: %s %q", o.Verdict, o.Details)
	}
}
