// Package attack runs attacks on the real program and counts how often a good caller is served
// meanwhile. All connections come from one address, as behind an ingress, which is the worst case
// for the shares of package limit.
//
// `go test ./tests/attack` runs small attacks on small limits. `go test ./tests/attack -v -full`
// runs them at the default limits and prints memory and latencies; on Linux the attackers then have a
// processor of their own, because they would have a machine of their own. -program attacks another
// binary, such as that of an earlier version.
package attack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

var (
	full    = flag.Bool("full", false, "attack the default limits, and print memory and latencies")
	program = flag.String("program", "", "attack this binary of feedbox; default the one of this tree")
)

func TestMain(m *testing.M) {
	if os.Getenv(attackerVariable) != "" {
		attackAsked()
		return
	}
	flag.Parse()
	if *full {
		separate()
	}
	testkit.Main(m)
}

// sized returns small, or large with -full.
func sized(small, large int) int {
	if *full {
		return large
	}
	return small
}

// target is a process under attack.
type target struct {
	t       *testing.T
	process *testkit.Process
	address string // host:port

	attackers sync.WaitGroup
	stop      context.CancelFunc
	ctx       context.Context //nolint:containedctx // of the attackers
	opened    atomic.Int64    // connections of attackers

	memory, queued int64 // peaks in bytes
}

// keys returns a list of API keys for the names; that of ann is ann-key.
func keys(names ...string) string {
	var all []string
	for _, name := range names {
		hash := sha256.Sum256([]byte(name + "-key"))
		all = append(all, name+":write:"+hex.EncodeToString(hash[:]))
	}
	return strings.Join(all, ",")
}

// start runs `feedbox api` or `feedbox console` on emulators of its own and waits for its
// address in the log.
func start(t *testing.T, command string, env ...string) *target {
	t.Helper()
	binaries := testkit.Build(t)
	_, e := testkit.StartDev(t, binaries, testkit.EmulatorPorts("--ephemeral")...)
	if *program != "" {
		binaries.Feedbox = *program
	}
	env = append(e.ServiceEnv("FEEDBOX_LOG_FORMAT=json", "FEEDBOX_AUTH=apikey", "FEEDBOX_API_LISTEN=127.0.0.1:0", "FEEDBOX_CONSOLE_LISTEN=127.0.0.1:0",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING="+e.ServiceBusConnectionString, "FEEDBOX_SERVICEBUS_TOPIC="+e.Topic,
		"FEEDBOX_AUTH_API_KEYS="+keys("ann", "bea", "eve"), "FEEDBOX_CONSOLE_API_KEYS="+keys("ann", "bea")), env...)
	ctx, stop := context.WithCancel(t.Context())
	s := &target{t: t, process: testkit.Start(t, "feedbox "+command, binaries.Feedbox, env, command), ctx: ctx, stop: stop}
	found := regexp.MustCompile(`"(?:api|address)":"(?:http://)?(127\.0\.0\.1:\d+)`)
	testkit.Eventually(t, time.Minute, "the "+command, func() bool {
		if s.process.Ended() {
			t.Fatalf("%s ended: %s", command, s.process.Output())
		}
		if m := found.FindStringSubmatch(s.process.Output()); m != nil {
			s.address = m[1]
		}
		return s.address != "" && s.get("/assets/page/page.css", "bea") != 0
	})
	t.Cleanup(func() { s.stop(); s.attackers.Wait() })
	return s
}

// get requests an address on a new connection and returns the status, 0 without an answer. Small attacks
// run on busy machines, too, so they wait for a minute.
func (s *target) get(path, name string, headers ...string) int {
	ctx, cancel := context.WithTimeout(s.ctx, time.Duration(sized(60, 20))*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	r.Close = true
	r.Header.Set("X-Api-Key", name+"-key")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0
	}
	defer reply.Body.Close()
	if r.Header.Get("Accept") == "text/event-stream" {
		if _, err := io.ReadFull(reply.Body, make([]byte, 10)); err != nil {
			return 0
		}
		return reply.StatusCode
	}
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return 0
	}
	return reply.StatusCode
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// serves counts how many of a good caller's calls succeed, and fails the test below 99 %.
func (s *target) serves(what string, calls int, call func() bool) {
	s.t.Helper()
	served := 0
	var took []time.Duration
	for i := range calls {
		began := time.Now()
		if call() {
			served++
		}
		took = append(took, time.Since(began))
		if i%10 == 0 {
			s.measure()
		}
		wait(s.ctx, 10*time.Millisecond) // the rate of a caller is 100 per second
	}
	slices.Sort(took)
	s.t.Logf("%s: %d of %d, median %v, p99 %v; %d connections of attackers opened; peak %d MB resident, %d MB in send queues; log %d KB",
		what, served, calls, took[calls/2].Round(time.Microsecond), took[calls*99/100].Round(time.Microsecond), s.opened.Load(), s.memory>>20, s.queued>>20, len(s.process.Output())>>10)
	if served*100 < calls*99 {
		s.t.Errorf("%s: %d of %d", what, served, calls)
	}
}

// measure updates the peaks of memory and send queues.
func (s *target) measure() {
	s.memory = max(s.memory, s.process.PeakMemory(s.t))
	_, port, _ := net.SplitHostPort(s.address)
	number, _ := strconv.Atoi(port)
	table, _ := os.ReadFile("/proc/net/tcp") // absent on other systems
	local := fmt.Sprintf(":%04X", number)
	var queued int64
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasSuffix(fields[1], local) {
			sending, _, _ := strings.Cut(fields[4], ":")
			n, _ := strconv.ParseInt(sending, 16, 64)
			queued += n
		}
	}
	s.queued = max(s.queued, queued)
}
