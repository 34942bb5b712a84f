package firestore

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The deployed definitions have the indexes that the queries need and the TTL policies.
func TestIndexDefinitions(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("firestore.indexes.json")
	if err != nil {
		t.Fatal(err)
	}
	var defined struct {
		Indexes []struct {
			CollectionGroup string
			Fields          []struct{ FieldPath string }
		}
		FieldOverrides []struct {
			CollectionGroup, FieldPath string
			TTL                        bool
		}
	}
	if err := json.Unmarshal(raw, &defined); err != nil {
		t.Fatal(err)
	}
	indexes := map[string]string{}
	for _, index := range defined.Indexes {
		for _, f := range index.Fields {
			indexes[index.CollectionGroup] += f.FieldPath + " "
		}
	}
	if indexes[collectionEvents] != "slot "+memberAt+" " || indexes[collectionParked] != "line position " {
		t.Errorf("the indexes are %v", indexes)
	}
	var living []string
	for _, o := range defined.FieldOverrides {
		if o.TTL && o.FieldPath == memberExpires {
			living = append(living, o.CollectionGroup)
		}
	}
	if want := strings.Join([]string{collectionEvents, collectionAggregates, collectionRequests, collectionAudits}, " "); strings.Join(living, " ") != want {
		t.Errorf("TTL policies of %v, want %s", living, want)
	}
}
