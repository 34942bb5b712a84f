package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A verb that can ask takes --yes: the file that asks, or whoever calls it with its
// flags, declares the flag.
func TestWhatAsksTakesYes(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	asking := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		asks, flagged := false, false
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				asks = asks || f.Sel.Name == "confirm"
			case *ast.Ident:
				flagged = flagged || f.Name == "yesFlag"
			}
			return true
		})
		if !asks {
			continue
		}
		asking++
		for command, way := range map[string]string{"replay.go": "replay_", "parked_retry.go": "parked_retry_"} {
			if strings.HasPrefix(name, way) { // one command with two ways
				flagged = declaresYes(t, command)
			}
		}
		if !flagged {
			t.Errorf("%s asks for a confirmation, and there is no --yes", name)
		}
	}
	if asking < 5 {
		t.Errorf("only %d files ask", asking)
	}
}

func declaresYes(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "yesFlag(cmd")
}

// An audit names somebody even where nobody has logged in, as in a pod.
func TestWhoIsNeverUnknown(t *testing.T) {
	p := &program{environ: []string{"USER="}}
	if got := p.who(""); !regexp.MustCompile(`^\S.* on \S+`).MatchString(got) || strings.Contains(got, "unknown") {
		t.Errorf("without a login it is %q", got)
	}
	p.environ = []string{"LOGNAME=bob"}
	if got := p.who(""); got != "bob" {
		t.Errorf("the login's name is %q", got)
	}
	if got := p.who("alice"); got != "alice" {
		t.Errorf("the flag's name is %q", got)
	}
}
