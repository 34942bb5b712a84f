package cosmosfeed

import (
	"errors"
	"strings"
	"testing"

	"feedbox/changefeed"
)

// Whether a key can be hashed is told, since a narrow lease stakes documents on it.
func TestAKeyIsHashedOnlyIfItIsSure(t *testing.T) {
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

func TestBoundsAreHashes(t *testing.T) {
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

// A document is the lease's own if its key shows that, and of a whole range without a
// look at keys that nobody can be sure of.
func TestWhichDocumentsALeaseAdmits(t *testing.T) {
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

// A lease that needs keys is refused by what showed that they are wrong; a whole range is
// not.
func TestKeysThatAreWrongPartNothing(t *testing.T) {
	lower := changefeed.FeedRange{Min: "", Max: "20"}
	f, doubt := &Feed{hash: hashKey}, errors.New("seen there")
	f.doubt.Store(&doubt)
	if _, err := f.newFilter(&about{}, lower, changefeed.FullRange()); !errors.Is(err, doubt) || !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("a part is refused with %v, want what showed it", err)
	}
	g, err := f.newFilter(&about{}, lower, lower)
	if err != nil || g.check {
		t.Errorf("a whole range: %v, or its keys are checked once more", err)
	}
}
