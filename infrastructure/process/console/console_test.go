package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
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
}

// The text shows control characters of 7 and 8 bits, and JSON keeps its value.
func TestForeignTextCannotControlTheTerminal(t *testing.T) {
	if got, want := Plain("a\nb\t\x1b[2J\u009b\u202e\r é"), "a\nb\t\\u001b[2J\\u009b\\u202e\\u000d é"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var out bytes.Buffer
	if err := JSONLine(&out, "\u009b2J"); err != nil || out.String() != `"\u009b2J"`+"\n" {
		t.Errorf("%q, %v", out.String(), err)
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

func TestAdviceSurvivesWrapping(t *testing.T) {
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

func TestStyle(t *testing.T) {
	for environ, want := range map[string]bool{"": false, "NO_COLOR=": false, "NO_COLOR=1": true, "NO_COLOR=1 NO_COLOR=": false, "TERM=dumb": true, "TERM=xterm": false} {
		if got := NoColour(strings.Fields(environ)); got != want {
			t.Errorf("%q: no colour is %v, want %v", environ, got, want)
		}
	}
	if got := NewStyle(&bytes.Buffer{}, false).Bad("x"); got != "x" {
		t.Errorf("not on a terminal: %q", got)
	}
	if got := (Style{on: true}).Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("on a terminal: %q", got)
	}
}

// However long its cells are, a table has no line beyond 80 characters, as long as its
// last column is what is long, and loses nothing of it.
func TestTableFitsATerminal(t *testing.T) {
	for _, first := range []string{"k", strings.Repeat("k", 36), strings.Repeat("k", 70)} {
		for _, last := range []string{"short", "first the cause, " + strings.Repeat("then much more ", 20), strings.Repeat("x", 200)} {
			table := NewTable("KEY", "N", "ERROR")
			table.Row(first, 1, last)
			table.Row("z", 2, "")
			var out bytes.Buffer
			if err := table.Write(&out, ""); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if n := len([]rune(line)) - 1; n > 80 {
					t.Errorf("%d characters: %s", n, line)
				}
			}
			all := strings.Join(strings.Fields(out.String()), "")
			if !strings.Contains(all, strings.Join(strings.Fields(last), "")) {
				t.Errorf("%q is not whole in\n%s", last, out.String())
			}
		}
	}
	if got := Wrap("", 10); len(got) != 1 || got[0] != "" {
		t.Errorf("nothing becomes %q", got)
	}
	if got := Tail("relay-7d9f-abcde", 7); got != "…-abcde" {
		t.Errorf("Tail = %q", got)
	}
	table := NewTable()
	table.Paint = func(column int, text string) string { return fmt.Sprintf("<%d%s>", column, text) }
	table.Row("a", "b")
	table.Row("long", "b")
	var out bytes.Buffer
	_ = table.Write(&out, "")
	if want := "<0a>     <1b>\n<0long>  <1b>\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Every program prints the same version, however it was built.
func TestVersionIsThatOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## (\d\S+)`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != Release {
		t.Errorf("the newest version of the changelog is %q, Release is %s", newest, Release)
	}
	revision := []debug.BuildSetting{{Key: "vcs.revision", Value: "25cd7f9a3c1b1111"}, {Key: "vcs.modified", Value: "true"}}
	for want, info := range map[string]debug.BuildInfo{
		Release:                            {Main: debug.Module{Version: "(devel)"}},
		Release + "+25cd7f9a3c1b":          {Main: debug.Module{Version: "v0.0.0-20261127000000-25cd7f9a3c1b"}, Settings: revision[:1]},
		Release + "+25cd7f9a3c1b.modified": {Main: debug.Module{Version: "(devel)"}, Settings: revision},
		"1.4.2":                            {Main: debug.Module{Version: "v1.4.2"}, Settings: revision[:1]},
	} {
		if got := versionOf(&info); got != want {
			t.Errorf("%s: %s, want %s", info.Main.Version, got, want)
		}
	}
}

// No line is wider than 80 characters, no cell is lost, and the advice follows its row.
func TestWideTableFitsTheScreen(t *testing.T) {
	const key = "5f0c8a52-7a3e-4f9d-9b7e-2f6f0c575a0e"
	table := NewTable("KEY", "EVENTS", "REASON", "PARKED", "STATE", "ERROR")
	table.Row(key, 12, "entity_disabled", "3m20s ago", "retried automatically", "send 3 events: link: the topic orders is disabled")
	table.Next("az servicebus topic update --status Active --name a-name-so-long-that-the-command-is-wider-than-the-screen")
	table.Row(key, 1, "too_large", "1s ago", "waiting", "")
	var out bytes.Buffer
	if err := table.Write(&out, ""); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > 80 && !strings.HasPrefix(line, "    next: az servicebus") {
			t.Errorf("%d characters: %s", len([]rune(line)), line)
		}
	}
	for _, want := range []string{key, "entity_disabled", "3m20s ago", "retried automatically", "the topic orders is disabled", "STATE"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if advice, second := strings.Index(text, "next: az"), strings.LastIndex(text, key); advice < 0 || advice > second {
		t.Errorf("the advice does not follow its row:\n%s", text)
	}
}

func TestShortenedErrorKeepsItsCause(t *testing.T) {
	const text = "send 3 events of order-7 to orders: link 2: attach: amqp: the topic does not exist"
	if got := Middle(text, 60); len([]rune(got)) != 60 || !strings.HasPrefix(got, "send 3 events") || !strings.HasSuffix(got, ": the topic does not exist") {
		t.Errorf("%q", got)
	}
	if got := Middle("short\nerror", 60); got != "short error" {
		t.Errorf("%q", got)
	}
}
