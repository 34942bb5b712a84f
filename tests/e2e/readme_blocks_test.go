package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"feedbox/tests/testenv"
)

// walk lists the documents whose blocks are run, in this order. Each continues in the state in which
// the previous one ended.
var walk = []string{"README.md", "cmd/feedbox/README.md", "cmd/feedbox-dev/README.md"}

// step is a block of a document that is run, or that shows the output of one. The comment on the line
// before it is its mark:
//
//	<!-- run -->                           in the second terminal
//	<!-- run until shown -->               repeatedly, until the output matches the next block
//	<!-- run in the first terminal -->     after stopping the program that runs there
//	<!-- shows -->                         the output of the second terminal since the last run
//	<!-- shows in the first terminal -->   the same for the first terminal
//	<!-- not run: WHY -->
type step struct {
	where string // document and line of the block's first line
	line  int
	mark  string
	text  string
}

var notRun = regexp.MustCompile(`^not run: \S`)

// steps reads the blocks of a document. A block of shell commands without a mark is an error, because
// every block must be run or give a reason.
func steps(document string) ([]step, error) {
	var all []step
	mark, inside := "", false
	for i, line := range strings.Split(document, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !inside:
			inside = true
			if fence == "sh" && mark == "" {
				return nil, fmt.Errorf("line %d: this block has no mark", i+1)
			}
			all = append(all, step{line: i + 2, mark: mark})
		case isFence:
			inside, mark = false, ""
		case inside:
			all[len(all)-1].text += line + "\n"
		case strings.HasPrefix(line, "<!-- ") && strings.HasSuffix(line, " -->"):
			mark = strings.TrimSuffix(strings.TrimPrefix(line, "<!-- "), " -->")
		case line != "":
			mark = ""
		}
	}
	kept := all[:0]
	for _, s := range all {
		switch s.mark {
		case "run", "run until shown", "run in the first terminal", "shows", "shows in the first terminal":
			kept = append(kept, s)
		default:
			if s.mark != "" && !notRun.MatchString(s.mark) {
				return nil, fmt.Errorf("line %d: unknown mark %q", s.line, s.mark)
			}
		}
	}
	return kept, nil
}

// variable lists text that differs between runs, and the pattern that replaces it.
var variable = []struct{ found, means *regexp.Regexp }{
	{regexp.MustCompile(`^(\.\.\.|…)`), regexp.MustCompile(`.*`)},
	{regexp.MustCompile(`^ +`), regexp.MustCompile(` +`)},
	{regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{regexp.MustCompile(`^127\.0\.0\.1:\d+`), regexp.MustCompile(`127\.0\.0\.1:\d+`)},
	{regexp.MustCompile(`^vm-[0-9a-f]{8}`), regexp.MustCompile(`\S+-[0-9a-f]{8}`)},
	{regexp.MustCompile(`^\d\d:\d\d:\d\d`), regexp.MustCompile(`\d\d:\d\d:\d\d`)},
	{regexp.MustCompile(`^(\d+(\.\d+)?(ms|s|m|h|d))+\b`), regexp.MustCompile(`(\d+(\.\d+)?(µs|ms|s|m|h|d))+`)},
}

// pattern returns the pattern of a shown line, with variable text replaced.
func pattern(shown string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?m)^`)
	word := false // inside a word, where a match would not be an id or a time
next:
	for rest := strings.TrimRight(shown, " "); rest != ""; {
		for _, v := range variable {
			if found := v.found.FindString(rest); found != "" && (!word || found[0] == '.' || found[0] == ' ') {
				b.WriteString(`(?:` + v.means.String() + `)`)
				rest, word = rest[len(found):], false
				continue next
			}
		}
		c := rest[0]
		word = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		b.WriteString(regexp.QuoteMeta(rest[:1]))
		rest = rest[1:]
	}
	b.WriteString(`\s*$`)
	return regexp.MustCompile(b.String())
}

// missing returns the first shown line that output does not contain in order; "" if it contains all.
func missing(shown, output string) string {
	output = strings.ReplaceAll(output, "\r", "")
	for line := range strings.Lines(shown) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line == "..." {
			continue
		}
		at := pattern(line).FindStringIndex(output)
		if at == nil {
			return line
		}
		output = output[at[1]:]
	}
	return ""
}

func TestStepsRequiresMarks(t *testing.T) {
	for text, want := range map[string]string{
		"```sh\nls\n```\n":                             "line 1: this block has no mark",
		"<!-- run -->\ntext\n```sh\nls\n```\n":         "line 3: this block has no mark",
		"<!-- runs -->\n```sh\nls\n```\n":              `line 3: unknown mark "runs"`,
		"<!-- not run -->\n```sh\nls\n```\n":           `unknown mark "not run"`,
		"<!-- not run: it is slow -->\n```sh\nls\n```": "",
	} {
		_, err := steps(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for shown, output := range map[string]string{
		"a  b\n...\nc": "a b\nx\nc\n",
		"id 0e6c1d7a-4b1f-4f6e-9a53-000000000001.": "id de4aaa1b-ef5f-43b4-8cc0-043a78d273d9.",
		"took 30.1s":              "took 1m2.5s",
		"at 127.0.0.1:8080/x ...": "at 127.0.0.1:4711/x and more",
		"00-0F":                   "00-0F",
	} {
		if line := missing(shown, output); line != "" {
			t.Errorf("%q lacks %q", output, line)
		}
		if missing(shown+"\nmore", output) == "" || missing("x"+shown, output) == "" {
			t.Errorf("%q: a missing line is not reported", shown)
		}
	}
	if missing("3 keys", "4 keys") == "" || missing("a\nb", "b\na") == "" {
		t.Error("another number or order is not reported")
	}
}

// shorter makes the load of the walk and its output small, for a sample. It has ten contacts, so that all
// are created long before the kill: a creation of unknown outcome is not in the number of changes.
var shorter = strings.NewReplacer("feedbox-dev load ", "feedbox-dev load --contacts 10 --changes 500 ", "sleep 8\n", "sleep 2\n",
	"3000 ", "500 ", "100 contacts", "10 contacts", "not at all: 100\n", "not at all: 10\n")

func readWalk(t *testing.T) (all []step) {
	t.Helper()
	for _, document := range walk {
		text, err := os.ReadFile(filepath.Join("../..", document))
		if err != nil {
			t.Fatal(err)
		}
		some, err := steps(string(text))
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		for _, s := range some {
			s.where = fmt.Sprintf("%s:%d", document, s.line)
			if !testenv.Full(t) {
				s.text = shorter.Replace(s.text)
			}
			all = append(all, s)
		}
	}
	return all
}
