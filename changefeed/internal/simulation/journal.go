package simulation

import (
	"fmt"
	"strings"
	"time"

	"feedbox/changefeed"
)

// journal is what happened in a run, so that a violation can be read from its
// report: how goroutines interleave does not follow from the seed, and a run that
// failed cannot be repeated at will. It belongs to the verifier and is guarded by
// its mutex.
type journal struct {
	began  time.Time
	events []event
}

// event concerns a key, or every key within a range.
type event struct {
	at   time.Duration
	key  string
	in   changefeed.FeedRange
	text string
	args []any
}

// maxStory is how many events before a violation are told.
const maxStory = 60

func (j *journal) note(key string, in changefeed.FeedRange, text string, args ...any) {
	j.events = append(j.events, event{at: time.Since(j.began), key: key, in: in, text: text, args: args})
}

// story is what happened last to a key, one event a line.
func (j *journal) story(key, epk string) string {
	var lines []string
	for i := len(j.events) - 1; i >= 0 && len(lines) < maxStory; i-- {
		e := &j.events[i]
		if e.key == key || e.key == "" && e.in.Has(epk) {
			lines = append(lines, fmt.Sprintf("\n\t\t%9.4fs  ", e.at.Seconds())+fmt.Sprintf(e.text, e.args...))
		}
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}
