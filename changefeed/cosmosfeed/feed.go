package cosmosfeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var (
	_ changefeed.Feed   = (*Feed)(nil)
	_ changefeed.Placer = (*Feed)(nil)
)

// Feed reads the change feed of one container. It is safe for concurrent use.
type Feed struct {
	endpoint  string
	container *azcosmos.ContainerClient
	hash      func(encoded []byte) epk
	about     atomic.Pointer[about] // as last read
	physical  sync.Map              // changefeed.FeedRange by physicalID, of the physical ranges that replied
	doubt     atomic.Pointer[error] // proof that hash is wrong
	versions  bool                  // all versions and deletes, otherwise the latest version
}

// about holds the properties of a container. They are immutable, but a container that is
// deleted and created again under its name has others.
type about struct {
	source changefeed.Source
	keys   keyPaths
}

// NewFeed returns the feed of a container. It does no I/O. Build the client with
// ClientOptions.
func NewFeed(client *azcosmos.Client, database, container string) (*Feed, error) {
	coll, err := client.NewContainer(database, container)
	if err != nil {
		return nil, fmt.Errorf("cosmosfeed: container %q of database %q: %w", container, database, err)
	}
	return &Feed{endpoint: client.Endpoint(), container: coll, hash: hashKey}, nil
}

// NewVersionsFeed returns the feed in the mode all versions and deletes. A document is delivered once for
// each write, even if it expired or was replaced before the feed was read; deletions are not delivered.
// The account needs continuous backup and keeps the changes as long as its backups, at most 7 days for
// this feed. The feed has no beginning: use changefeed.FromNow, and start the processor before the first
// write. The client must have cosmosfeed.ClientOptions, because azcosmos has no such mode.
//
// Source: Microsoft Learn, "Change feed modes in Azure Cosmos DB"; the .NET SDK's ChangeFeedModeFullFidelity.
func NewVersionsFeed(client *azcosmos.Client, database, container string) (*Feed, error) {
	f, err := NewFeed(client, database, container)
	if err == nil {
		f.versions = true
	}
	return f, err
}

// Source implements changefeed.Feed. It reads the container with one request, also if it was
// read before.
func (f *Feed) Source(ctx context.Context) (changefeed.Source, error) {
	a, err := f.readContainer(ctx)
	if err != nil {
		return changefeed.Source{}, err
	}
	return a.source, nil
}

// Place implements changefeed.Placer. It returns the effective partition key in a container
// with one key path and hash version 2, and refuses other containers. It refuses every key
// once a document was found outside its computed place (Page.Doubt).
func (f *Feed) Place(key string) (string, error) {
	a := f.about.Load()
	switch {
	case a == nil:
		return "", errors.New("the container has not been read yet")
	case a.keys.unhashed != "":
		return "", fmt.Errorf("%s: %w", a.keys.unhashed, errors.ErrUnsupported)
	}
	if doubt := f.doubt.Load(); doubt != nil {
		return "", *doubt
	}
	if !utf8.ValidString(key) {
		return "", fmt.Errorf("partition key %q is not Unicode text", key)
	}
	return f.hash(appendText(nil, key)).String(), nil
}

// describe returns the container's properties as last read by Source.
func (f *Feed) describe(ctx context.Context) (*about, error) {
	if a := f.about.Load(); a != nil {
		return a, nil
	}
	return f.readContainer(ctx)
}

// readContainer reads the container's properties. The SDK caches them, too: this read replaces
// its copy, which would otherwise remain that of a container deleted meanwhile.
func (f *Feed) readContainer(ctx context.Context) (*about, error) {
	endpoint, err := url.Parse(f.endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w: %w", f.endpoint, changefeed.ErrPermanent, err)
	}
	coll, err := f.container.Read(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read container %s: %w", f.container.ID(), absent(translate(err)))
	}
	// The link is dbs/RID/colls/RID/, so the database need not be read.
	link := strings.Split(coll.ContainerProperties.SelfLink, "/")
	if len(link) < 4 || link[0] != "dbs" || link[1] == "" {
		return nil, fmt.Errorf("container %s has the link %q, which does not name its database", f.container.ID(), coll.ContainerProperties.SelfLink)
	}
	keys, err := newKeyPaths(coll.ContainerProperties.PartitionKeyDefinition)
	if err != nil {
		return nil, err
	}
	a := &about{keys: keys, source: changefeed.Source{
		Host:      endpoint.Hostname(),
		Database:  link[1],
		Container: coll.ContainerProperties.ResourceID,
	}}
	if before := f.about.Swap(a); before != nil && before.source != a.source {
		f.doubt.Store(nil) // of the container before
	}
	return a, nil
}

// Ranges implements changefeed.Feed. The SDK caches the list for the process and refreshes
// it only when a read finds that a range is gone.
func (f *Feed) Ranges(ctx context.Context) ([]changefeed.FeedRange, error) {
	ranges, err := f.container.ReadFeedRanges(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read feed ranges of %s: %w", f.container.ID(), absent(translate(err)))
	}
	found := make([]changefeed.FeedRange, len(ranges))
	for i, r := range ranges {
		found[i] = changefeed.FeedRange{Min: r.MinInclusive, Max: cmp.Or(r.MaxExclusive, changefeed.FullRange().Max)}
	}
	return found, nil
}

// Now implements changefeed.Feed. It passes a token with the position *, because the SDK
// has no such start: the token makes it send If-None-Match: *, and the reply contains a
// position.
func (f *Feed) Now(ctx context.Context, r changefeed.FeedRange) (string, error) {
	page, err := f.Read(ctx, changefeed.ReadRequest{Range: r, Continuation: fromNow, MaxItems: 1})
	if err != nil {
		return "", err
	}
	if page.Release != nil {
		page.Release()
	}
	if page.Continuation == "" || page.Continuation == fromNow {
		return "", errors.New("the service gave no position for the end of the feed")
	}
	return page.Continuation, nil
}
