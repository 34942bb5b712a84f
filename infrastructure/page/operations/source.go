package operations

import (
	"strings"
	"time"
)

// Source describes how current a part of an Overview is. A view shows what is not current as
// unknown, with the age of the last known value, and never as well.
type Source struct {
	At    time.Time // end of the last successful read; zero if there was none
	Tried time.Time // end of the last read
	Err   string    // of the last read, "" if it succeeded
	Since time.Time // end of the first read that failed since At
	Took  time.Duration
}

// currentFor is how long a read is current: for several times the usual pace of the Reader.
const currentFor = 10 * time.Second

// note records a read that ends now.
func (s *Source) note(began time.Time, err error) {
	now := time.Now()
	s.Tried, s.Took = now, now.Sub(began)
	if err == nil {
		s.At, s.Err, s.Since = now, "", time.Time{}
		return
	}
	if s.Err == "" {
		s.Since = now
	}
	s.Err = brief(err.Error())
}

// brief returns the beginning of an error in one line. The SDKs of Azure append the whole reply,
// between lines of dashes.
func brief(text string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "{") || strings.HasPrefix(word, "<") {
			break
		}
		if strings.Trim(word, "-") != "" {
			words = append(words, word)
		}
	}
	return shortened(strings.Join(words, " "))
}

// Known reports whether a read succeeded.
func (s Source) Known() bool { return !s.At.IsZero() }

// Current reports whether the last read succeeded, and recently. Slow reads have long pauses.
func (s Source) Current() bool {
	return s.Known() && s.Err == "" && time.Since(s.At) < max(currentFor, 2*share*s.Took)
}

// State returns the CSS class of a state: "good" needs a current read.
func (s Source) State(class string) string {
	if class == "good" && !s.Current() {
		return ""
	}
	return class
}
