package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// limits has the maximum number of hits of a pattern per 10,000 words of comments.
// CONTRIBUTING.md has the rules and better words. The limits detect a style, not a single
// use: river and franz-go have 0 to 1.5 hits.
var limits = []struct {
	name    string
	pattern *regexp.Regexp
	most    float64
}{
	{"is what, are what", regexp.MustCompile(`(?i)\b(is|are) what\b`), 5},
	{"tell, told", regexp.MustCompile(`(?i)\b(tells?|told|telling)\b`), 4},
	{"stand, stood", regexp.MustCompile(`(?i)\b(stands?|stood)\b`), 2},
	{"behind", regexp.MustCompile(`(?i)\bbehind\b`), 4},
	{"nobody, somebody", regexp.MustCompile(`(?i)\b(nobody|somebody)\b`), 3},
	{"who, whoever", regexp.MustCompile(`(?i)\b(who|whoever)\b`), 4},
}

func TestCommentsAreInPlainEnglish(t *testing.T) {
	words := 0
	places := make([][]string, len(limits))
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".."; hidden || path == "../../tests" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text[:min(len(text), 600)]), "DO NOT EDIT") {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
			if !ok || strings.HasPrefix(comment, "go:") || strings.HasPrefix(comment, "nolint") {
				continue
			}
			words += len(strings.Fields(comment))
			for i, limit := range limits {
				for range limit.pattern.FindAllString(comment, -1) {
					places[i] = append(places[i], fmt.Sprintf("%s:%d:%s", strings.TrimPrefix(path, "../../"), n+1, comment))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if words < 50_000 {
		t.Fatalf("found only %d words of comments", words)
	}
	for i, limit := range limits {
		if rate := 1e4 * float64(len(places[i])) / float64(words); rate > limit.most {
			t.Errorf("%q: %.1f per 10,000 words of comments, the limit is %.0f; rewrite some of these %d:\n%s",
				limit.name, rate, limit.most, len(places[i]), strings.Join(places[i], "\n"))
		}
	}
}
