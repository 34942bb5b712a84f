package cosmosemu_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

const corruptionItems = 300

// A flipped bit or a truncated end in any file is refused on opening or on reading. Otherwise the
// answers are correct and complete.
func TestDamagedFilesAreRefused(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed %v", closed), func(t *testing.T) {
			dir := t.TempDir()
			srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
				t.Fatal(err)
			}
			c := containerOf(t, srv, "c")
			for i := range corruptionItems {
				create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i))
			}
			if closed {
				if err := srv.Close(); err != nil {
					t.Fatal(err)
				}
			}
			refused, served := 0, 0
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				info, err := os.Stat(file)
				if err != nil || info.Size() == 0 {
					continue
				}
				for _, at := range []int64{0, info.Size() / 3, info.Size() / 2, info.Size() - 1} {
					if damaged(t, dir, filepath.Base(file), func(b []byte) []byte { b[at] ^= 0x10; return b }) {
						refused++
					} else {
						served++
					}
				}
				if closed && (filepath.Ext(file) == ".sst" || strings.HasPrefix(filepath.Base(file), "MANIFEST")) {
					if !damaged(t, dir, filepath.Base(file), func(b []byte) []byte { return b[:len(b)/2] }) {
						t.Errorf("%s was truncated and still served", filepath.Base(file))
					}
				}
			}
			t.Logf("%d damages refused, %d harmless", refused, served)
			if refused == 0 {
				t.Error("no damage was detected")
			}
		})
	}
}

// damaged opens a copy of the data with one changed file. It reports whether the emulator refused
// it on opening or on reading.
func damaged(t *testing.T, dir, name string, change func([]byte) []byte) (refused bool) {
	t.Helper()
	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(work, name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, change(text), fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: work})
	if err != nil {
		return true
	}
	defer func() { _ = srv.Close() }() // a damaged store may fail to close
	c := containerWithoutRetries(t, srv)
	for i := range corruptionItems {
		_, err := c.ReadItem(context.WithoutCancel(t.Context()), key("pk"+strconv.Itoa(i)), strconv.Itoa(i), nil)
		switch status(err) {
		case 0:
		case 500:
			return true
		default:
			t.Errorf("%s is damaged: item %d: %v", name, i, err)
			return false
		}
	}
	return false
}

func containerWithoutRetries(t *testing.T, srv *cosmosemu.Server) *azcosmos.ContainerClient {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), cred, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: srv.HTTPClient(), Retry: policy.RetryOptions{MaxRetries: -1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c, err := client.NewContainer("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
