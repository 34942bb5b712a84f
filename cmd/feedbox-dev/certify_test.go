package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/infrastructure/lab/certify"
	"feedbox/infrastructure/lab/wire"
)

// examined is a process with the emulators, and the environment that names them.
type examined struct {
	*endpoints
	environ []string
	folder  string // of reports
}

func emulatorsWith(ready string) []string {
	return []string{"emulators", "--ephemeral", "--ready-file", ready, "--cosmos-versions", "1h", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--servicebus-admin", "127.0.0.1:0"}
}

func startExamined(t *testing.T) *examined {
	t.Helper()
	x := &examined{folder: t.TempDir()}
	ready := filepath.Join(x.folder, "ready.json")
	cmd, err := startChild(os.Stderr, nil, emulatorsWith(ready)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	x.endpoints = awaitReady(t, ready)
	x.environ = []string{
		"FEEDBOX_COSMOS_ENDPOINT=" + x.CosmosEndpoint, "FEEDBOX_COSMOS_KEY=" + x.CosmosKey, "FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + x.ServiceBusConnectionString,
		"FEEDBOX_LEASE_EXPIRY=3s", "FEEDBOX_RELAY_POLL_MAX=100ms",
	}
	return x
}

func (x *examined) arguments(more ...string) []string {
	return append([]string{"certify", "--yes", "--emulator", "--seed", "7", "--servicebus-admin", x.ServiceBusAdmin, "--report", x.folder}, more...)
}

// certify runs the command in this process.
func (x *examined) certify(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	var out bytes.Buffer
	code = run(t.Context(), args, &out, &out, x.environ)
	return code, out.String()
}

// report reads the only report. It fails if a secret or the host of an address is in it.
func (x *examined) report(t *testing.T) (r certify.Report) {
	t.Helper()
	for _, kind := range []string{".html", ".json"} {
		files, err := filepath.Glob(filepath.Join(x.folder, "feedbox-certify-*"+kind))
		if err != nil || len(files) != 1 {
			t.Fatalf("reports %s: %v, %v", kind, files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(x.ServiceBusConnectionString, "SharedAccessKey=")
		busKey, _, _ := strings.Cut(rest, ";")
		for _, secret := range []string{x.CosmosKey, x.ServiceBusConnectionString, busKey, strings.TrimSuffix(strings.TrimPrefix(x.CosmosEndpoint, "http://"), "/")} {
			if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(url.QueryEscape(secret))) {
				t.Errorf("%s contains %q", files[0], secret)
			}
		}
		if kind == ".json" {
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Contains(text, []byte("servicebus/session-order")) {
			t.Errorf("the page has no evidence: %s", text)
		}
	}
	return r
}

// leftovers returns the runs that have a database or a topic.
func (x *examined) leftovers(t *testing.T) []string {
	t.Helper()
	c := &certifying{Options: certify.Options{Price: certify.ListPrice, Duration: 1, Rate: 1, Budget: 1}, environ: x.environ, busAdmin: x.ServiceBusAdmin, folder: x.folder}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	names, err := c.Leftovers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCertifyReportsEveryRowAndRemovesItsResources(t *testing.T) {
	t.Parallel()
	x := startExamined(t)
	duration := cmp.Or(os.Getenv("FEEDBOX_TEST_CERTIFY"), "12s")
	code, out := x.certify(t, x.arguments("--duration", duration, "--rate", "20", "--splits", "--budget", "100")...)
	if code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	r := x.report(t)
	if !r.Complete || len(r.Rows) != len(wire.Rows()) || r.Counts[wire.Contradicted] != 0 || r.Counts[wire.Confirmed] < 40 || r.Counts[wire.NotReached] == 0 {
		t.Errorf("%d rows, complete %t, %v", len(r.Rows), r.Complete, r.Counts)
	}
	verdicts := map[string]wire.Verdict{}
	for _, row := range r.Rows {
		verdicts[row.ID] = row.Verdict
	}
	for id, want := range map[string]wire.Verdict{"C1": wire.Confirmed, "F5": wire.Confirmed, "F12": wire.Confirmed, "F13": wire.Confirmed, "F14": wire.Confirmed, "S13": wire.Confirmed, "P2": wire.Confirmed, "P3": wire.Confirmed, "P5": wire.Confirmed, "P6": wire.Confirmed, "S1": wire.Confirmed, "S2": wire.NotReached, "G1": wire.NotReached} {
		if verdicts[id] != want {
			t.Errorf("row %s is %s, want %s", id, verdicts[id], want)
		}
	}
	if r.Promises == nil || !r.Promises.Kept || r.Load.Changes == 0 || r.Load.Events < r.Load.Changes || len(r.Load.Kills) == 0 {
		t.Errorf("promises %+v, load %+v", r.Promises, r.Load)
	}
	if len(r.Latencies) != 2 || r.Latencies[1].Count == 0 || len(r.Operations) < 10 || r.Operations[0].RU == 0 || r.Versions["azure-sdk-for-go/sdk/data/azcosmos"] == "" {
		t.Errorf("latencies %+v, operations %+v, versions %v", r.Latencies, r.Operations, r.Versions)
	}
	if left := x.leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// watched is the output of a process; it tells when a text is in it.
type watched struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watched) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		found := bytes.Contains(w.text.Bytes(), []byte(text))
		w.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the output:\n%s", text, w.text.String())
		}
	}
}

// Ctrl-C at any stage removes the database and the topics. A killed run leaves them to
// --remove-leftovers.
func TestInterruptedCertifyRemovesItsResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage string
		sig   os.Signal
	}{{"playing", os.Interrupt}, {"killed", os.Interrupt}, {"playing", os.Kill}} {
		t.Run(c.sig.String()+" when "+c.stage, func(t *testing.T) {
			t.Parallel()
			x := startExamined(t)
			out := &watched{}
			cmd, err := startChild(out, x.environ, x.arguments("--duration", "10m")...)
			if err != nil {
				t.Fatal(err)
			}
			out.await(t, c.stage)
			if err := cmd.Process.Signal(c.sig); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			left := x.leftovers(t)
			if c.sig == os.Kill {
				if len(left) != 1 {
					t.Fatalf("a killed run left %v", left)
				}
				if code, out := x.certify(t, x.arguments("--remove-leftovers")...); code != exitOK || len(x.leftovers(t)) > 0 {
					t.Errorf("exit code %d, left %v:\n%s", code, x.leftovers(t), out)
				}
				return
			}
			if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitFailure || len(left) > 0 {
				t.Errorf("%v, left behind: %v\n%s", err, left, out.text.String())
			}
			if r := x.report(t); r.Complete || !strings.Contains(r.Ended, "canceled") || r.LeftBehind != "" {
				t.Errorf("complete %t, ended %q, left %q", r.Complete, r.Ended, r.LeftBehind)
			}
		})
	}
}

