// Package publish is what publishers have in common, whatever the broker: the verdict on a
// failure, the result and the report of a call, and the properties that go with an event.
package publish
