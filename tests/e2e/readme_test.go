package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// stepLimit bounds one block; the longest is the load, half a minute.
const stepLimit = 3 * time.Minute

// Every block of the walk is run in order in two terminals, and its output must be that of the
// document. The programs are built once: a script replaces `go run` and `go build`, and chooses free
// ports.
func TestREADMEShowsActualOutput(t *testing.T) {
	t.Parallel() // it mostly waits
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatalf("the README's commands are for a shell: %v", err)
	}
	w := newTerminals(t, testkit.Build(t))
	all := readWalk(t)
	if len(all) < 20 {
		t.Fatalf("only %d blocks are run", len(all))
	}
	for i, s := range all {
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("%s: %s\n%s\nsecond terminal:\n%s\nfirst terminal:\n%s", s.where, fmt.Sprintf(format, args...), s.text, last(w.shown()), last(w.firstShown()))
		}
		switch s.mark {
		case "run in the first terminal":
			w.startFirst(t, s.text)
			if err := w.awaitFirst(t.Context()); err != nil {
				fail("%v", err)
			}
		case "run", "run until shown":
			for began := time.Now(); ; time.Sleep(300 * time.Millisecond) {
				if err := w.run(t.Context(), s.text); err != nil {
					fail("%v", err)
				}
				if s.mark == "run" || missing(all[i+1].text, w.shown()) == "" {
					break
				}
				if time.Since(began) > stepLimit {
					fail("the output never contains %q", missing(all[i+1].text, w.shown()))
				}
			}
		case "shows":
			if line := missing(s.text, w.shown()); line != "" {
				fail("the output does not contain %q", line)
			}
		case "shows in the first terminal":
			began := time.Now()
			for missing(s.text, w.firstShown()) != "" {
				if time.Since(began) > time.Minute {
					fail("the first terminal does not contain %q", missing(s.text, w.firstShown()))
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
}

// terminals are the two terminals of the README.
type terminals struct {
	dir   string
	env   []string
	first *exec.Cmd
	ended chan struct{} // of first
	out   *output       // of first
	stdin io.WriteCloser
	both  *output // of the second: the output of its last block
}

func newTerminals(t *testing.T, b testkit.Binaries) *terminals {
	t.Helper()
	w := &terminals{dir: t.TempDir(), out: &output{}, both: &output{}}
	tools := t.TempDir()
	script := fmt.Sprintf(`#!/bin/bash
case "$*" in
"run ./cmd/feedbox-dev"*) shift 2; exec %[1]s "$@" %[3]s ;;
"build -o bin/ ./cmd/...") mkdir -p bin && ln -sf %[1]s bin/feedbox-dev && ln -sf %[2]s bin/feedbox ;;
*) echo "unknown command in the README: go $*" >&2; exit 99 ;;
esac
`, b.Dev, b.Feedbox, strings.Join(freePorts(t), " "))
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "FEEDBOX_") && !strings.HasPrefix(pair, "PATH=") {
			w.env = append(w.env, pair)
		}
	}
	w.env = append(w.env, "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	second := w.bash()
	second.Stdout, second.Stderr = w.both, w.both
	var err error
	if w.stdin, err = second.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.stopFirst()
		_ = syscall.Kill(-second.Process.Pid, syscall.SIGKILL) // including its background processes
		_ = second.Wait()
	})
	return w
}

func (w *terminals) bash(args ...string) *exec.Cmd {
	cmd := exec.Command("bash", args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// freePorts returns flags of feedbox-dev with free ports. They are the same for each start, so that
// clients can reconnect.
func freePorts(t *testing.T) []string {
	t.Helper()
	ports := servers.Ports(t, 5)
	var flags []string
	for i, name := range []string{"api", "ops", "cosmos", "servicebus", "servicebus-admin"} {
		flags = append(flags, "--"+name, fmt.Sprint("127.0.0.1:", ports[i]))
	}
	return flags
}

// startFirst stops the program in the first terminal and runs the block there.
func (w *terminals) startFirst(t *testing.T, block string) {
	t.Helper()
	w.stopFirst()
	w.out.reset()
	w.first, w.ended = w.bash("-ec", block), make(chan struct{})
	w.first.Stdout, w.first.Stderr = w.out, w.out
	if err := w.first.Start(); err != nil {
		t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(w.first, w.ended)
}

func (w *terminals) stopFirst() {
	if w.first == nil {
		return
	}
	_ = syscall.Kill(-w.first.Process.Pid, syscall.SIGINT) // the group, as a terminal does
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		_ = syscall.Kill(-w.first.Process.Pid, syscall.SIGKILL)
		<-w.ended
	}
}

// awaitFirst waits until the first terminal shows that feedbox-dev is ready.
func (w *terminals) awaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		// The pid file must be that of the new process, not of a killed one.
		text, _ := os.ReadFile(filepath.Join(w.dir, ".feedbox", "pid"))
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && strings.Contains(w.out.String(), "Point feedbox and curl") && syscall.Kill(pid, 0) == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-w.ended:
			return fmt.Errorf("the first terminal's command has ended")
		case <-ctx.Done():
			return fmt.Errorf("feedbox-dev does not start")
		}
	}
}

const endMark = "@@ the block has ended"

// run runs a block in the second terminal and waits for its end. A command that fails is an error, also
// in the background.
func (w *terminals) run(ctx context.Context, block string) error {
	file := filepath.Join(w.dir, ".block")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		return err
	}
	w.both.reset()
	_, err := fmt.Fprintf(w.stdin, "set -E; trap 'echo \"@@ failed: $BASH_COMMAND\"' ERR; . %s </dev/null; trap - ERR; printf '\\n%%s\\n' '%s'\n", file, endMark)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(stepLimit); !strings.Contains(w.both.String(), endMark); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("the block does not end")
		}
	}
	if _, failed, found := strings.Cut(w.both.String(), "@@ failed: "); found {
		return fmt.Errorf("a command fails: %s", failed)
	}
	return nil
}

// last returns the end of a terminal's output.
func last(text string) string { return text[max(0, len(text)-4000):] }

func (w *terminals) shown() string      { return w.both.String() }
func (w *terminals) firstShown() string { return w.out.String() }

// output collects the output of processes.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}
