package cosmosfeed

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A place is told only of keys that are hashed here, and not once one was seen to be wrong. A
// container that tells no hash version is an old one, of version 1.
func TestAPlaceIsToldOnlyIfItIsSure(t *testing.T) {
	const hash, hashes = azcosmos.PartitionKeyKindHash, azcosmos.PartitionKeyKindMultiHash
	for _, tt := range []struct {
		definition azcosmos.PartitionKeyDefinition
		sure       bool
	}{
		{azcosmos.PartitionKeyDefinition{Kind: hash, Paths: []string{"/a"}, Version: 2}, true},
		{azcosmos.PartitionKeyDefinition{Kind: hash, Paths: []string{"/a"}, Version: 1}, false},
		{azcosmos.PartitionKeyDefinition{Kind: hash, Paths: []string{"/a"}}, false},
		{azcosmos.PartitionKeyDefinition{Kind: hashes, Paths: []string{"/a"}, Version: 2}, false},
		{azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b"}, Version: 2}, false},
	} {
		keys, err := newKeyPaths(tt.definition)
		if err != nil {
			t.Fatal(err)
		}
		f := &Feed{hash: hashKey}
		f.about.Store(&about{keys: keys})
		if _, err := f.Place("k"); (err == nil) != tt.sure || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", tt.definition, err)
		}
		doubt := errors.New("wrong")
		f.doubt.Store(&doubt)
		if _, err := f.Place("k"); err == nil {
			t.Errorf("%+v: a place although keys computed here are wrong", tt.definition)
		}
	}
}

// What shows that computed keys are wrong is told with one page, not with each.
func TestADoubtIsToldOnce(t *testing.T) {
	f := &Feed{}
	first, other := &filter{doubt: errors.New("first")}, &filter{doubt: errors.New("other")}
	for n, want := range []error{first.doubt, nil, nil} {
		g := first
		if n > 0 {
			g = other
		}
		if err := f.rememberDoubt(g, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("page %d: told %v, want %v", n, err, want)
		}
	}
	if err := f.rememberDoubt(&filter{}, nil); err != nil || !errors.Is(*f.doubt.Load(), first.doubt) {
		t.Errorf("told %v; remembered %v", err, *f.doubt.Load())
	}
}
