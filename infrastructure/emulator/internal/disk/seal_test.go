package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"feedbox/tests/fuzzseed"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writeLog writes records in the newest log format, split into chunks at the ends of blocks. Each
// chunk records that everything up to the previous chunk had been synced.
func writeLog(number uint32, payloads ...[]byte) (data []byte, starts []int) {
	for _, payload := range payloads {
		for first := true; first || len(payload) > 0; first = false {
			left := blockSize - len(data)%blockSize
			if left < syncHeader {
				data = append(data, make([]byte, left)...)
				left = blockSize
			}
			n := min(len(payload), left-syncHeader)
			synced := 0
			if len(starts) > 0 {
				synced = starts[len(starts)-1]
			}
			starts = append(starts, len(data))
			data = append(data, chunkOf(number, uint64(synced), payload[:n])...)
			payload = payload[n:]
		}
	}
	return data, starts
}

func chunkOf(number uint32, synced uint64, payload []byte) []byte {
	c := make([]byte, syncHeader, syncHeader+len(payload))
	binary.LittleEndian.PutUint16(c[4:], uint16(len(payload)))
	c[6] = 9
	binary.LittleEndian.PutUint32(c[7:], number)
	binary.LittleEndian.PutUint64(c[11:], synced)
	c = append(c, payload...)
	binary.LittleEndian.PutUint32(c, mask(checksum(c[6:])))
	return c
}

func TestDamageInALog(t *testing.T) {
	payload := make([]byte, 9000)
	log, starts := writeLog(7, payload, payload, payload, payload, payload)
	last := starts[len(starts)-1]
	stale, _ := writeLog(6, payload)
	before := starts[len(starts)-2]
	unsynced := append([]byte{}, log[:last]...)
	unsynced = append(unsynced, chunkOf(7, uint64(before), payload)...) // the previous chunk was not synced yet
	for name, test := range map[string]struct {
		log     []byte
		flip    int // -1: none
		damaged bool
	}{
		"sound":                       {log, -1, false},
		"empty":                       {nil, -1, false},
		"zeros behind the end":        {append(log[:len(log):len(log)], make([]byte, 50000)...), -1, false},
		"an older log behind the end": {append(log[:len(log):len(log)], stale...), -1, false},
		"cut short":                   {log[:len(log)-1], -1, false},
		"only zeros":                  {make([]byte, 100), -1, false},
		"payload":                     {log, 100, true},
		"checksum":                    {log, 0, true},
		"length":                      {log, starts[1] + 4, true},
		"encoding":                    {log, starts[1] + 6, true},
		"log number":                  {log, starts[2] + 7, true},
		"last but two":                {log, starts[len(starts)-3] + 30, true},
		"last chunk":                  {log, last + 50, false},
		"a write that overtook":       {unsynced, before + 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			data := append([]byte{}, test.log...)
			if test.flip >= 0 {
				data[test.flip] ^= 1
			}
			if err := fs.MkdirAll("d", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := write(fs, "d", "000007.log", data); err != nil {
				t.Fatal(err)
			}
			if _, err := check(fs, "d"); errors.Is(err, ErrDamaged) != test.damaged || !test.damaged && err != nil {
				t.Errorf("damaged=%t, got %v", test.damaged, err)
			}
		})
	}
}

// After kill -9 every acknowledged write is still in the log. Without that part of it the store must not open,
// because it would serve an older state.
func TestDamageBelowTheLastFsyncIsDetected(t *testing.T) {
	const writes = 250 // some of them in a second log
	fs := vfs.NewCrashableMem()
	d := mustOpen(t, fs)
	key := func(n int) []byte { return fmt.Appendf(nil, "k%d", n) }
	for n := range writes {
		batch := d.NewBatch()
		if err := errors.Join(batch.Set(key(n), bytes.Repeat([]byte{byte(n)}, 3000), nil), d.Commit(batch), batch.Close()); err != nil {
			t.Fatal(err)
		}
	}
	killed := func() *vfs.MemFS {
		return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	}
	defer mustClose(t, d)
	names, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	log := slices.MaxFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(filepath.Ext(a), filepath.Ext(b)), cmp.Compare(a, b)) // no other extension is greater
	})
	sound, err := read(fs, fs.PathJoin("d", log))
	if err != nil {
		t.Fatal(err)
	}
	number, ok := logNumber(log)
	end := (&file{data: sound, log: true, number: uint32(number)}).end()
	if !ok || number < 3 || end < 3*blockSize {
		t.Fatalf("%s ends at byte %d", log, end)
	}
	for at := 0; at < end; at += 1999 {
		for what, data := range map[string][]byte{"cut at": sound[:at], "flipped in": flipped(sound, at), "flipped in the last byte, and in": flipped(flipped(sound, end-1), at)} {
			left := killed()
			if err := write(left, "d", log, data); err != nil {
				t.Fatal(err)
			}
			if d, err := open(left, "1"); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s byte %d of %d: %v", what, at, end, err)
				if err == nil {
					mustClose(t, d)
				}
			}
		}
	}
	// Neither a crash of the process nor one of the machine is damage.
	for _, left := range []*vfs.MemFS{killed(), fs.CrashClone(vfs.CrashCloneCfg{})} {
		d := mustOpen(t, left)
		for n := range writes {
			if !has(d, string(key(n))) {
				t.Errorf("key %d is gone", n)
			}
		}
		mustClose(t, d)
	}
}

