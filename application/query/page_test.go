package query_test

import (
	"reflect"
	"strconv"
	"testing"

	"feedbox/application/query"
)

// A page of other items goes on where the first one does, and its reader sees what that one saw.
func TestMapPage(t *testing.T) {
	got := query.MapPage(query.Page[int]{Items: []int{1, 2}, Continuation: "next", SessionToken: "0:-1#7"}, strconv.Itoa)
	if want := (query.Page[string]{Items: []string{"1", "2"}, Continuation: "next", SessionToken: "0:-1#7"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
