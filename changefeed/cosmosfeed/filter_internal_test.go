package cosmosfeed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
)

// A narrow lease relies on the hash, so encodeKey reports whether it is sure.
func TestUnsureKeysAreReported(t *testing.T) {
	for raw, want := range map[string]bool{
		`"text"`: true, `"\u0061"`: true, `null`: true, `true`: true, `false`: true, `0`: true, `-1.5e3`: true,
		``: false, `{}`: false, `{"a":1}`: false, `[]`: false, `[1]`: false, `1e999`: false, `-`: false,
		`"\ud83d"`: false, `"\x"`: false, `"open`: false,
	} {
		encoded, sure := encodeKey([]byte("before"), []byte(raw))
		if sure != want || !strings.HasPrefix(string(encoded), "before") {
			t.Errorf("%s: sure %t, want %t; encoded %q", raw, sure, want, encoded)
		}
	}
}

func TestBoundsAreParsedAsHashes(t *testing.T) {
	for bound, want := range map[string]string{
		"": strings.Repeat("0", 32), "1F": "1F" + strings.Repeat("0", 30), "00000000000000000000000000000001": "00000000000000000000000000000001",
		"FFFFFFFFFFFFFFFF0123456789ABCDEF": "FFFFFFFFFFFFFFFF0123456789ABCDEF",
		"G0":                               "", "0000000000000000G": "", strings.Repeat("0", 33): "",
	} {
		key, ok := parseBound(bound)
		if ok != (want != "") || ok && key.String() != want {
			t.Errorf("bound %q is %s, %t; want %q", bound, key, ok, want)
		}
	}
	for _, keys := range [][2]epk{{{1, 0}, {2, 0}}, {{1, 5}, {2, 4}}, {{1, 4}, {1, 5}}} {
		if a, b := keys[0], keys[1]; !a.less(b) || b.less(a) || a.less(a) {
			t.Errorf("%s is not less than %s", a, b)
		}
	}
}

// A lease of a whole range also admits documents whose key cannot be hashed.
func TestFilterAdmitsDocumentsOfTheLease(t *testing.T) {
	lower, upper := changefeed.FeedRange{Min: "", Max: "20"}, changefeed.FeedRange{Min: "20", Max: "FF"}
	long := changefeed.FeedRange{Min: "20" + strings.Repeat("0", 40) + "1", Max: "FF"}
	in := func(high uint64) func([]byte) epk { return func([]byte) epk { return epk{high: high} } }
	const low, high = 0x10 << 56, 0x30 << 56
	hierarchical := "the container's partition key is hierarchical"
	for name, tt := range map[string]struct {
		lease, read changefeed.FeedRange
		hash        func([]byte) epk
		key         string // of the document
		unhashed    string
		own, doubt  bool
		refused     string // at the lease, or at the document
	}{
		"part, its own":               {lower, changefeed.FullRange(), in(low), `"k"`, "", true, false, ""},
		"part, another's":             {upper, changefeed.FullRange(), in(low), `"k"`, "", false, false, ""},
		"part, not to be hashed":      {lower, changefeed.FullRange(), in(low), `{}`, "", false, false, "the document with LSN 7 has no partition key that can be hashed"},
		"part, outside what was read": {changefeed.FeedRange{Min: "", Max: "08"}, lower, in(high), `"k"`, "", false, true, keysAreWrong},
		"part, hierarchical":          {lower, changefeed.FullRange(), in(low), `"k"`, hierarchical, false, false, hierarchical},
		"part with long bounds":       {long, changefeed.FullRange(), in(low), `"k"`, "", false, false, "its bounds are not those of a single hash"},
		"part of long bounds":         {lower, changefeed.FeedRange{Min: "", Max: long.Min}, in(low), `"k"`, "", false, false, "the bounds of the physical range"},
		"whole":                       {lower, lower, in(low), `"k"`, "", true, false, ""},
		"whole, not to be hashed":     {lower, lower, in(high), `{}`, "", true, false, ""},
		"whole, outside of it":        {lower, lower, in(high), `"k"`, "", true, true, ""},
		"whole, hierarchical":         {lower, lower, in(high), `"k"`, hierarchical, true, false, ""},
		"whole with long bounds":      {long, long, in(low), `"k"`, "", true, false, ""},
		"all there is":                {changefeed.FullRange(), changefeed.FullRange(), in(low), `"k"`, "", true, false, ""},
	} {
		f := &Feed{hash: tt.hash}
		g, err := f.newFilter(&about{keys: keyPaths{unhashed: tt.unhashed}}, tt.lease, tt.read)
		var own bool
		if err == nil {
			own, err = g.admits([][]byte{[]byte(tt.key)}, 7)
			if (g.doubt != nil) != tt.doubt {
				t.Errorf("%s: doubt %v", name, g.doubt)
			}
		}
		switch {
		case own != tt.own:
			t.Errorf("%s: admitted %t", name, own)
		case tt.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.refused != "" && (!errors.Is(err, changefeed.ErrPermanent) || !strings.Contains(err.Error(), tt.refused) ||
			!strings.Contains(err.Error(), "the lease "+tt.lease.String()+" is a part of the physical range "+tt.read.String())):
			t.Errorf("%s: error %v, want %s", name, err, tt.refused)
		}
	}
}

