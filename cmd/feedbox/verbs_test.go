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

// A file that calls confirm declares the flag --yes, or the file of its command does.
// Otherwise the command could not run in a script.
func TestEveryConfirmationHasTheYesFlag(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	confirming := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		confirms, flagged := false, false
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				confirms = confirms || f.Sel.Name == "confirm"
			case *ast.Ident:
				flagged = flagged || f.Name == "yesFlag"
			}
			return true
		})
		if !confirms {
			continue
		}
		confirming++
		for command, way := range map[string]string{"replay.go": "replay_", "parked_retry.go": "parked_retry_", "deadletters.go": "deadletters_"} {
			if strings.HasPrefix(name, way) { // one command in several files
				flagged = declaresYes(t, command)
			}
		}
		if !flagged {
			t.Errorf("%s asks for a confirmation without the flag --yes", name)
		}
	}
	if confirming < 5 {
		t.Errorf("only %d files call confirm", confirming)
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

// A request has the name of an operator even without a login, as in a pod.
func TestRequestsNameAnOperator(t *testing.T) {
	p := &program{environ: []string{"USER="}}
	if got := p.operatorName(""); !regexp.MustCompile(`^\S.* on \S+`).MatchString(got) || strings.Contains(got, "unknown") {
		t.Errorf("without a login: %q", got)
	}
	p.environ = []string{"LOGNAME=bob"}
	if got := p.operatorName(""); got != "bob" {
		t.Errorf("with a login: %q, want bob", got)
	}
	if got := p.operatorName("alice"); got != "alice" {
		t.Errorf("with the flag: %q, want alice", got)
	}
}
