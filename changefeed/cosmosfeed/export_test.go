package cosmosfeed

import "encoding/json"

// EPK returns the effective partition key of a key with one string value.
func EPK(key string) string {
	raw, err := json.Marshal(key)
	if err != nil {
		panic(err)
	}
	return KeyText(string(raw))
}

// KeyText returns the effective partition key of raw key values: the hashes of the parts,
// joined.
func KeyText(values ...string) string {
	var text []byte
	for _, v := range values {
		encoded, _ := encodeKey(nil, []byte(v))
		text = append(text, hashKey(encoded).String()...)
	}
	return string(text)
}

// BreakHash makes the feed compute wrong effective partition keys.
func (f *Feed) BreakHash() {
	f.hash = func(encoded []byte) epk {
		key := hashKey(encoded)
		key.high ^= 1 << 61 // the other half of the key space
		return key
	}
}
