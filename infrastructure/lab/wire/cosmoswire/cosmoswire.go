// Package cosmoswire has one script for each wire behaviour of Cosmos DB that Feedbox relies on. They use
// azcosmos and the change feed of cosmosfeed, on any endpoint.
package cosmoswire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/lab/wire"
)

// Target is the endpoint under test.
type Target struct {
	Client   *azcosmos.Client // with cosmosfeed.ClientOptions
	Database string           // it exists; scripts create their containers in it
	Endpoint string
	Ranges   int  // of a new container; 0: unknown
	Emulator bool // ours, whose control endpoint splits, merges and injects faults
	// Splits allows scripts to raise their container to 13,000 RU/s, which splits its range.
	Splits bool
	// Merge requests that the ranges of a container are merged. Default: ranges are not merged,
	// except by our emulator.
	Merge func(ctx context.Context, database, container string) error
}

// Script is one wire behaviour.
type Script struct {
	Name    string // after cosmos/ in UNVERIFIED.md
	Topic   string // of the known issue of Microsoft's emulator that it would hit
	Source  string // the source of the behaviour
	ttl     bool   // the container expires items
	control bool   // needs the control endpoint of our emulator
	splits  bool   // splits a range
	merges  bool   // merges ranges
	run     func(p *probe)
}

// Scripts has all scripts.
var Scripts = slices.Concat(itemScripts, batchScripts, feedScripts, versionScripts, queryScripts, rangeScripts)

// Needs returns what the script needs and the target does not have; "" if it can be played.
func (s *Script) Needs(w *Target) string {
	switch {
	case w.Emulator:
		return ""
	case s.control:
		return "it can be provoked on our emulator only"
	case s.splits && !w.Splits:
		return "it splits a range, which costs 13,000 RU/s for up to two hours"
	case s.merges && w.Merge == nil:
		return "it merges ranges, which needs the resource id of the account"
	}
	return ""
}

// Splits reports whether the script splits a range, which takes hours on an account.
func (s *Script) Splits() bool { return s.splits }

// scriptLimit bounds a script that does not split.
const scriptLimit = 3 * time.Minute

// Play runs a script on its own container, and deletes the container.
func (w *Target) Play(ctx context.Context, s *Script) wire.Outcome {
	limit := scriptLimit
	if s.splits && !w.Emulator {
		limit = 2*splitLimit + 10*time.Minute
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return wire.Play("cosmos/"+s.Name, func(t *wire.Trial) {
		if missing := s.Needs(w); missing != "" {
			t.Must(s.Name, errors.New(missing))
		}
		name := s.Name + "-" + wire.RandomName()
		container, err := w.makeContainer(bounded, name, s)
		t.Must("create the script's container", err)
		defer func() {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_, _ = container.Delete(clean, nil) // the end of the database deletes it, too
		}()
		s.run(&probe{Trial: t, ctx: bounded, target: w, name: name, items: container})
	})
}

// makeContainer creates a container partitioned by /pk for a script.
func (w *Target) makeContainer(ctx context.Context, name string, s *Script) (*azcosmos.ContainerClient, error) {
	db, err := w.Client.NewDatabase(w.Database)
	if err != nil {
		return nil, err
	}
	properties := azcosmos.ContainerProperties{
		ID:                     name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
	}
	if s.ttl {
		on := int32(-1)
		properties.DefaultTimeToLive = &on
	}
	options := &azcosmos.CreateContainerOptions{}
	if s.splits { // its throughput must be its own, so that it can be raised
		own := azcosmos.NewManualThroughputProperties(400)
		options.ThroughputProperties = &own
	}
	if _, err := db.CreateContainer(ctx, properties, options); err != nil {
		return nil, fmt.Errorf("create container %s: %w", name, err)
	}
	return w.Client.NewContainer(w.Database, name)
}

// Control calls the control endpoint of our emulator (cosmosemu/control_http.go).
func (w *Target) Control(ctx context.Context, path string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	url := strings.TrimSuffix(w.Endpoint, "/") + "/_emulator/" + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("control %s: %s", path, reply.Status)
	}
	return nil
}

// probe is the context of a script.
type probe struct {
	*wire.Trial
	ctx    context.Context //nolint:containedctx // of one script
	target *Target
	name   string // of the container
	items  *azcosmos.ContainerClient
}

// expect records a contradiction if ok is false.
func (p *probe) expect(ok bool, format string, args ...any) {
	if !ok {
		p.Contradict(format, args...)
	}
}

// must ends the script if err is not nil.
func (p *probe) must(what string, err error) { p.Must(what, err) }

// wait returns when ok returns true, or records a contradiction after limit.
func (p *probe) wait(what string, limit time.Duration, ok func() bool) {
	p.expect(p.within(limit, ok), "%s: not within %v", what, limit)
}

// within waits until ok returns true, and reports whether it did within limit.
func (p *probe) within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); !ok(); p.pause(100 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (p *probe) pause(d time.Duration) { p.Pause(p.ctx, d) }

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
