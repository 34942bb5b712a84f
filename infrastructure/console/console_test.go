package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "12ms": 12 * time.Millisecond, "1.2s": 1230 * time.Millisecond, "42s": 42 * time.Second,
		"3m20s": 200 * time.Second, "3m": 180*time.Second + time.Millisecond, "4h5m": 4*time.Hour + 5*time.Minute, "2d7h": 55 * time.Hour,
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestTableKeepsForeignTextInItsPlace(t *testing.T) {
	table := NewTable("KEY", "ERROR")
	table.Row("k", "first\nsecond\x1b[2Jthird\t")
	table.Row("other", "")
	var out bytes.Buffer
	if err := table.Write(&out, "none"); err != nil {
		t.Fatal(err)
	}
	if want := "KEY    ERROR\nk      first second [2Jthird\nother  -\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	if err := NewTable("KEY").Write(&out, "none"); err != nil || out.String() != "none\n" {
		t.Errorf("an empty table writes %q, %v", out.String(), err)
	}
	if got := Short("ein Käse, zwei", 8); got != "ein Käs…" {
		t.Errorf("Short = %q", got)
	}
}

func TestConfirm(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for _, in := range []Prompt{{In: strings.NewReader("yes\n"), Out: &bytes.Buffer{}}, {In: null, Out: null}} {
		if err := in.Confirm("x"); !errors.Is(err, ErrNotAsked) {
			t.Errorf("without a terminal: %v, want %v", err, ErrNotAsked)
		}
	}
	if err := (Prompt{Yes: true}).Confirm("x"); err != nil {
		t.Error(err)
	}
	for answer, want := range map[string]error{"yes\n": nil, "YES\r\n": nil, "yes": nil, "y\n": ErrDeclined, "\n": ErrDeclined, "": ErrDeclined, "no\n": ErrDeclined} {
		var out bytes.Buffer
		if err := (Prompt{In: strings.NewReader(answer), Out: &out}).ask("All is sent again."); !errors.Is(err, want) {
			t.Errorf("answer %q: %v, want %v", answer, err, want)
		}
		if !strings.HasPrefix(out.String(), "All is sent again.\nType yes") {
			t.Errorf("asked %q", out.String())
		}
	}
}

func TestAdviceTravels(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", Advise(fmt.Errorf("inner: %w", Advise(cause, "near")), "far"))
	if got := NextOf(err); got != "near" {
		t.Errorf("next %q, want that nearest to the cause", got)
	}
	if err.Error() != "outer: inner: cause" || !errors.Is(err, cause) {
		t.Errorf("%v does not say or wrap its cause", err)
	}
	if Advise(nil, "x") != nil || NextOf(cause) != "" {
		t.Error("advice out of nothing")
	}
}