// A lease of a whole range is not refused.
func TestDoubtRefusesNarrowLeasesOnly(t *testing.T) {
	lower := changefeed.FeedRange{Min: "", Max: "20"}
	f, doubt := &Feed{hash: hashKey}, errors.New("seen there")
	f.doubt.Store(&doubt)
	if _, err := f.newFilter(&about{}, lower, changefeed.FullRange()); !errors.Is(err, doubt) || !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("a part is refused with %v, want the doubt", err)
	}
	g, err := f.newFilter(&about{}, lower, lower)
	if err != nil || g.check {
		t.Errorf("a whole range: %v, or its keys are checked once more", err)
	}
}

// Place refuses keys that are not hashed here, and every key after a doubt. A container
// without a hash version is an old one, of version 1.
func TestPlaceRefusesUnsureKeys(t *testing.T) {
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

func TestDoubtIsReportedOnce(t *testing.T) {
	f := &Feed{}
	first, other := &filter{doubt: errors.New("first")}, &filter{doubt: errors.New("other")}
	for n, want := range []error{first.doubt, nil, nil} {
		g := first
		if n > 0 {
			g = other
		}
		if err := f.rememberDoubt(g, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("page %d: reported %v, want %v", n, err, want)
		}
	}
	if err := f.rememberDoubt(&filter{}, nil); err != nil || !errors.Is(*f.doubt.Load(), first.doubt) {
		t.Errorf("reported %v; remembered %v", err, *f.doubt.Load())
	}

	// A page of a narrow lease fails because of the doubt. Place must not return wrong keys after that.
	narrow := &Feed{}
	if err := narrow.rememberDoubt(first, errNotAPage); !errors.Is(err, errNotAPage) || !errors.Is(err, first.doubt) {
		t.Errorf("the read fails with %v, want its error and the doubt", err)
	}
	if doubt := narrow.doubt.Load(); doubt == nil || !errors.Is(*doubt, first.doubt) {
		t.Error("the doubt of a page that failed is forgotten")
	}
}

// The lower bound belongs to the range, the upper one to the next range.
func TestBoundBelongsToOneRange(t *testing.T) {
	bounds := []string{"", "1F", "1F00000000000000000000000000AB", "FF"}
	key, _ := parseBound(bounds[2])
	for i, want := range []bool{false, false, true} {
		s, ok := newSpan(changefeed.FeedRange{Min: bounds[i], Max: bounds[i+1]})
		if !ok || s.has(key) != want {
			t.Errorf("%s is in %s: %t, want %t", bounds[2], s.rng, !want, want)
		}
	}
}

// A list with several ranges there, or none, is from another time.
func TestReplyMatchesOneListedRange(t *testing.T) {
	asked, outside := changefeed.FeedRange{Min: "10", Max: "20"}, changefeed.FeedRange{Min: "30", Max: "FF"}
	lower, upper := changefeed.FeedRange{Min: "", Max: "18"}, changefeed.FeedRange{Min: "18", Max: "30"}
	whole := changefeed.FeedRange{Min: "", Max: "30"}
	for _, c := range []struct {
		listed []changefeed.FeedRange
		want   seenRange
	}{
		{[]changefeed.FeedRange{whole, outside}, seenRange{id: "7", bounds: whole}},
		{[]changefeed.FeedRange{lower, upper, outside}, seenRange{}},
		{[]changefeed.FeedRange{outside}, seenRange{}},
	} {
		if got := matchRange("7", asked, slices.Clone(c.listed)); got != c.want {
			t.Errorf("listed %v: %+v, want %+v", c.listed, got, c.want)
		}
	}
}

// A reply must name its physical range, unless the lease is the full key space.
func TestReplyWithoutRangeIDIsRefused(t *testing.T) {
	part := &feedRead{Feed: &Feed{}, about: &about{}, req: changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "10", Max: "20"}}}
	if _, err := part.physicalRange(); !errors.Is(err, errRangeUnnamed) {
		t.Errorf("a part: error %v", err)
	}
	part.source = "7"
	if _, err := part.physicalRange(); !errors.Is(err, errRangesChanged) {
		t.Errorf("a range that was never listed: error %v", err)
	}
	part.seen = seenRange{id: "7", bounds: changefeed.FeedRange{Min: "", Max: "30"}}
	if got, err := part.physicalRange(); err != nil || got != part.seen.bounds {
		t.Errorf("a range that replied again: %s, %v", got, err)
	}
	whole := &feedRead{Feed: &Feed{}, about: &about{}, req: changefeed.ReadRequest{Range: changefeed.FullRange()}}
	if got, err := whole.physicalRange(); err != nil || got != changefeed.FullRange() {
		t.Errorf("all there is: %s, %v", got, err)
	}
}
