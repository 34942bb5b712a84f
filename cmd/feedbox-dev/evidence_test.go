package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The walk of the README: run everything, put load on it, dump, verify.
func TestLoadDumpVerify(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		var out, errOut bytes.Buffer
		ended <- run(ctx, []string{
			"--ephemeral", "--record", "--ready-file", in("ready.json"), "--api", "127.0.0.1:0", "--ops", "127.0.0.1:0", "--page", "127.0.0.1:0",
			"--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0",
		}, &out, &errOut, nil)
	}()
	defer func() {
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("feedbox-dev ended with code %d", code)
		}
	}()
	awaitReady(t, in("ready.json"))
	command := func(want int, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args, &out, &errOut, nil); code != want {
			t.Fatalf("%s: exit code %d, want %d: %s%s", args, code, want, out.String(), errOut.String())
		}
		return out.String()
	}
	command(exitOK, "load", "--ready-file", in("ready.json"), "--history", in("history.jsonl"), "--changes", "300", "--contacts", "20", "--rate", "0")
	command(exitOK, "dump", "--ready-file", in("ready.json"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl"), "--idle", "1s")
	files := []string{"verify", "--history", in("history.jsonl"), "--topic", in("topic.jsonl"), "--store", in("store.jsonl")}
	if out := command(exitOK, files...); !strings.Contains(out, "nothing acknowledged is lost: 300 changes acknowledged") {
		t.Errorf("verdict:\n%s", out)
	}

	// A poison event breaks no promise, but dump reports it.
	command(exitOK, "poison", "--ready-file", in("ready.json"))
	if out := command(exitOK, "dump", "--ready-file", in("ready.json"), "--store", in("store.jsonl")); !strings.Contains(out, "it has no action") {
		t.Errorf("dump:\n%s", out)
	}
	command(exitOK, files...)

	// A missing message is a breach.
	text, err := os.ReadFile(in("topic.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	if err := os.WriteFile(in("topic.jsonl"), rest, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := command(exitBroken, files...); !strings.Contains(out, "I2 event ") {
		t.Errorf("verdict:\n%s", out)
	}
}
