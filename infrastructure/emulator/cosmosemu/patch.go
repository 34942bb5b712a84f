package cosmosemu

import (
	"net/http"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/patch"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// applyPatch patches an item inside a transaction, both for single patches and in batches.
func applyPatch(x *request, tx *store.Tx, def *store.Definition, part *store.Partition, id string, body []byte, match string) (store.Item, error) {
	p, err := patch.Parse(body)
	if err != nil {
		return store.Item{}, refuse(http.StatusBadRequest, "The request body is not a patch: %v", err)
	}
	if err := checkPatchPaths(p, def); err != nil {
		return store.Item{}, err
	}
	item, found, err := tx.Get(id)
	if err != nil {
		return store.Item{}, err
	}
	if !found {
		return store.Item{}, noItem(id)
	}
	if match != "" && match != "*" && !sameETag(match, item.ETag) {
		return store.Item{}, etagMismatch(id, item.ETag)
	}
	if err := checkCondition(x, p.Condition, item.Body); err != nil {
		return store.Item{}, err
	}
	text, err := patch.Apply(item.Body, p.Operations)
	if err != nil {
		return store.Item{}, refuse(http.StatusBadRequest, "%v", err)
	}
	if len(text) > maxBody {
		return store.Item{}, refuse(http.StatusRequestEntityTooLarge, "The patched item is too large: %d bytes, at most %d", len(text), maxBody)
	}
	doc, err := parseItem(text, def, part)
	if err != nil {
		return store.Item{}, err
	}
	return tx.Put(doc)
}

// checkPatchPaths refuses changes of the id, of the partition key and of properties that
// the service writes.
func checkPatchPaths(p *patch.Patch, def *store.Definition) error {
	for _, op := range p.Operations {
		for _, path := range [][]string{op.Path, op.From} {
			if path == nil {
				continue
			}
			first := path[0]
			if first == "id" || document.IsSystemProperty(first) {
				return refuse(http.StatusBadRequest, "The property /%s cannot be patched", first)
			}
			for _, key := range def.Paths {
				n := min(len(path), len(key))
				if slices.Equal(path[:n], key[:n]) {
					return refuse(http.StatusBadRequest, "The partition key property /%s cannot be patched", strings.Join(key, "/"))
				}
			}
		}
	}
	return nil
}

// checkCondition refuses a patch whose condition is false for the item. A condition looks
// like "from c where c.n > 1".
func checkCondition(x *request, text string, item []byte) error {
	if text == "" {
		return nil
	}
	q, err := query.ParseCondition(text)
	if err != nil {
		return err
	}
	b, err := q.BindIn(nil, query.Setting{Stop: x.overdue()})
	if err != nil {
		return err
	}
	switch matches, err := b.Match(item), stopped(b); {
	case err != nil:
		return err
	case !matches:
		return refuse(http.StatusPreconditionFailed, preconditionFailed+": the condition %q is false", text)
	}
	return nil
}
