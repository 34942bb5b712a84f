package cosmosfeed

import "encoding/json"

// EPK is the effective partition key of a key with one string value.
func EPK(key string) string {
	raw, err := json.Marshal(key)
	if err != nil {
		panic(err)
	}
	return keyText([][]byte{raw})
}

// KeyText is the effective partition key of raw key values.
func KeyText(values ...string) string {
	raw := make([][]byte, len(values))
	for i, v := range values {
		if v != "" {
			raw[i] = []byte(v)
		}
	}
	return keyText(raw)
}
