package changefeed

import (
	"encoding/json"

	"feedbox/changefeed/internal/jsonscan"
)

// Field returns a function for Options.Key that finds the raw JSON of one
// top-level member without decoding the document.
func Field(name string) func(raw json.RawMessage) []byte {
	return func(raw json.RawMessage) []byte { return jsonscan.Member(raw, name) }
}