func TestCertifyCreatesNothingWithoutConsentOrBudget(t *testing.T) {
	t.Parallel()
	x := startExamined(t)
	without := slices.DeleteFunc(x.arguments(), func(arg string) bool { return arg == "--yes" })
	for want, args := range map[string][]string{
		"give --yes":                   without, // standard input of a test is no terminal
		"more than --budget 0.10":      x.arguments("--budget", "0.1"),
		"--report /none/such":          x.arguments("--report", "/none/such"),
		"must be positive":             x.arguments("--duration", "0s"),
		"--price must be positive":     x.arguments("--budget", "NaN"),
		"--servicebus-admin: \"x\" is": x.arguments("--servicebus-admin", "x"),
	} {
		if code, out := x.certify(t, args...); code != exitUsage || !strings.Contains(out, want) || len(x.leftovers(t)) > 0 {
			t.Errorf("exit code %d, want %q, left %v:\n%s", code, want, x.leftovers(t), out)
		}
	}
	c := &certifying{Options: certify.Options{Price: certify.ListPrice, Duration: time.Minute, Rate: 1, Budget: 0.01, Emulator: true}, environ: x.environ, busAdmin: x.ServiceBusAdmin, folder: x.folder, out: io.Discard}
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	r, err := certify.Run(t.Context(), &c.Options)
	if !errors.Is(err, certify.ErrBudget) || r.Complete || len(x.leftovers(t)) > 0 {
		t.Errorf("%v, complete %t, left %v", err, r.Complete, x.leftovers(t))
	}
}

func TestCertifyExplainsAnAccountThatRefuses(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"code":"Forbidden","message":"The request is blocked by the firewall"}`)
	}))
	defer refusing.Close()
	x := startExamined(t)
	x.environ = append(x.environ, "FEEDBOX_COSMOS_ENDPOINT="+refusing.URL)
	code, out := x.certify(t, x.arguments()...)
	if code != exitFailure || !strings.Contains(out, "403") || !strings.Contains(out, "key of the account") || strings.Contains(out, "left behind") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if strings.Contains(out, x.CosmosKey) {
		t.Error("the output contains the key")
	}
}

// One answer of the account differs: 409 instead of 412 for an old ETag.
func TestCertifyReportsAContradiction(t *testing.T) {
	t.Parallel()
	x := startExamined(t)
	target, err := url.Parse(x.CosmosEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(proxy)
	defer server.Close()
	proxy.ModifyResponse = func(reply *http.Response) error {
		if strings.Contains(reply.Request.URL.Path, "/colls/item-if-match-") && reply.StatusCode == http.StatusPreconditionFailed {
			reply.StatusCode = http.StatusConflict
		}
		if reply.Request.URL.Path == "/" { // the account document names its own address
			body, err := io.ReadAll(reply.Body)
			body = bytes.ReplaceAll(body, []byte(target.Host), []byte(strings.TrimPrefix(server.URL, "http://")))
			reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			reply.Header.Del("Content-Length")
			return err
		}
		return nil
	}
	x.environ = append(x.environ, "FEEDBOX_COSMOS_ENDPOINT="+server.URL)
	code, out := x.certify(t, slices.DeleteFunc(x.arguments("--duration", "4s"), func(arg string) bool { return arg == "--emulator" })...)
	if code != exitBroken || !strings.Contains(out, "1 contradicted") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, row := range x.report(t).Rows {
		if (row.ID == "C4") != (row.Verdict == wire.Contradicted) || (row.ID == "P3") && row.Verdict != wire.NotReached {
			t.Errorf("row %s is %s: %+v", row.ID, row.Verdict, row.Evidence)
		}
	}
}
