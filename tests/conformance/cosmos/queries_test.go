//go:build conformance

package cosmos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// queryTable is queries/queries.json: queries on the same items, with their rows.
type queryTable struct {
	Items   []map[string]any `json:"items"`
	Queries []struct {
		Text       string `json:"text"`
		Computed   bool   `json:"computed"` // uses a computed property, which azcosmos cannot create
		Parameters []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"parameters"`
		Rows    []any `json:"rows"`
		Ordered bool  `json:"ordered"`
	} `json:"queries"`
}

// TestQueries runs the table through each SDK: through azcosmos on one logical partition,
// because it does not support query plans; through the others on one and on several
// physical partitions, in pages of two rows. "refused" in the table is the feature that
// the SDK reports as unsupported.
func TestQueries(t *testing.T) {
	t.Run("azcosmos", queriesByGo)
	for script, sdk := range map[string]*sdk{"run.mjs": javascript, "run.py": python} {
		t.Run(script, func(t *testing.T) {
			dir := sdk.folder(t, "the queries were")
			copyInto(t, dir, "queries")
			for _, partitions := range []int{1, 4} {
				srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: partitions})
				text, err := sdk.run(t, dir, []string{"COSMOS_ENDPOINT=" + srv.Endpoint(), "COSMOS_KEY=" + srv.Key(), fmt.Sprintf("COSMOS_PARTITIONS=%d", partitions)}, script)
				if err != nil || !allPassed.Match(text) {
					t.Errorf("%d partitions: %v", partitions, err)
				}
			}
		})
	}
}

func queriesByGo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("queries", "queries.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table queryTable
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	w := openTarget(t, 1)
	db, err := w.Client.NewDatabase(w.Database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID: "queries", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/all"}, Kind: azcosmos.PartitionKeyKindHash, Version: 2},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Client.NewContainer(w.Database, "queries")
	if err != nil {
		t.Fatal(err)
	}
	key := azcosmos.NewPartitionKeyString("x")
	for _, item := range table.Items {
		item["all"] = "x"
		body, _ := json.Marshal(item) // it was JSON
		if _, err := c.CreateItem(t.Context(), key, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range table.Queries {
		if q.Computed {
			continue
		}
		o := &azcosmos.QueryOptions{PageSizeHint: 2}
		for _, p := range q.Parameters {
			o.QueryParameters = append(o.QueryParameters, azcosmos.QueryParameter{Name: p.Name, Value: p.Value})
		}
		var got, want []string
		for _, row := range q.Rows {
			want = append(want, canonical(t, row))
		}
		for pager := c.NewQueryItemsPager(q.Text, key, o); pager.More(); {
			page, err := pager.NextPage(t.Context())
			if err != nil {
				t.Errorf("%s: %v", q.Text, err)
				break
			}
			for _, item := range page.Items {
				var row any
				if err := json.Unmarshal(item, &row); err != nil {
					t.Fatal(err)
				}
				got = append(got, canonical(t, row))
			}
		}
		if !q.Ordered {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %s\nwant %s", q.Text, got, want)
		}
	}
}

// canonical returns a row with its members in a fixed order.
func canonical(t *testing.T, row any) string {
	t.Helper()
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
