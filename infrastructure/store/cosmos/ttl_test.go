package cosmos

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]int{
		-1: -1, 0: 1, 1: 1, time.Second: 1, 1500 * time.Millisecond: 2, 240 * time.Hour: 864000, maxTTL: 2147483647,
	} {
		if got := seconds(lifetime); got != want {
			t.Errorf("seconds(%s) = %d; want %d", lifetime, got, want)
		}
	}
}
