package operator

import (
	"slices"
	"testing"

	"feedbox/changefeed"
)

func TestUncovered(t *testing.T) {
	lease := func(from, to string) changefeed.Lease {
		return changefeed.Lease{Range: changefeed.FeedRange{Min: from, Max: to}}
	}
	for name, c := range map[string]struct {
		leases []changefeed.Lease
		want   []string
	}{
		"none yet":        {nil, nil},
		"whole":           {[]changefeed.Lease{lease("", "FF")}, nil},
		"two":             {[]changefeed.Lease{lease("", "1F"), lease("1F", "FF")}, nil},
		"two spellings":   {[]changefeed.Lease{lease("", "1F"), lease("1F00", "FF")}, nil},
		"hole":            {[]changefeed.Lease{lease("", "1F"), lease("2F", "FF")}, []string{"1F-2F"}},
		"ends":            {[]changefeed.Lease{lease("1F", "2F")}, []string{"-1F", "2F-FF"}},
		"parent in split": {[]changefeed.Lease{lease("", "FF"), lease("", "1F"), lease("1F", "FF")}, nil},
	} {
		if got := Uncovered(c.leases); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