// A note that is ahead would make a crash look like damage, and the store could not be opened any more.
func TestNoteIsNeverAheadOfTheDisk(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var before *vfs.MemFS // the last fsync: killed before it
	d := mustOpen(t, onLog(fs, func() error {
		before = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 1))})
		return nil
	}))
	for n := range 50 {
		if err := put(d, fmt.Sprint("k", n)); err != nil {
			t.Fatal(err)
		}
		left := mustOpen(t, before)
		if n > 0 && !has(left, fmt.Sprint("k", n-1)) {
			t.Errorf("key %d is gone", n-1)
		}
		mustClose(t, left)
	}
	mustClose(t, d)
}

func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

func TestSealIsUsedOnce(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"000001.log": "log", "000002.sst": "table", "MANIFEST-000003": "manifest", "note": "x"} {
		if err := write(fs, "d", name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	sealed := func() {
		t.Helper()
		if err := seal(fs, "d"); err != nil {
			t.Fatal(err)
		}
	}
	change := func(name, data string) {
		t.Helper()
		if err := write(fs, "d", name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	sealed()
	if _, err := check(fs, "d"); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	if _, err := fs.Stat("d/" + sealName); err == nil {
		t.Error("the seal is still there")
	}
	for _, test := range [][3]string{
		{"000001.log", "lag", "log"},
		{"MANIFEST-000003", "manifesto", "manifest"},
		{"000002.sst", "tabl", "table"},
		{sealName, "end 00000000\n", ""},
		{sealName, "", ""},
		{sealName, "a b\nend 1cc3d1c2\n", ""},
	} {
		sealed()
		change(test[0], test[1])
		if _, err := check(fs, "d"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s is %q: %v", test[0], test[1], err)
		}
		if test[2] != "" {
			change(test[0], test[2])
		}
	}
	sealed()
	change("note", "y")
	if _, err := check(fs, "d"); err != nil {
		t.Errorf("a file of somebody else changed: %v", err)
	}
}

// A manifest has chunks of the oldest format. Every flipped bit outside the last chunk is
// detected. A truncated or zero end is accepted, because a crash leaves the same.
func TestDamageInAManifest(t *testing.T) {
	var manifest []byte
	last := 0
	for _, payload := range []string{"one", "two", "three"} {
		last = len(manifest)
		c := make([]byte, legacyHeader, legacyHeader+len(payload))
		binary.LittleEndian.PutUint16(c[4:], uint16(len(payload)))
		c[6] = 1
		c = append(c, payload...)
		binary.LittleEndian.PutUint32(c, mask(checksum(c[6:])))
		manifest = append(manifest, c...)
	}
	damaged := func(data []byte) bool {
		_, proof := (&file{data: data}).damage(0)
		return proof > 0
	}
	for cut := range len(manifest) + 1 {
		if damaged(manifest[:cut]) {
			t.Errorf("cut at %d: damaged", cut)
		}
	}
	if damaged(append(bytes.Clone(manifest), make([]byte, 100)...)) {
		t.Error("zeros after the end are treated as damage")
	}
	for at := range last {
		for bit := range 8 {
			flipped := bytes.Clone(manifest)
			flipped[at] ^= 1 << bit
			if !damaged(flipped) {
				t.Errorf("bit %d of byte %d is not missed", bit, at)
			}
		}
	}
}

// FuzzCheck checks that no bytes cause a panic, and that an intact log is accepted at any
// truncation.
func FuzzCheck(f *testing.F) {
	fuzzseed.Add(f)
	log, _ := writeLog(1, []byte("one"), []byte("two"), nil)
	f.Add(log, uint16(5))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 9, 1, 0, 0, 0}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		for _, isLog := range []bool{true, false} {
			x := file{data: data, log: isLog, number: 1}
			bad, proof := x.damage(0)
			if bad > len(data) || proof != 0 && proof <= bad {
				t.Errorf("bad at %d, proved at %d of %d", bad, proof, len(data))
			}
		}
		sound := file{data: log[:int(cut)%(len(log)+1)], log: true, number: 1}
		if _, proof := sound.damage(0); proof != 0 {
			t.Errorf("a log cut to %d bytes is damaged at %d", len(sound.data), proof)
		}
	})
}
