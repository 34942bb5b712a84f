package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/bits"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// metadata serves the reads that azcosmos caches: of the account, of a container and of its ranges.
// The client holds a mutex during these requests. Other requests wait for it, and virtual time
// stops while a goroutine waits for a mutex. So these requests bypass all faults, and are answered
// with the last answer while the store is down.
type metadata struct {
	transport *http.Transport

	mu   sync.Mutex // guards last
	last map[string]*answer
}

// answer is a stored answer.
type answer struct {
	response http.Response
	body     []byte
}

func newMetadata(n *network) *metadata {
	clean := newNIC(n)
	return &metadata{last: map[string]*answer{}, transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return clean.dial(ctx, cosmosAddr)
	}}}
}

var metadataPath = regexp.MustCompile(`^/?$|^/dbs/[^/]+/colls/[^/]+(/pkranges)?/?$`)

func isMetadata(method, path string) bool {
	return method == http.MethodGet && metadataPath.MatchString(path)
}

// roundTripper is the transport of a process. Metadata requests use the one without faults.
type roundTripper struct {
	*http.Transport
	nic      *nic
	metadata *metadata
}

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isMetadata(r.Method, r.URL.Path) {
		return t.Transport.RoundTrip(r)
	}
	if !t.nic.alive() {
		return nil, errDown
	}
	return t.metadata.roundTrip(r)
}

func (m *metadata) roundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.String() + " " + r.Header.Get("If-None-Match")
	response, err := m.transport.RoundTrip(r)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && response.StatusCode < http.StatusInternalServerError {
		m.last[key] = &answer{*response, body}
	}
	kept := m.last[key]
	if kept == nil {
		return nil, errDown
	}
	again := kept.response
	again.Request, again.Header, again.Body = r, kept.response.Header.Clone(), io.NopCloser(bytes.NewReader(kept.body))
	return &again, nil
}

// EPK returns the effective partition key of a text key of up to 100 bytes, version 2 of the hash,
// in hexadecimal. This is a second implementation, so that the verifier does not share a mistake
// with the code under test (azcosmos internal/epk).
func EPK(key string) string {
	const text = 0x08
	low, high := murmur3(append(append([]byte{text}, key...), 0xFF))
	var hash [16]byte
	binary.BigEndian.PutUint64(hash[:], high)
	binary.BigEndian.PutUint64(hash[8:], low)
	hash[0] &= 0x3F
	return strings.ToUpper(hex.EncodeToString(hash[:]))
}

// murmur3 returns the 128-bit MurmurHash3 for 64-bit machines, seed 0.
func murmur3(data []byte) (uint64, uint64) {
	const c1, c2 uint64 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	var h1, h2 uint64
	rest := data
	for ; len(rest) >= 16; rest = rest[16:] {
		h1 = (bits.RotateLeft64(h1^mix1(binary.LittleEndian.Uint64(rest)), 27)+h2)*5 + 0x52dce729
		h2 = (bits.RotateLeft64(h2^mix2(binary.LittleEndian.Uint64(rest[8:])), 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], rest)
	h1 ^= mix1(binary.LittleEndian.Uint64(tail[:]))
	h2 ^= mix2(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= uint64(len(data))
	h2 ^= uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = avalanche(h1), avalanche(h2)
	h1 += h2
	return h1, h2 + h1
}

func avalanche(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
