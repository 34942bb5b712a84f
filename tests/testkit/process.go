// Package testkit holds helpers for tests of the whole system: the real binaries as processes that can
// be killed, clients for their endpoints, the scale of the fault tests and the record of their
// results. The verifier of the outbox's invariants is feedbox/infrastructure/lab/verify.
package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binaries are the paths of the two programs, built from this tree.
type Binaries struct{ Feedbox, Dev string }

// builds holds the binaries built so far, by their build tags.
var builds struct {
	mu   sync.Mutex // guards made
	made map[string]*built
}

type built struct {
	once sync.Once
	dir  string
	err  error
}

// Build compiles both binaries once per test process and set of build tags. Processes share
// the work, because the binaries come from Go's build cache. Main must run the tests, so that
// the folders they are in are removed.
func Build(t testing.TB, tags ...string) Binaries {
	t.Helper()
	name := strings.Join(tags, ",")
	builds.mu.Lock()
	if builds.made == nil {
		builds.made = map[string]*built{}
	}
	b := builds.made[name]
	if b == nil {
		b = &built{}
		builds.made[name] = b
	}
	builds.mu.Unlock()
	b.once.Do(func() { b.dir, b.err = compile(name) })
	if b.err != nil {
		t.Fatalf("build the binaries: %v", b.err)
	}
	return Binaries{Feedbox: filepath.Join(b.dir, "feedbox"), Dev: filepath.Join(b.dir, "feedbox-dev")}
}

func compile(tags string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "feedbox-bin-"); err != nil {
		return "", err
	}
	for _, program := range []string{"feedbox", "feedbox-dev"} {
		cmd := exec.Command("go", buildArgs(runtime.GOOS, tags, dir, program)...)
		cmd.Dir = moduleRoot()
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, errors.New(string(out))
		}
	}
	return dir, nil
}

// buildArgs returns the arguments of go that put a program into a folder. go run keeps linked
// programs in the build cache and go build does not, so "running" a program with cp costs a
// third of a second where linking it costs three. Windows has no cp.
func buildArgs(system, tags, dir, program string) []string {
	source := "./cmd/" + program
	if system == "windows" {
		return []string{"build", "-tags", tags, "-o", dir, source}
	}
	return []string{"run", "-tags", tags, "-exec", "cp", source, filepath.Join(dir, program)}
}

// Main runs a package's tests and removes the binaries that Build made.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for packages that have more to remove: it returns the exit code. Four tests run
// at a time unless -parallel says otherwise, even on two cores, because they wait for other
// processes more than they compute.
func Run(m *testing.M) (code int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "4") // a number that it takes
	}
	code = m.Run()
	for _, b := range builds.made {
		_ = os.RemoveAll(b.dir)
	}
	return code
}

func moduleRoot() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		break
	}
	panic("testkit: the test does not run inside the module")
}

// Process is one running program. Its output is kept and shown if the test fails.
type Process struct {
	Name string
	cmd  *exec.Cmd
	out  lockedBuffer
	done chan struct{} // closed when the process has ended
	err  error         // valid once done is closed
}

// Start runs a program with extra environment variables. It kills the program when the test ends.
func Start(t testing.TB, name, path string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: name, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = Environ(env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of %s:\n%s", p.Name, tail(p.out.String(), 8000))
		}
	})
	return p
}

// Kill ends the process with SIGKILL and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has already ended
	<-p.done
}

// Terminate sends SIGTERM and returns the exit code; the process is killed if it
// has not ended when ctx does.
func (p *Process) Terminate(ctx context.Context) int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.Wait(ctx)
}

// Wait returns the exit code of the process, -1 if it had to be killed.
func (p *Process) Wait(ctx context.Context) int {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal, for example SIGSTOP.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns the output of the process so far.
func (p *Process) Output() string { return p.out.String() }

// Endpoints is the ready file of feedbox-dev.
type Endpoints struct {
	API, Ops, Page                      string
	CosmosEndpoint, CosmosKey           string
	ServiceBusConnectionString          string
	ServiceBusAdmin                     string
	Database, Container, Leases, Parked string
	Topic, Subscription                 string
}

// StartDev runs feedbox-dev and returns once its ready file is there.
func StartDev(t testing.TB, b Binaries, args ...string) (*Process, Endpoints) {
	t.Helper()
	return StartDevWith(t, b, nil, args...)
}

// StartDevWith is StartDev with more variables in the environment.
func StartDevWith(t testing.TB, b Binaries, env []string, args ...string) (*Process, Endpoints) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	p := Start(t, "feedbox-dev", b.Dev, env, append(args, "--ready-file", ready)...)
	var e Endpoints
	Eventually(t, time.Minute, "the ready file", func() bool {
		if p.Ended() {
			t.Fatalf("feedbox-dev ended: %s", p.Output())
		}
		var err error
		if e, err = ReadEndpoints(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	})
	return p, e
}

// ReadEndpoints reads a ready file.
func ReadEndpoints(path string) (Endpoints, error) {
	var e Endpoints
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	return e, err
}

// ServiceEnv returns the environment of `feedbox api` and `feedbox relay` for the emulators of e.
func (e Endpoints) ServiceEnv(more ...string) []string {
	return append([]string{
		"FEEDBOX_COSMOS_ENDPOINT=" + e.CosmosEndpoint,
		"FEEDBOX_COSMOS_KEY=" + e.CosmosKey,
		"FEEDBOX_COSMOS_DATABASE=" + e.Database,
		"FEEDBOX_COSMOS_CONTAINER=" + e.Container,
		"FEEDBOX_COSMOS_LEASES=" + e.Leases,
		"FEEDBOX_COSMOS_PARKED=" + e.Parked,
		"FEEDBOX_API_DRAIN_DELAY=0s", // there is no load balancer
	}, more...)
}

// Eventually polls until ok returns true, and fails the test after limit. It is for other processes,
// which cannot run in a bubble.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Environ returns the environment of this process without FEEDBOX_ variables, plus more. Otherwise the
// shell of a developer could change a test.
func Environ(more ...string) []string {
	var kept []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "FEEDBOX_") {
			kept = append(kept, kv)
		}
	}
	return append(kept, more...)
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
