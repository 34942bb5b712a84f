package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// script is one wire behaviour that Feedbox relies on.
type script struct {
	name    string // its name in UNVERIFIED.md
	topic   string // of the known issue that it would hit
	source  string // the source of the behaviour
	ttl     bool   // the container expires items
	control bool   // needs the control endpoint of our emulator
	splits  bool   // splits a range: on an account only if FEEDBOX_TEST_COSMOS_SPLIT is yes
	run     func(p *probe)
}

var scripts = slices.Concat(itemScripts, batchScripts, feedScripts, queryScripts, rangeScripts)

// TestWire runs every script on its own container, of one range and of four on our emulator.
func TestWire(t *testing.T) {
	w := openTarget(t, 1)
	w.play(t, "scripts")
	if w.kind == ours {
		openTarget(t, 4).play(t, "scripts of four ranges")
	}
}

func (w *target) play(t *testing.T, name string) {
	t.Helper()
	t.Logf("%s at %s", w.kind, w.endpoint)
	t.Run(name, func(t *testing.T) {
		for _, s := range scripts {
			t.Run(s.name, func(t *testing.T) {
				if w.kind == ours {
					t.Parallel()
				}
				s.play(t, w)
			})
		}
	})
}

// play runs the script. A fault is a failure unless it is a known issue of the endpoint.
func (s *script) play(t *testing.T, w *target) {
	t.Logf("source: %s", s.source)
	if s.control && w.kind != ours {
		t.Skipf("SKIPPED: %s can be provoked on our emulator only", s.name)
	}
	limit := 3 * time.Minute
	if s.splits && w.kind != ours {
		if os.Getenv("FEEDBOX_TEST_COSMOS_SPLIT") != "yes" {
			t.Skipf("SKIPPED: %s needs a split, which costs 13,000 RU/s for up to two hours: set FEEDBOX_TEST_COSMOS_SPLIT=yes", s.name)
		}
		limit = splitLimit + 10*time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	name := s.name + "-" + randomName()
	container, err := w.makeContainer(ctx, name, s)
	if err != nil {
		t.Fatal(err)
	}
	p := &probe{ctx: ctx, w: w, name: name, items: container}
	p.start(s.run)
	if _, err := container.Delete(ctx, nil); err != nil {
		t.Logf("container %s is left behind: %v", name, err)
	}
	issue, known := w.known[s.topic]
	switch {
	case len(p.faults) > 0 && known:
		t.Skipf("SKIPPED over a known issue: %s\n%s", issue, strings.Join(p.faults, "\n"))
	case len(p.faults) > 0:
		t.Error(strings.Join(p.faults, "\n"))
	case known:
		t.Logf("not met this time: %s", issue)
	}
}

// probe is the context of a script. It collects faults.
type probe struct {
	ctx    context.Context //nolint:containedctx // of one script
	w      *target
	name   string // of the container
	items  *azcosmos.ContainerClient
	faults []string
}

type stopped struct{}

func (p *probe) start(run func(*probe)) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
		}
	}()
	run(p)
}

// expect records a fault if ok is false.
func (p *probe) expect(ok bool, format string, args ...any) {
	if !ok {
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

// must ends the script if err is not nil.
func (p *probe) must(what string, err error) {
	if err != nil {
		p.faults = append(p.faults, fmt.Sprintf("%s: %v", what, err))
		panic(stopped{})
	}
}

// wait returns when ok returns true, or records a fault after limit.
func (p *probe) wait(what string, limit time.Duration, ok func() bool) {
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			p.expect(false, "%s: not within %v", what, limit)
			return
		}
		p.pause(100 * time.Millisecond)
	}
}

func (p *probe) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
		p.must("pause", p.ctx.Err())
	}
}

// status returns the HTTP status of err, or ok if err is nil.
func status(err error, ok int) int {
	if reply, is := errors.AsType[*azcore.ResponseError](err); is {
		return reply.StatusCode
	}
	if err != nil {
		return 0
	}
	return ok
}

// headerOf returns a header of the response in err.
func headerOf(err error, name string) string {
	if reply, is := errors.AsType[*azcore.ResponseError](err); is && reply.RawResponse != nil {
		return reply.RawResponse.Header.Get(name)
	}
	return ""
}

func key(pk string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(pk) }

// item returns the JSON of a document with additional members.
func item(pk, id string, more ...string) []byte {
	text := fmt.Sprintf(`{"id":%q,"pk":%q`, id, pk)
	for _, m := range more {
		text += "," + m
	}
	return []byte(text + "}")
}

// create stores a document and returns its ETag.
func (p *probe) create(pk, id string, more ...string) azcore.ETag {
	reply, err := p.items.CreateItem(p.ctx, key(pk), item(pk, id, more...), nil)
	p.must("create "+id, err)
	return reply.ETag
}

// read returns the status of a read.
func (p *probe) read(pk, id string) int {
	_, err := p.items.ReadItem(p.ctx, key(pk), id, nil)
	return status(err, http.StatusOK)
}

// document has the members that the scripts check.
type document struct {
	ID   string `json:"id"`
	PK   string `json:"pk"`
	ETag string `json:"_etag"`
	TS   int64  `json:"_ts"`
	LSN  int64  `json:"_lsn"`
	N    int64  `json:"n"`
}

func (p *probe) documents(raw [][]byte) []document {
	out := make([]document, len(raw))
	for i := range raw {
		p.must("decode a document", json.Unmarshal(raw[i], &out[i]))
	}
	return out
}

// TestScriptsAreNamedInUnverified compares the scripts with UNVERIFIED.md, the list of
// behaviour that was never seen on Azure.
func TestScriptsAreNamedInUnverified(t *testing.T) {
	text, err := os.ReadFile("../UNVERIFIED.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`cosmos/([a-z0-9-]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	for _, s := range scripts {
		if !named[s.name] {
			t.Errorf("script %s verifies nothing that UNVERIFIED.md lists", s.name)
		}
		delete(named, s.name)
	}
	for name := range named {
		t.Errorf("UNVERIFIED.md names a script cosmos/%s that does not exist", name)
	}
}
