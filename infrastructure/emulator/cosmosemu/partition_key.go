package cosmosemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxKeyText is the service's limit for a string in a partition key, in bytes.
const maxKeyText = 2048

// keyHeader reads the partition key header; nil if there is none.
func keyHeader(h http.Header) (epk.Key, error) {
	text := first(h, headerPartitionKey)
	if text == "" {
		return nil, nil
	}
	return parseKey(text)
}

// parseKey reads a partition key in the form of its header. An empty list is a key whose
// property is missing.
func parseKey(text string) (epk.Key, error) {
	key, err := epk.ParseHeader(text)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		key = epk.Key{epk.Undefined()}
	}
	return key, checkKey(key)
}

func checkKey(key epk.Key) error {
	for _, v := range key {
		if text, isText := v.Text(); isText && len(text) > maxKeyText {
			return refuse(http.StatusBadRequest, "The partition key value has %d bytes, at most %d are allowed", len(text), maxKeyText)
		}
	}
	return nil
}

// wholePartition returns the logical partition of a key, which must be complete.
func wholePartition(c *store.Container, key epk.Key) (*store.Partition, error) {
	def := c.Definition()
	if len(key) != len(def.Paths) {
		return nil, keyMismatch(key, def)
	}
	return store.NewPartition(key, def.Hash()), nil
}

// keyMismatch is the error for a key that has more or fewer values than the container
// has paths.
func keyMismatch(key epk.Key, def *store.Definition) *wireError {
	return refuse(http.StatusBadRequest, "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document. "+
		"The partition key %v has %d values, the container has %d paths", key, len(key), len(def.Paths)).sub(subKeyMismatch)
}

// keyWindow reads the headers that restrict a read to a window of effective partition
// keys; nil if there are none.
func keyWindow(h http.Header) (*epk.Range, error) {
	low, high := first(h, headerStartEPK), first(h, headerEndEPK)
	if low == "" && high == "" {
		return nil, nil
	}
	if kind := first(h, headerReadKeyType); kind != "" && kind != "EffectivePartitionKeyRange" {
		return nil, refuse(http.StatusBadRequest, "The read key type %q is not supported: only EffectivePartitionKeyRange", kind)
	}
	if high == "" {
		high = "FF"
	}
	r, err := epk.ParseRange(low, high)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The window %q to %q is not a range of effective partition keys: %v", low, high, err)
	}
	return &r, nil
}
